"""The ``fine-tune`` command: end-to-end training from a boosted start and from a random one.

The paper asks whether RFRBoost is a good initialisation for training by gradients. A boosted
network is trained on by Adam; the same network with random weights is trained with the same rows,
batches, epochs and learning rates to choose from. Held-out rows choose the learning rate and the
epoch, for both alike. Writes the scores, whether the hypothesis holds, and the score after every
epoch as a figure. ``--tables covtype`` adds CoverType.
"""

import argparse
import functools
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.arguments import add_common, add_data, at_least, select, words
from experiments.comparison import markdown_table
from experiments.datasets import find_data_folder, known_table, select_tables
from experiments.files import write_atomically
from experiments.fine_tune_curves import draw_curves
from experiments.fine_tune_runs import BOOSTED, RANDOM, STARTS, recipe_for, tune
from experiments.jobs import Job, Result
from experiments.large_tables import LARGE_TABLES, select_large_tables
from experiments.libraries import require
from experiments.pool import run_jobs
from experiments.scoring import Scores
from experiments.significance import ALPHA, p_value_text, signed_rank_p_value

NAME = "fine-tune"
SUMMARY = "train networks end to end from a boosted and from a random start"
PROTOCOL = "strict"
COVERTYPE = "covtype"
#: six regression and six classification tables of different sizes and kinds
TABLES = (44957, 44959, 44972, 44978, 44989, 45402, 22, 54, 307, 1494, 40982, 40984)
N_SEEDS = 3
# With fewer tables the test cannot reject anything.
FEWEST_TABLES = 6
COLUMNS = ["table", "task", "start", "seed", "epoch", "score"]


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
        help="folds of a table, each with a seed of its own (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=at_least(100, "--rows"),
        metavar="N",
        help="at most so many training rows (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train, score, write the rows, the report and the figure; 1 when a job failed."""
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
    results = run_jobs(jobs, work, arguments.out, arguments.jobs)
    good = [result for result in results if result.scores is not None]
    failures = [result for result in results if result.scores is None]
    report = markdown_report(good, failures, arguments.epochs)
    write_atomically(arguments.out / "fine_tune.csv", epoch_rows(good).to_csv(index=False))
    write_atomically(arguments.out / "fine_tune.md", report)
    if good:
        draw_curves(epoch_rows(good), arguments.out)
    print(report)
    return 1 if failures else 0


def chosen_tables(names: list[str], data: Path) -> dict[int | str, str]:
    """The tables, checked, with their tasks."""
    large = select_large_tables([n for n in names if n in LARGE_TABLES], data, asked=True)
    ids = [int(name) for name in names if name not in LARGE_TABLES]
    small = select_tables(data, ids) if ids else []
    return {table.id: table.task for table in [*small, *large]}


def table_name(table: int | str) -> str:
    """What a table is called."""
    return LARGE_TABLES[table].name if table in LARGE_TABLES else known_table(table).name


def scores_of(result: Result) -> Scores:
    """The scores of a job that went well."""
    assert result.scores is not None
    return result.scores


def epoch_rows(results: list[Result]) -> pd.DataFrame:
    """One row a table, start, seed and epoch."""
    rows = [
        (
            table_name(r.job.dataset),
            scores_of(r).details["task"],
            r.job.model,
            r.job.fold,
            epoch,
            score,
        )
        for r in results
        for epoch, score in enumerate(scores_of(r).details["curve"])
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def markdown_report(results: list[Result], failures: list[Result], n_epochs: int) -> str:
    """Scores before and after training, and what they say about the hypothesis."""
    text = (
        "# End-to-end training from a boosted and from a random start\n\n"
        "Test RMSE (regression, in deviations of y) or accuracy, means over seeds; the same\n"
        f"network, {n_epochs} epochs of Adam, learning rate and epoch chosen by held-out rows.\n\n"
    )
    text += "".join(
        f"- failed: {r.job.dataset} {r.job.model} {r.job.fold}: {r.error}\n" for r in failures
    )
    lines = table_rows(results)
    shown = lines.drop(columns="gain", errors="ignore")
    return text + markdown_table(shown) + "\n" + verdict(lines)


def table_rows(results: list[Result]) -> pd.DataFrame:
    """One row a table that has both starts."""
    lines = []
    for table in dict.fromkeys(r.job.dataset for r in results):
        runs = {
            start: [
                scores_of(r) for r in results if r.job.dataset == table and r.job.model == start
            ]
            for start in STARTS
        }
        if all(runs.values()):
            lines.append({"table": table_name(table), **table_row(runs)})
    return pd.DataFrame(lines)


def table_row(runs: dict[str, list[Scores]]) -> dict[str, object]:
    """One table; ``gain`` is the share by which the boosted start's error ends lower."""
    regression = runs[BOOSTED][0].details["task"] == "regression"
    ends = {start: float(np.mean([s.test_score for s in runs[start]])) for start in STARTS}
    ours, theirs = (ends[s] if regression else 1 - ends[s] for s in (BOOSTED, RANDOM))
    epochs = {s: float(np.mean([r.details["best_epoch"] for r in runs[s]])) for s in STARTS}
    return {
        "score": "RMSE" if regression else "accuracy",
        "boosted": float(np.mean([s.details["curve"][0] for s in runs[BOOSTED]])),
        "boosted, then trained": ends[BOOSTED],
        "random, then trained": ends[RANDOM],
        "epochs, boosted": epochs[BOOSTED],
        "epochs, random": epochs[RANDOM],
        "gain": (theirs - ours) / ((theirs + ours) or 1.0),
    }


def verdict(lines: pd.DataFrame) -> str:
    """Whether the boosted start ends better, by tables and by Wilcoxon's test."""
    if lines.empty:
        return "No table has both starts.\n"
    better = int((lines["gain"] > 0).sum())
    text = f"The boosted start ends ahead on {better} of {len(lines)} tables"
    if len(lines) < FEWEST_TABLES:
        return f"{text}: too few for a test.\n"
    p = signed_rank_p_value(lines["gain"].to_numpy())
    holds = p < ALPHA and better > len(lines) / 2
    return (
        f"{text} (Wilcoxon's signed-rank test of relative errors: p {p_value_text(p)}): the "
        "hypothesis that boosting is the better start "
        f"{'holds' if holds else 'is not borne out'} here.\n"
    )
