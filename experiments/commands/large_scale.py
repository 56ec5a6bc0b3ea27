"""The ``large-scale`` command: score and time as the training set grows.

2,000 training rows, 4,000, and so on to all of them; at each size a grid search on a 20 %
hold-out and a refit, for five seeds. Sizes are run from small to large. A model stops at the size
that would take longer than --job-seconds, judged by its time at the size before; the report lists
what is left out.
"""

import argparse
import functools
from collections.abc import Iterator
from pathlib import Path

from experiments.commands.arguments import add_data, add_named_selection
from experiments.data.large_tables import (
    LARGE_TABLES,
    SMALLEST_SIZE,
    LargeTable,
    prepared,
    select_large_tables,
    subsample,
    training_sizes,
)
from experiments.data.published import paper_file
from experiments.data.tables import find_data_folder
from experiments.models.grids import LIBRARIES, MODELS, grids
from experiments.models.scoring import Scores
from experiments.reports.large_scale import (
    draw_curves,
    markdown_report,
    read_published,
    result_rows,
)
from experiments.requests import UsageError, require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, Result, provenances, read_result
from experiments.runs.pool import run_jobs
from experiments.runs.search import tuned_scores

NAME = "large-scale"
SUMMARY = "score and time against the number of training rows, up to half a million"
N_SEEDS = 5
HELD_OUT = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, list(LARGE_TABLES), MODELS, out="experiments-output/large-scale")
    add_data(parser)
    parser.add_argument(
        "--max-rows",
        type=int,
        metavar="N",
        help="largest number of training rows (default: no limit)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        choices=range(1, N_SEEDS + 1),
        metavar="N",
        default=N_SEEDS,
        help="number of seeds, from 1 to 5 (default: %(default)s)",
    )
    parser.add_argument(
        "--job-seconds",
        type=float,
        metavar="S",
        default=3600.0,
        help="leave out sizes at which a job would take more seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published runs (default: paper/large_scale_runs.parquet beside the data)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, run size by size, report and draw; 1 if a job failed."""
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

    results: list[Result] = []
    left_out: list[str] = []
    for table in tables:
        for done, dropped in run_sizes(table, models, arguments, data, results):
            results += done
            left_out += dropped
    rows = result_rows(results)
    failures = [result for result in results if result.scores is None]
    text = markdown_report(rows, published, failures, left_out)
    write_table(arguments.out / "large_scale.csv", rows, provenances(results))
    report = write_report(arguments.out / "large_scale.md", text, provenances(results))
    for table in tables:
        draw_curves(table, results, published, arguments.out)
    print(report)
    return 1 if failures else 0


def run_sizes(
    table: LargeTable,
    models: list[str],
    arguments: argparse.Namespace,
    data: Path,
    earlier: list[Result],
) -> Iterator[tuple[list[Result], list[str]]]:
    """The results at each size, from small to large, and a line for each model that stops there.

    ``earlier`` are the results so far, which the caller extends.
    """
    recipes = {model: recipe for model, recipe in grids(table.task).items() if model in models}
    limit = table.rows if arguments.max_rows is None else arguments.max_rows
    sizes = training_sizes(table)
    expected: dict[str, float] = dict.fromkeys(recipes, 0.0)
    stopped: set[str] = set()
    for size, next_size in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        jobs = []
        dropped = []
        for model, recipe in recipes.items():
            every = [Job(f"rows-{size}", table.id, model, s, recipe) for s in range(N_SEEDS)]
            asked = every[: arguments.seeds] if size <= limit else []
            affordable = asked if expected[model] <= arguments.job_seconds else []
            # Results of earlier commands are in the report too, whatever sizes this one asks for.
            kept = [job for job in every if job in affordable or read_result(job, arguments.out)]
            jobs += kept
            missing = len(set(asked) - set(kept))
            if missing and model not in stopped:
                stopped.add(model)
                dropped.append(
                    f"{table.id} {model} from {size} rows on ({missing} of {len(asked)} seeds): "
                    f"about {expected[model]:.0f} s per job"
                )
        work = functools.partial(learn, data=data)
        results = run_jobs(
            jobs,
            work,
            arguments.out,
            arguments.jobs,
            mix_commits=arguments.mix_commits,
            beside=earlier,
        )
        growth = next_size / size
        for model in recipes:
            # Without a result at this size, the estimate grows from the last one.
            seconds = largest_seconds(results, model) or expected[model]
            expected[model] = growth * seconds
        yield results, dropped


def largest_seconds(results: list[Result], model: str) -> float:
    """The seconds of the slowest job of a model; 0 if it has none."""
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
