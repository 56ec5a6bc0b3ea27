"""The ``figures`` command: ranks with their critical differences, scores, SWIM against i.i.d.

Draw the paper's figures as SVG and PNG: the critical difference diagram (average ranks,
Wilcoxon's signed-rank test with Holm's correction), the scores of every model on every dataset
with box and whiskers, and each model with SWIM against its twin with i.i.d. features. They are
made from the results in --out, or from the published runs with --published.
"""

import argparse
from typing import TYPE_CHECKING

import pandas as pd

from experiments.ablation import twin_pairs
from experiments.libraries import require
from experiments.sources import TASKS, add_source, read_runs, target_folder, without_twins
from experiments.summaries import complete_part

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "figures"
SUMMARY = "critical difference diagrams, box plots and scatter plots"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/run")


def run(arguments: argparse.Namespace) -> int:
    """Draw every figure before any is written."""
    require("matplotlib", "experiments", "figures")
    require("scikit_posthocs", "experiments", "figures")
    import matplotlib

    from experiments.pictures import STYLE, save

    runs = read_runs(arguments)
    folder = target_folder(arguments)
    with matplotlib.rc_context(STYLE):
        for name, figure in draw(runs, arguments.models).items():
            save(figure, folder, name)
            print(f"{folder / name}.svg and .png")
    return 0


def draw(runs: pd.DataFrame, models: list[str] | None) -> dict[str, "Figure"]:
    """All figures that these runs allow, by file name."""
    from experiments import drawings

    figures = {}
    for task in TASKS:
        of_task = runs[runs["task"] == task]
        pairs = twin_pairs(of_task)
        if not of_task.empty:
            part = complete_part(without_twins(of_task, models), task)
            figures[f"scores-{task}"] = drawings.score_boxes(part)
            if len(part.models) > 1:
                figures[f"critical-difference-{task}"] = drawings.critical_difference(part)
        if pairs:
            names = [name for pair in pairs for name in pair]
            part = complete_part(of_task[of_task["model"].isin(names)], task)
            figures[f"swim-iid-{task}"] = drawings.twins(part, pairs)
    return figures
