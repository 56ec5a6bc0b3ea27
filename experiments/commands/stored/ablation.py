"""The ``ablation`` command: SWIM against i.i.d. features, and the four kinds of boosting step.

Print the paper's ablation tables: mean score, datasets won and seconds of a fit for each model with
SWIM and with i.i.d. features; and, for regression, for the gradient step and the greedy steps with
a dense, a diagonal or a scalar matrix. They are made from the results in --out (those of replay, by
default), or from the published runs with --published.
"""

import argparse

from experiments.commands.stored.source import (
    add_source,
    made_with,
    read_runs,
    target_folder,
    write_folds,
)
from experiments.reports.ablation import ablation_tables, as_text
from experiments.reports.markdown import markdown_table
from experiments.requests import UsageError, require
from experiments.runs.files import write_report, write_table

NAME = "ablation"
SUMMARY = "SWIM against i.i.d. features, and the kinds of boosting step, with wins and times"
HEADER = """\
# Ablation

A win is a dataset with the better mean score over folds; equal scores are no win.
`p` is that of Wilcoxon's signed-rank test over datasets (two-sided), after Holm's correction over
the rows of its table. Seconds are those of one fit.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/replay")


def run(arguments: argparse.Namespace) -> int:
    """Make all tables, then write them."""
    require("statsmodels", "experiments", "Holm's correction")
    runs = read_runs(arguments)
    tables, notes = ablation_tables(runs)
    if not tables:
        raise UsageError(
            "An ablation needs a model with SWIM and with i.i.d. features, or two kinds of step; "
            "these runs have neither."
        )
    sections = [f"## {title}\n\n{markdown_table(as_text(rows))}" for title, rows in tables.items()]
    text = "\n".join([HEADER, *sections, *notes])
    folder = target_folder(arguments)
    origin = made_with(arguments, runs)
    for title, rows in tables.items():
        write_table(folder / f"{file_name(title)}.csv", rows, origin)
    write_folds(arguments, runs, "ablation-folds.csv")
    report = write_report(folder / "ablation.md", text, origin)
    print(report)
    return 0


def file_name(title: str) -> str:
    """A title as a file name, without its ending."""
    return title.lower().replace(".", "").replace(",", "").replace(" ", "-")
