"""The demo's picture: the rings at every layer on top, the scores of all models below."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

INK, FAINT = "#222222", "#888888"
# Okabe and Ito's colours, which stay apart under every form of colour blindness.
CLASS_COLOURS = ("#0072B2", "#E69F00", "#CC79A7")
MODEL_COLOURS = {
    "Linear": "#BBBBBB",
    "RFNN": "#56B4E9",
    "Boosted trees": "#F0C75E",
    "RFRBoost": "#C8442B",
}
STYLE: dict[Any, Any] = {
    "font.size": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
}
HEADING: dict[str, Any] = {"x": 0.01, "ha": "left", "fontsize": 15, "fontweight": "bold"}
TITLES = {"accuracy": "Accuracy", "R²": "R², the explained share of the variance"}

Scores = dict[str, dict[str, float]]


def draw(
    path: Path, layers: list[tuple[NDArray, float]], classes: NDArray, scores: dict[str, Scores]
) -> None:
    with rc_context(STYLE):
        figure = Figure(figsize=(15, 9.6), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
        above, below = figure.subfigures(2, 1, height_ratios=[1.02, 1])
        above.suptitle(
            "RFRBoost pulls nine rings apart: the test half in the two coordinates of each layer",
            **HEADING,
        )
        panels = above.subplots(1, len(layers))
        for t, (panel, (cloud, accuracy)) in enumerate(zip(panels, layers, strict=True)):
            draw_cloud(panel, cloud, classes)
            panel.set_title(f"{layer_name(t)}: accuracy {accuracy:.3f}", pad=8)
        draw_scores(below, scores)
        figure.savefig(path, dpi=120)


def layer_name(t: int) -> str:
    return f"$\\Phi_{t}$, {'the input' if t == 0 else f'layer {t}'}"


def draw_cloud(panel: Axes, cloud: NDArray, classes: NDArray) -> None:
    colours = [CLASS_COLOURS[k] for k in classes]
    panel.scatter(cloud[:, 0], cloud[:, 1], c=colours, s=5, linewidths=0, alpha=0.8)
    panel.set(xticks=[], yticks=[], box_aspect=1, xlim=view(cloud[:, 0]), ylim=view(cloud[:, 1]))
    panel.spines[:].set(visible=True, color="#DDDDDD")


def view(coordinate: NDArray) -> tuple[float, float]:
    """Where nearly all the points are: a handful of stragglers must not shrink the rest."""
    low, high = np.quantile(coordinate, [0.002, 0.998])
    margin = 0.1 * (high - low)
    return low - margin, high + margin


def draw_scores(figure: SubFigure, scores: dict[str, Scores]) -> None:
    figure.suptitle("Four models on seven small datasets: scores on the test half", **HEADING)
    widths = [len(of_measure) for of_measure in scores.values()]
    panels = figure.subplots(1, len(scores), width_ratios=widths, sharey=True)
    for panel, (measure, of_measure) in zip(panels, scores.items(), strict=True):
        draw_bars(panel, measure, of_measure)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def draw_bars(panel: Axes, measure: str, scores: Scores) -> None:
    width = 0.21
    for k, (model, colour) in enumerate(MODEL_COLOURS.items()):
        heights = [of_model[model] for of_model in scores.values()]
        left = [i + (k - (len(MODEL_COLOURS) - 1) / 2) * width for i in range(len(scores))]
        drawn = panel.bar(left, heights, 0.92 * width, color=colour, label=model)
        numbers = panel.bar_label(drawn, fmt="%.3f", padding=2, fontsize=8.5)
        for number, of_model in zip(numbers, scores.values(), strict=True):
            is_best = f"{of_model[model]:.3f}" == f"{max(of_model.values()):.3f}"
            number.set(fontweight="bold" if is_best else "normal")
    panel.set_xticks(range(len(scores)), list(scores), fontsize=12)
    panel.tick_params(length=0)
    panel.set_title(TITLES[measure], pad=8)
    panel.set(ylim=(min(0, *[min(s.values()) for s in scores.values()]), 1.08))
    panel.set_axisbelow(True)
    panel.grid(axis="y", color="#EEEEEE")
