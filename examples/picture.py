"""The demo's picture: the rings at every layer on top, what all models get wrong below."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import NDArray
from PIL import Image

INK, FAINT, RULE = "#222222", "#6E6E6E", "#E6E6E6"
# Okabe and Ito's colours, which stay apart under every form of colour blindness.
CLASS_COLOURS = ("#0072B2", "#E69F00", "#CC79A7")
LOOKS: dict[str, dict[str, Any]] = {
    "Linear": {"marker": "s", "color": "#999999", "s": 62},
    "RFNN": {"marker": "^", "color": "#56B4E9", "s": 78},
    "Boosted trees": {"marker": "D", "color": "#009E73", "s": 58},
    "RFRBoost": {"marker": "o", "color": "#D55E00", "s": 120, "zorder": 4},
}
STYLE: dict[Any, Any] = {
    "font.size": 12,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
}
HEADING: dict[str, Any] = {"x": 0.012, "ha": "left", "fontsize": 15, "fontweight": "bold"}
AXES = {"accuracy": "test rows misclassified", "R²": "variance of y not explained, 1 − R²"}
TICKS = {
    "accuracy": [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
    "R²": [0.05, 0.1, 0.2, 0.5, 1.0],
}
# Points of the rings that are drawn: more would only be darker, and a larger file.
MOST_POINTS = 3000
N_COLOURS = 96

Errors = dict[str, dict[str, float]]


def draw(
    path: Path, layers: list[tuple[NDArray, float]], classes: NDArray, errors: dict[str, Errors]
) -> None:
    with rc_context(STYLE):
        figure = Figure(figsize=(11, 7.3), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
        above, below = figure.subfigures(2, 1, height_ratios=[1.05, 1])
        above.suptitle("Nine rings, pulled apart layer by layer", **HEADING)
        panels = above.subplots(1, len(layers))
        shown = np.random.default_rng(0).permutation(len(classes))[:MOST_POINTS]
        for t, (panel, (cloud, accuracy)) in enumerate(zip(panels, layers, strict=True)):
            draw_cloud(panel, cloud[shown], classes[shown])
            panel.set_title(f"{layer_name(t)}\naccuracy {accuracy:.3f}", fontsize=12, pad=8)
        draw_errors(below, errors)
        save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write the picture with a palette, which is a third as large and looks the same."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(120)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    picture.quantize(N_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


def layer_name(t: int) -> str:
    return "the input, $\\Phi_0$" if t == 0 else f"layer {t}, $\\Phi_{t}$"


def draw_cloud(panel: Axes, cloud: NDArray, classes: NDArray) -> None:
    colours = [CLASS_COLOURS[k] for k in classes]
    panel.scatter(cloud[:, 0], cloud[:, 1], c=colours, s=5, linewidths=0)
    panel.set(xticks=[], yticks=[], box_aspect=1, xlim=view(cloud[:, 0]), ylim=view(cloud[:, 1]))
    panel.spines[:].set(visible=True, color=RULE)


def view(coordinate: NDArray) -> tuple[float, float]:
    """Where nearly all the points are: a handful of stragglers must not shrink the rest."""
    low, high = np.quantile(coordinate, [0.002, 0.998])
    margin = 0.1 * (high - low)
    return low - margin, high + margin


def draw_errors(figure: SubFigure, errors: dict[str, Errors]) -> None:
    figure.suptitle(
        "What four models get wrong on eight small datasets (left is better)", **HEADING
    )
    panels = figure.subplots(1, len(errors))
    for panel, (measure, of_measure) in zip(panels, errors.items(), strict=True):
        draw_dots(panel, measure, of_measure)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def draw_dots(panel: Axes, measure: str, errors: Errors) -> None:
    """A row for every dataset and a mark for every model, on a logarithmic axis."""
    # No error at all has no place on such an axis: it is drawn at its end.
    least = TICKS[measure][0] / 1.6
    for k, (model, look) in enumerate(LOOKS.items()):
        values = [max(of_model[model], least) for of_model in errors.values()]
        # A little above each other, so that equal errors do not hide one another.
        places = np.arange(len(values)) + 0.13 * (len(LOOKS) / 2 - 0.5 - k)
        panel.scatter(values, places, label=model, linewidths=0, **look)
    panel.set(xscale="log", xlim=(least, max(TICKS[measure]) * 1.5), xlabel=AXES[measure])
    panel.set_xticks(TICKS[measure])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    panel.set_yticks(range(len(errors)), list(errors))
    panel.set_ylim(len(errors) - 0.5, -0.5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    panel.set_axisbelow(True)
    panel.grid(axis="x", color=RULE)
    for i in range(0, len(errors), 2):
        panel.axhspan(i - 0.5, i + 0.5, color="#F5F5F5", zorder=-1)
