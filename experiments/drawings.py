"""The figures of the comparison, each drawn from scores by dataset and model."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.naming import label, look
from experiments.pictures import COLOURS, FAINT, INK
from experiments.significance import ALPHA, pairwise_p_values
from experiments.summaries import LOWER_IS_BETTER, SCORE, Complete

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def critical_difference(part: Complete) -> "Figure":
    """Average ranks on a line; a bar joins models that the test cannot tell apart."""
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
        # A bar can pass a model that is not one of its own: dots mark those that are.
        crossbar_props={"color": INK, "linewidth": 3, "marker": "o", "markersize": 7},
        text_h_margin=0.2,
    )
    for (bar,) in drawn["crossbars"]:
        # A bar's models come as a set, whose order changes from one process to the next.
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
    """Per model a box with whiskers, and a dot for each dataset; models from top to bottom."""
    from matplotlib.figure import Figure

    models = list(values.columns)
    figure = Figure(figsize=(9, 1.6 + 0.5 * len(models)), layout="constrained")
    axes = figure.add_subplot()
    # A fixed spread of the dots, so that the same scores give the same picture.
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
            showfliers=False,  # every dataset is there as a dot
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
        f"{part.task.capitalize()}: {len(part.datasets)} datasets, a dot each; "
        "box: quartiles, whiskers: 1.5 × their distance",
    )


def twins(part: Complete, pairs: list[tuple[str, str]]) -> "Figure":
    """SWIM against i.i.d. features: a panel a model, a dot a dataset."""
    from matplotlib.figure import Figure

    columns = min(3, len(pairs))
    rows = -(-len(pairs) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.6, 3.7 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    scores = part.scores()
    for axes, (swim, iid) in zip(panels, pairs, strict=False):
        _twin_panel(axes, scores[swim], scores[iid], part.task)
    for axes in panels[len(pairs) :]:
        axes.set_visible(False)
    score = SCORE[part.task]
    figure.supxlabel(f"test {score} with SWIM features", color=INK)
    figure.supylabel(f"test {score} with i.i.d. features", color=INK)
    figure.suptitle(f"{part.task.capitalize()}: {len(scores)} datasets, a dot each")
    return figure


def _twin_panel(axes: "Axes", swim: pd.Series, iid: pd.Series, task: str) -> None:
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
    """What the colours mean, below the axes."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(families))
    handles = [Line2D([], [], color=COLOURS[name], marker="o", linestyle="") for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
