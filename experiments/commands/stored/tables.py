"""The ``tables`` command: summaries over datasets, and scores dataset by dataset.

Print the paper's summary tables (mean score, mean rank, mean seconds of a fit) and its
dataset-wise tables (mean and standard deviation over folds), and write them as Markdown and CSV.
They are made from the results in --out, or from the published runs with --published. Only datasets
where every model has every fold are averaged; the others are listed. Models with i.i.d. features
are left out unless --models names them; the command ablation compares them.
"""

import argparse

import pandas as pd

from experiments.commands.stored.source import (
    add_source,
    made_with,
    read_runs,
    target_folder,
    write_folds,
)
from experiments.models.naming import label
from experiments.reports.markdown import markdown_table
from experiments.reports.summaries import (
    LOWER_IS_BETTER,
    SCORE,
    TASKS,
    Complete,
    complete_part,
    dataset_name,
    dataset_rows,
    left_out_text,
    summary_rows,
    without_iid,
)
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import searches

NAME = "tables"
SUMMARY = "the summary and dataset-wise tables, from our results or the published runs"
HEADER = """\
# Scores on the OpenML tables: {source}

Means are over datasets, and within a dataset over its test folds. The best mean score on a dataset
has rank 1; equal scores share their mean rank. Seconds are those of one fit with the chosen
hyper-parameters. In brackets: the standard deviation over folds (ddof = 0). Bold: the best of the
row.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/run")


def run(arguments: argparse.Namespace) -> int:
    """Make all tables, then write them."""
    runs = without_iid(read_runs(arguments), arguments.models)
    parts = [complete_part(runs, task) for task in TASKS if task in set(runs["task"])]
    text = markdown_report(parts, source_name(arguments, runs))

    folder = target_folder(arguments)
    origin = made_with(arguments, runs)
    for part in parts:
        write_table(folder / f"{part.task}-summary.csv", summary_rows(part), origin)
        write_table(folder / f"{part.task}-datasets.csv", dataset_rows(part), origin)
    write_folds(arguments, runs, "folds.csv")
    report = write_report(folder / "tables.md", text, origin)
    print(report)
    return 0


def source_name(arguments: argparse.Namespace, runs: pd.DataFrame) -> str:
    """The source of the runs, for the title."""
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
    """One row per dataset, one column per model; a cell is a mean and its standard deviation."""
    rows = dataset_rows(part)
    mean = rows["mean"].map("{:.3f}".format)
    rows["cell"] = mean.where(~rows["best"], "**" + mean + "**") + rows["std"].map(
        " ({:.3f})".format
    )
    cells = rows.pivot_table(index="dataset", columns="model", values="cell", aggfunc="first")
    cells = cells[part.models].rename(columns=label).rename_axis(columns=None).reset_index()
    cells.insert(1, "name", [dataset_name(dataset) for dataset in cells["dataset"]])
    return cells
