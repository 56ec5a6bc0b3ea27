"""The ``large-scale`` command: score and time as the training set grows.

2,000 training rows, 4,000, and so on to all of them; at each size a grid search on a 20 %
hold-out and a refit, for five seeds. Sizes are run from small to large, and a model stops where
its time at the last size says that the next would take longer than --job-seconds; what is left
out for that is listed.
"""

import argparse
import functools
from collections.abc import Iterator
from pathlib import Path

from experiments.arguments import add_data, add_named_selection, select
from experiments.datasets import find_data_folder
from experiments.errors import UsageError
from experiments.files import write_atomically
from experiments.grid import tuned_scores
from experiments.jobs import Job, Result, read_result
from experiments.large_curves import draw_curves
from experiments.large_grids import LIBRARIES, MODELS, grids
from experiments.large_report import markdown_report, read_published, result_rows
from experiments.large_tables import (
    LARGE_TABLES,
    SMALLEST_SIZE,
    LargeTable,
    prepare,
    select_large_tables,
    subsample,
    training_sizes,
)
from experiments.libraries import require
from experiments.paper_files import paper_file
from experiments.pool import run_jobs
from experiments.protocols import Fold
from experiments.scoring import Scores

NAME = "large-scale"
SUMMARY = "score and time against the number of training rows, up to half a million"
N_SEEDS = 5
HELD_OUT = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, list(LARGE_TABLES), MODELS, out="experiments-output/large-scale")
    add_data(parser)
    parser.add_argument(
        "--max-rows", type=int, metavar="N", help="no size above this (default: no limit)"
    )
    parser.add_argument(
        "--seeds",
        type=int,
        choices=range(1, N_SEEDS + 1),
        metavar="N",
        default=N_SEEDS,
        help="how many of the five seeds (default: %(default)s)",
    )
    parser.add_argument(
        "--job-seconds",
        type=float,
        metavar="S",
        default=3600.0,
        help="leave out sizes at which one search would take longer (default: %(default)s)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published runs (default: paper/large_scale_runs.parquet beside the data)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, run size by size, report and draw; 1 when a job failed."""
    names = select("table", arguments.tables, list(LARGE_TABLES))
    models = select("model", arguments.models, MODELS)
    for model in set(models) & set(LIBRARIES):
        require(*LIBRARIES[model])
    require("matplotlib", "experiments", "The picture")
    if arguments.max_rows is not None and arguments.max_rows < SMALLEST_SIZE:
        raise UsageError(f"--max-rows must be at least {SMALLEST_SIZE}, the smallest size.")
    data = find_data_folder(arguments.data)
    tables = select_large_tables(names, data, asked=arguments.tables is not None)
    theirs = paper_file(arguments.published_runs, "large_scale_runs.parquet", data)
    published = read_published(theirs)

    results, left_out = [], []
    for table in tables:
        for done, dropped in run_sizes(table, models, arguments, data):
            results += done
            left_out += dropped
    rows = result_rows(results)
    failures = [result for result in results if result.scores is None]
    report = markdown_report(rows, published, failures, left_out)
    write_atomically(arguments.out / "large_scale.csv", rows.to_csv(index=False))
    write_atomically(arguments.out / "large_scale.md", report)
    for table in tables:
        draw_curves(table, rows, published, arguments.out)
    print(report)
    return 1 if failures else 0


def run_sizes(
    table: LargeTable, models: list[str], arguments: argparse.Namespace, data: Path
) -> Iterator[tuple[list[Result], list[str]]]:
    """The results at each size, from small to large, and the models that stop there."""
    recipes = {model: recipe for model, recipe in grids(table.task).items() if model in models}
    limit = table.rows if arguments.max_rows is None else arguments.max_rows
    sizes = training_sizes(table)
    expected: dict[str, float] = dict.fromkeys(recipes, 0.0)
    stopped: set[str] = set()
    for size, next_size in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        jobs, dropped = [], []
        for model, recipe in recipes.items():
            every = [Job(f"rows-{size}", table.id, model, s, recipe) for s in range(N_SEEDS)]
            asked = every[: arguments.seeds] if size <= limit else []
            affordable = asked if expected[model] <= arguments.job_seconds else []
            # What an earlier run has done is shown as well, whatever this one asks for.
            kept = [job for job in every if job in affordable or read_result(job, arguments.out)]
            jobs += kept
            missing = len(set(asked) - set(kept))
            if missing and model not in stopped:
                stopped.add(model)
                dropped.append(
                    f"{table.id} {model} from {size} rows on ({missing} of {len(asked)} seeds): "
                    f"about {expected[model]:.0f} s a job"
                )
        work = functools.partial(learn, data=data)
        results = run_jobs(jobs, work, arguments.out, arguments.jobs)
        growth = next_size / size
        for model in recipes:
            # Without a result there is only the old estimate to go on from.
            seconds = largest_seconds(results, model) or expected[model]
            expected[model] = growth * seconds
        yield results, dropped


def largest_seconds(results: list[Result], model: str) -> float:
    """The time of a model's slowest job among these; 0 without one."""
    return max(
        (r.scores.fit_seconds for r in results if r.scores and r.job.model == model), default=0.0
    )


def learn(job: Job, data: Path) -> Scores:
    """One search and refit on a subsample of the training rows."""
    from sklearn.model_selection import ShuffleSplit

    table = LARGE_TABLES[job.dataset]
    size = int(job.protocol.removeprefix("rows-"))
    fold = subsample(prepared(job.dataset, data), size, job.fold)
    held_out = ShuffleSplit(1, test_size=HELD_OUT, random_state=job.fold)
    splits = list(held_out.split(fold.X_train))
    return tuned_scores(job.recipe, fold, table.task, splits, seed=job.fold)


@functools.lru_cache(maxsize=1)
def prepared(name: str, data: Path) -> Fold:
    """The split and scaled table, kept for the next job of the same process."""
    return prepare(LARGE_TABLES[name], data)
