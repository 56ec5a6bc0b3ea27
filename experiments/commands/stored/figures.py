"""The ``figures`` command: ranks with their critical differences, scores, SWIM against i.i.d.

Draw the paper's figures as SVG and PNG: the critical difference diagram (average ranks,
Wilcoxon's signed-rank test with Holm's correction), box plots of the scores of every model, and the
scores with SWIM features against those with i.i.d. features. They are made from the results in
--out, or from the published runs with --published.
"""

import argparse
from typing import TYPE_CHECKING

import pandas as pd

from experiments.commands.stored.source import add_source, made_with, read_runs, target_folder
from experiments.reports.ablation import feature_pairs
from experiments.reports.figures import (
    STYLE,
    critical_difference,
    save,
    score_boxes,
    swim_against_iid,
)
from experiments.reports.summaries import TASKS, complete_part, without_iid
from experiments.requests import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "figures"
SUMMARY = "critical difference diagrams, box plots and scatter plots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/run")


def run(arguments: argparse.Namespace) -> int:
    """Draw all figures, then write them."""
    require("matplotlib", "experiments", "figures")
    require("scikit_posthocs", "experiments", "figures")
    import matplotlib

    runs = read_runs(arguments)
    folder = target_folder(arguments)
    with matplotlib.rc_context(STYLE):
        for name, figure in draw(runs, arguments.models).items():
            save(figure, folder, name, made_with(arguments, runs))
            print(f"{folder / name}.svg and .png")
    return 0


def draw(runs: pd.DataFrame, models: list[str] | None) -> dict[str, "Figure"]:
    """All figures that these runs allow, by file name."""
    figures = {}
    for task in TASKS:
        of_task = runs[runs["task"] == task]
        pairs = feature_pairs(of_task)
        if not of_task.empty:
            part = complete_part(without_iid(of_task, models), task)
            figures[f"scores-{task}"] = score_boxes(part)
            if len(part.models) > 1:
                figures[f"critical-difference-{task}"] = critical_difference(part)
        if pairs:
            names = [name for pair in pairs for name in pair]
            part = complete_part(of_task[of_task["model"].isin(names)], task)
            figures[f"swim-iid-{task}"] = swim_against_iid(part, pairs)
    return figures
