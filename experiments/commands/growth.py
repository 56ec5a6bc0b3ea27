"""The ``growth`` command: default models as the training set grows, on whole tables.

Fit our estimator and three libraries of boosted trees with default parameters on 1,000 training
rows, 10,000 and so on to all of them, one after another on the same threads, and score them on the
same test rows. With ``--rows all``, on all training rows only. Tables are data frames as they are:
missing values and categories included. Writes scores, seconds and memory as a table, and figures.
Stored results are not computed again.
"""

import argparse
import functools
import time
from pathlib import Path

from experiments.commands.arguments import add_data, add_out, at_least, words
from experiments.data.tables import find_data_folder
from experiments.data.whole_tables import (
    GROWING,
    LARGER,
    first_rows,
    split_table,
    training_sizes,
    whole_table,
)
from experiments.models.scoring import METRICS, Scores, log_loss
from experiments.models.untuned import (
    ENDINGS,
    FIELD,
    OURS,
    PEERS,
    TimedRecipe,
    build_untuned,
    warm_up,
)
from experiments.reports.growth import draw_growth, markdown_report, result_rows
from experiments.requests import UsageError, require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, provenances
from experiments.runs.peak_memory import PeakMemory
from experiments.runs.pool import run_jobs

NAME = "growth"
SUMMARY = "our defaults and three libraries of trees against the number of training rows"
ALL = "all"
SEED = 0
# Predictions are repeated until they took this many seconds, and the shortest counts.
PREDICTING_SECONDS = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    every = list(dict.fromkeys((*GROWING, *LARGER)))
    parser.add_argument(
        "--tables",
        type=words,
        metavar="NAME,NAME",
        default=list(GROWING),
        help=f"of {', '.join(every)}; 'larger' for all but covtype and generated (default: "
        f"{', '.join(GROWING)})",
    )
    parser.add_argument(
        "--models", type=words, metavar="NAME,NAME", default=list(FIELD), help="(default: all)"
    )
    add_out(parser, "experiments-output/growth")
    add_data(parser)
    parser.add_argument(
        "--rows",
        type=words,
        metavar="N,N",
        help=f"numbers of training rows, '{ALL}' for all (default: 1000, 10000 and so on, and all)",
    )
    parser.add_argument(
        "--max-seconds",
        type=at_least(1, "--max-seconds"),
        metavar="S",
        help="time limit of our fits, in seconds (default: none)",
    )
    parser.add_argument(
        "--threads",
        type=at_least(1, "--threads"),
        metavar="N",
        default=2,
        help="threads of every model (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit size by size, then write and draw; 1 if a fit failed."""
    asked = list(LARGER) if arguments.tables == ["larger"] else arguments.tables
    names = select("table", asked, list(dict.fromkeys((*GROWING, *LARGER))))
    models = select("model", arguments.models, list(FIELD))
    for library in PEERS.keys() & set(models):
        require(library, "experiments", "The comparison")
    require("matplotlib", "experiments", "The picture")
    data = find_data_folder(arguments.data)
    jobs = [job for name in names for job in plan(name, models, arguments)]
    results = run_jobs(
        jobs,
        functools.partial(fit_and_measure, data=data),
        arguments.out,
        n_processes=1,
        threads=arguments.threads,
        mix_commits=arguments.mix_commits,
    )
    rows = result_rows(results)
    made_with = provenances(results)
    write_table(arguments.out / "growth.csv", rows, made_with)
    report = write_report(arguments.out / "growth.md", markdown_report(results, rows), made_with)
    draw_growth(rows, arguments.out, made_with)
    print(report)
    return 1 if any(result.error is not None for result in results) else 0


def plan(name: str, models: list[str], arguments: argparse.Namespace) -> list[Job]:
    """Every model at every size of one table, from small to large."""
    ending = ENDINGS[whole_table(name).task]
    limit = {} if arguments.max_seconds is None else {"max_seconds": arguments.max_seconds}
    return [
        Job(
            f"rows-{size}",
            name,
            model,
            SEED,
            TimedRecipe(
                PEERS.get(model, "RFRBoost") + ending,
                limit if model == OURS else {},
                arguments.threads,
            ),
        )
        for size in asked_sizes(name, arguments.rows)
        for model in models
    ]


def asked_sizes(name: str, asked: list[str] | None) -> list[int]:
    """The numbers of training rows; those that a table does not have are left out."""
    sizes = training_sizes(name)
    if asked is None:
        return sizes
    try:
        wanted = {sizes[-1] if word == ALL else int(word) for word in asked}
    except ValueError:
        raise UsageError(f"--rows takes whole numbers and '{ALL}', not {asked}.") from None
    return sorted(size for size in wanted if 0 < size <= sizes[-1])


def fit_and_measure(job: Job, data: Path) -> Scores:
    """One fit on the first training rows: score and seconds on all test rows, and its memory."""
    task = whole_table(str(job.dataset)).task
    fold = first_rows(split_table(str(job.dataset), data), int(job.protocol.removeprefix("rows-")))
    warm_up(job.recipe)
    model = build_untuned(job.recipe, len(fold.y_train), random_state=job.fold)
    memory = PeakMemory()
    began = time.perf_counter()
    model.fit(fold.X_train, fold.y_train)
    seconds = time.perf_counter() - began
    details: dict[str, object] = {
        "train_rows": len(fold.y_train),
        "test_rows": len(fold.y_test),
        "megabytes": memory.grown_by(),
    }
    predict = model.predict_proba if task == "classification" else model.predict
    predict_seconds = float("inf")
    begun = time.perf_counter()
    while time.perf_counter() - begun < PREDICTING_SECONDS:
        started = time.perf_counter()
        predicted = predict(fold.X_test)
        predict_seconds = min(predict_seconds, time.perf_counter() - started)
    if task == "classification":
        details["log_loss"] = log_loss(fold.y_test, predicted, model.classes_)
        predicted = model.classes_[predicted.argmax(axis=1)]
    score = METRICS[task](fold.y_test, predicted)
    # No training score: predicting the training rows takes longer than the fit.
    return Scores(float("nan"), score, seconds, predict_seconds, details)
