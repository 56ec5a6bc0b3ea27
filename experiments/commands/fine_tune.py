"""The ``fine-tune`` command: end-to-end training from a boosted start and from a random one.

The paper asks whether RFRBoost is a good initialisation for training by gradients. A boosted
network is trained further by Adam; the same network with random weights is trained with the same
rows, batches, epochs and candidate learning rates. For both, held-out rows choose the learning rate
and the epoch. Writes the scores, whether the hypothesis holds, and a figure of the score after
every epoch. ``--tables covtype`` uses CoverType.
"""

import argparse
import functools
from pathlib import Path

from experiments.commands.arguments import add_common, add_data, at_least, words
from experiments.data.large_tables import LARGE_TABLES, select_large_tables
from experiments.data.tables import find_data_folder, select_tables
from experiments.reports.fine_tune import draw_curves, epoch_rows, markdown_report
from experiments.requests import require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.fine_tune import STARTS, recipe_for, tune
from experiments.runs.jobs import Job, provenances
from experiments.runs.pool import run_jobs

NAME = "fine-tune"
SUMMARY = "train networks end to end from a boosted and from a random start"
PROTOCOL = "strict"
COVERTYPE = "covtype"
# Six regression and six classification tables of different sizes and kinds.
TABLES = (44957, 44959, 44972, 44978, 44989, 45402, 22, 54, 307, 1494, 40982, 40984)
N_SEEDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--tables",
        type=words,
        metavar="ID,ID",
        default=[str(id) for id in TABLES],
        help=f"OpenML ids, and {COVERTYPE} (default: twelve ids)",
    )
    add_common(parser, list(STARTS), "experiments-output/fine-tune")
    add_data(parser)
    parser.add_argument("--epochs", type=at_least(1, "--epochs"), metavar="N", default=50)
    parser.add_argument(
        "--seeds",
        type=at_least(1, "--seeds"),
        metavar="N",
        default=N_SEEDS,
        help="number of folds of a table; the fold is the seed (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=at_least(100, "--rows"),
        metavar="N",
        help="largest number of training rows (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train, score, and write the rows, the report and the figure; 1 if a job failed."""
    starts = select("start", arguments.models, list(STARTS))
    require("torch", "torch", "Training end to end")
    require("matplotlib", "experiments", "The picture")
    data = find_data_folder(arguments.data)
    tasks = chosen_tables(arguments.tables, data)
    jobs = [
        Job(PROTOCOL, table, start, seed, recipe_for(task, arguments.epochs, arguments.rows))
        for table, task in tasks.items()
        for start in starts
        for seed in range(1 if table == COVERTYPE else arguments.seeds)
    ]
    work = functools.partial(tune, data=data)
    results = run_jobs(jobs, work, arguments.out, arguments.jobs, mix_commits=arguments.mix_commits)
    good = [result for result in results if result.scores is not None]
    failures = [result for result in results if result.scores is None]
    made_with = provenances(good)
    text = markdown_report(good, failures, arguments.epochs)
    write_table(arguments.out / "fine_tune.csv", epoch_rows(good), made_with)
    report = write_report(arguments.out / "fine_tune.md", text, made_with)
    if good:
        draw_curves(epoch_rows(good), arguments.out, made_with)
    print(report)
    return 1 if failures else 0


def chosen_tables(names: list[str], data: Path) -> dict[int | str, str]:
    """The task of each named table, by its id; the files are checked."""
    large = select_large_tables([n for n in names if n in LARGE_TABLES], data, asked=True)
    ids = [int(name) for name in names if name not in LARGE_TABLES]
    small = select_tables(data, ids) if ids else []
    return {table.id: table.task for table in [*small, *large]}
