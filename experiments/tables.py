"""The ``tables`` command: summaries over datasets, and scores dataset by dataset.

Print the paper's summary tables (mean score, mean rank, mean seconds of a fit) and its
dataset-wise tables (mean and standard deviation over folds), and write them as markdown and CSV.
They are made from the results in --out, or from the published runs with --published. Only
datasets where every model has every fold count; the others are listed. Models with i.i.d.
features are the ablation's, and are here only when --models names them.
"""

import argparse

import pandas as pd

from experiments.comparison import markdown_table
from experiments.files import write_atomically
from experiments.naming import label
from experiments.results import searches
from experiments.sources import TASKS, add_source, read_runs, target_folder, without_twins
from experiments.summaries import (
    LOWER_IS_BETTER,
    SCORE,
    Complete,
    complete_part,
    dataset_name,
    dataset_rows,
    left_out_text,
    summary_rows,
)

NAME = "tables"
SUMMARY = "the summary and dataset-wise tables, from our results or the published runs"

HEADER = """\
# Scores on the OpenML tables: {source}

Means are over datasets, and within a dataset over its test folds. The rank of a model on a dataset
is 1 for the best mean score; equal scores share their mean rank. Seconds are those of one fit with
the chosen hyper-parameters. In brackets: the standard deviation of the folds (ddof = 0). Bold: the
best of the row.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/run")


def run(arguments: argparse.Namespace) -> int:
    """Make every table before any is written."""
    runs = without_twins(read_runs(arguments), arguments.models)
    parts = [complete_part(runs, task) for task in TASKS if task in set(runs["task"])]
    report = markdown_report(parts, source_name(arguments, runs))

    folder = target_folder(arguments)
    for part in parts:
        for name, rows in (("summary", summary_rows(part)), ("datasets", dataset_rows(part))):
            write_atomically(folder / f"{part.task}-{name}.csv", rows.to_csv(index=False))
    write_atomically(folder / "tables.md", report)
    print(report)
    return 0


def source_name(arguments: argparse.Namespace, runs: pd.DataFrame) -> str:
    """Whose runs these are, as a reader would say it."""
    if arguments.published:
        return "published runs"
    searched = searches(runs)
    ours = f"our runs, protocol '{arguments.protocol}'"
    return f"{ours}, {searched}" if searched else ours


def markdown_report(parts: list[Complete], source: str) -> str:
    """All tables as one text."""
    sections = [HEADER.format(source=source)]
    for part in parts:
        order = "smaller" if LOWER_IS_BETTER[part.task] else "larger"
        sections.append(
            f"## Summary: {part.task}\n\n{len(part.datasets)} datasets, {len(part.folds)} folds; "
            f"a {order} score is better.\n\n{markdown_table(summary_text(part))}"
        )
        if part.left_out:
            sections.append(left_out_text(part))
        sections.append(f"## By dataset: {part.task}\n\n{markdown_table(dataset_text(part))}")
    return "\n".join(sections)


def summary_text(part: Complete) -> pd.DataFrame:
    """The summary as it is printed: three decimals, two for ranks."""
    rows = summary_rows(part)
    return pd.DataFrame(
        {
            "model": rows["label"],
            f"mean {SCORE[part.task]}": rows["mean_score"].map("{:.3f}".format),
            "mean rank": rows["mean_rank"].map("{:.2f}".format),
            "fit seconds": rows["fit_seconds"].map("{:.3f}".format),
        }
    )


def dataset_text(part: Complete) -> pd.DataFrame:
    """A row a dataset and a column a model, each cell a mean and its deviation."""
    rows = dataset_rows(part)
    mean = rows["mean"].map("{:.3f}".format)
    rows["cell"] = mean.where(~rows["best"], "**" + mean + "**") + rows["std"].map(
        " ({:.3f})".format
    )
    cells = rows.pivot_table(index="dataset", columns="model", values="cell", aggfunc="first")
    cells = cells[part.models].rename(columns=label).rename_axis(columns=None).reset_index()
    cells.insert(1, "name", [dataset_name(dataset) for dataset in cells["dataset"]])
    return cells
