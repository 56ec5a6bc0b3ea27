"""Figures: their style, their files, and the figures that compare models over datasets.

Figures are written as SVG and PNG; the same results give the same bytes. The provenance of the
results is in the files' metadata, under "Description".
"""

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.models.naming import (
    LINEAR,
    NETWORK,
    ONE_LAYER,
    OTHER,
    RFRBOOST,
    TREES,
    label,
    look,
)
from experiments.reports.significance import ALPHA, pairwise_p_values
from experiments.reports.summaries import LOWER_IS_BETTER, SCORE, Complete
from experiments.runs.files import write_atomically
from experiments.runs.provenance import Provenance, footer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, distinct for any kind of colour vision.
COLOURS = {
    RFRBOOST: "#0072B2",
    TREES: "#D55E00",
    NETWORK: "#009E73",
    ONE_LAYER: "#CC79A7",
    LINEAR: "#595959",
    OTHER: "#E69F00",
}
INK = "#222222"
FAINT = "#b8b8b8"
STYLE = {
    "font.family": "DejaVu Sans",  # part of matplotlib, so the same on every machine
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "savefig.dpi": 150,
    "svg.hashsalt": "rfrboost",  # without it the ids in the file are random
}


def svg_text(figure: "Figure", description: str | None = None) -> str:
    """A figure as the text of an SVG file, without the date of its drawing."""
    stream = io.StringIO()
    metadata = {"Date": None} | ({"Description": description} if description else {})
    figure.savefig(stream, format="svg", bbox_inches="tight", metadata=metadata)
    return stream.getvalue()


def save(figure: "Figure", folder: Path, name: str, made_with: Iterable[Provenance]) -> None:
    """Write a figure as ``name.svg`` and ``name.png``, with the provenance of its results."""
    description = footer(made_with)
    write_atomically(folder / f"{name}.svg", svg_text(figure, description))
    temporary = folder / f".{name}.png"
    metadata = {"Description": description}
    figure.savefig(temporary, format="png", bbox_inches="tight", metadata=metadata)
    os.replace(temporary, folder / f"{name}.png")


def critical_difference(part: Complete) -> "Figure":
    """Average ranks on a line; a bar joins models without a significant difference."""
    from matplotlib.figure import Figure
    from scikit_posthocs import critical_difference_diagram

    ranks = part.ranks().mean().rename(label)
    p_values = pairwise_p_values(part.scores().rename(columns=label))
    families = {label(model): look(model).family for model in part.models}
    figure = Figure(figsize=(10, 1.9 + 0.3 * len(ranks)), layout="constrained")
    axes = figure.add_subplot()
    drawn = critical_difference_diagram(
        ranks,
        p_values,
        alpha=ALPHA,
        ax=axes,
        hue=families,
        color_palette={family: COLOURS[family] for family in families.values()},
        label_fmt_left="{label}  {rank:.2f} ",
        label_fmt_right=" {rank:.2f}  {label}",
        label_props={"fontsize": 10},
        elbow_props={"linewidth": 1.4},
        # A bar may pass over a model that does not belong to it; dots mark those that do.
        crossbar_props={"color": INK, "linewidth": 3, "marker": "o", "markersize": 7},
        text_h_margin=0.2,
    )
    for (bar,) in drawn["crossbars"]:
        # The models of a bar come as a set, whose order differs from process to process.
        bar.set_xdata(np.sort(bar.get_xdata()))
    axes.spines["top"].set_visible(True)
    axes.set_xlabel(f"average rank by {SCORE[part.task]} over {len(part.datasets)} datasets")
    axes.xaxis.set_label_position("top")
    axes.set_title(
        f"{part.task.capitalize()}: a bar joins models without a significant difference\n"
        f"(Wilcoxon signed-rank tests, Holm's correction, α = {ALPHA}; dots on a bar: its models)",
        pad=14,
    )
    _family_legend(figure, families.values())
    return figure


def boxes(values: pd.DataFrame, axis_label: str, title: str) -> "Figure":
    """A box plot per model, from top to bottom, with a dot for each dataset."""
    from matplotlib.figure import Figure

    models = list(values.columns)
    figure = Figure(figsize=(9, 1.6 + 0.5 * len(models)), layout="constrained")
    axes = figure.add_subplot()
    # A fixed random spread of the dots, so that the same scores give the same figure.
    jitter = np.random.default_rng(0).uniform(-0.22, 0.22, len(values))
    for place, model in enumerate(models):
        colour = COLOURS[look(model).family]
        column = values[model].dropna().to_numpy()
        heights = place + jitter[: len(column)]
        axes.scatter(column, heights, s=18, color=colour, alpha=0.55, linewidths=0, zorder=2)
        axes.boxplot(
            column,
            positions=[place],
            widths=0.55,
            orientation="horizontal",
            showfliers=False,  # every dataset has a dot already
            medianprops={"color": INK, "linewidth": 2},
            boxprops={"color": INK},
            whiskerprops={"color": INK},
            capprops={"color": INK},
            zorder=3,
        )
    axes.set_yticks(range(len(models)), [label(model) for model in models])
    axes.set_ylim(len(models) - 0.4, -0.6)
    axes.set_xlabel(axis_label)
    axes.set_title(title)
    axes.grid(axis="x")
    _family_legend(figure, [look(model).family for model in models])
    return figure


def score_boxes(part: Complete) -> "Figure":
    """The scores of every model on every dataset."""
    order = "lower" if LOWER_IS_BETTER[part.task] else "higher"
    return boxes(
        part.scores(),
        f"test {SCORE[part.task]}, mean over {len(part.folds)} folds ({order} is better)",
        f"{part.task.capitalize()}: {len(part.datasets)} datasets, one dot each; "
        "box: quartiles, whiskers: 1.5 × their distance",
    )


def swim_against_iid(part: Complete, pairs: list[tuple[str, str]]) -> "Figure":
    """SWIM against i.i.d. features: one panel per model, one dot per dataset."""
    from matplotlib.figure import Figure

    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.6, 3.7 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    scores = part.scores()
    for axes, (swim, iid) in zip(panels, pairs, strict=False):
        _feature_panel(axes, scores[swim], scores[iid], part.task)
    for axes in panels[len(pairs) :]:
        axes.set_visible(False)
    score = SCORE[part.task]
    figure.supxlabel(f"test {score} with SWIM features", color=INK)
    figure.supylabel(f"test {score} with i.i.d. features", color=INK)
    figure.suptitle(f"{part.task.capitalize()}: {len(scores)} datasets, one dot each")
    return figure


def _feature_panel(axes: "Axes", swim: pd.Series, iid: pd.Series, task: str) -> None:
    swim_better = swim < iid if LOWER_IS_BETTER[task] else swim > iid
    iid_better = swim > iid if LOWER_IS_BETTER[task] else swim < iid
    equal = ~swim_better & ~iid_better
    kinds = (
        (swim_better, "SWIM better", COLOURS["RFRBoost"], "o"),
        (iid_better, "i.i.d. better", COLOURS["Boosted trees"], "^"),
        (equal, "equal", INK, "s"),
    )
    limits = np.array([min(swim.min(), iid.min()), max(swim.max(), iid.max())])
    limits += np.array([-0.04, 0.04]) * np.ptp(limits)
    axes.plot(limits, limits, color=FAINT, linewidth=1, zorder=1)
    for chosen, name, colour, marker in kinds:
        if chosen.any():
            axes.scatter(
                swim[chosen],
                iid[chosen],
                s=26,
                color=colour,
                marker=marker,
                alpha=0.7,
                linewidths=0,
                label=f"{name}: {chosen.sum()}",
            )
    axes.set(xlim=limits, ylim=limits, aspect="equal", title=label(str(swim.name)))
    axes.grid()
    axes.legend(loc="upper left", fontsize=8.5, handletextpad=0.2, borderaxespad=0.2)


def _family_legend(figure: "Figure", families: Iterable[str]) -> None:
    """A legend of the colours, below the axes."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(families))
    handles = [Line2D([], [], color=COLOURS[name], marker="o", linestyle="") for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
