"""The figures of the report and of ``evaluate --plots``, made without pyplot."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rfrboost.inspection._calibration import events, reliability
from rfrboost.inspection._dependence import DependenceDisplay, InteractionsDisplay
from rfrboost.inspection._importances import ImportancesDisplay
from rfrboost.inspection._residuals import ResidualsDisplay
from rfrboost.inspection._style import COLOURS, FAINT, INK, heading, plain, text

# The most columns of a bar chart.
MOST_BARS = 15


def figure(size: tuple[float, float], draw: Callable[[Any], object]) -> Any:
    """A figure of a size in inches; ``draw`` is called with its axes."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib, which is not installed: pip install 'rfrboost[plot]'."
        ) from error
    made = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    draw(made.add_subplot())
    return made


def predictions_figure(
    task: str, y: np.ndarray, predicted: np.ndarray, target: str, rows: str
) -> Any:
    """Residuals of a regression, or the calibration of probabilities (n, classes).

    ``rows`` says in the figure which rows these are.
    """
    if task == "regression":
        display = ResidualsDisplay(y, predicted)
        return figure((9, 4.9), lambda ax: display.plot(text(target), rows, ax))
    classes = np.unique(y)
    curve = reliability(*events(y, predicted, classes), 10)
    if len(classes) == 2:
        event = f"“{text(classes[1])}”"
        names = (f"predicted probability of {event}", f"share of {event}")
    else:
        names = ("probability of the predicted class", "share of predictions that are right")
    return figure((8, 6.2), lambda ax: curve.plot(*names, rows, ax))


def importances_figure(shares: dict[str, float]) -> Any:
    """A bar for each of the most important columns."""
    size = (8, 1.6 + 0.3 * min(len(shares), MOST_BARS))
    return figure(size, lambda ax: ImportancesDisplay(shares).plot(MOST_BARS, ax))


def dependence_figure(display: DependenceDisplay, label: str) -> Any:
    """A panel of partial dependence for each column, two in a row."""
    n_lines = -(-len(display.curves) // 2)
    return figure((9, 0.3 + 3.0 * n_lines), lambda ax: display.plot(label, ax))


def interactions_figure(display: InteractionsDisplay) -> Any:
    """A bar for each of the strongest pairs of columns."""
    size = (8, 1.6 + 0.3 * min(len(display.strengths), 10))
    return figure(size, lambda ax: display.plot(10, ax))


def scores_figure(name: str, by_model: Mapping[str, Sequence[float] | np.ndarray]) -> Any:
    """The score of every fold as a point, and its mean as a line, for each model."""

    def draw(ax: Any) -> None:
        for k, values in enumerate(by_model.values()):
            ax.plot(values, np.full(len(values), k), "o", color=COLOURS[k], alpha=0.55)
            ax.plot([np.nanmean(values)] * 2, [k - 0.3, k + 0.3], color=COLOURS[k], linewidth=2.5)
            ax.annotate(
                f"{np.nanmean(values):.4g}",
                (np.nanmean(values), k - 0.34),
                ha="center",
                va="bottom",
                color=INK,
            )
        ax.set_yticks(range(len(by_model)), [text(model) for model in by_model])
        ax.set_ylim(len(by_model) - 0.5, -0.75)
        ax.set_xlabel(f"{name} of held-out rows")
        heading(ax, f"{name} by fold", "points: folds; lines: means")
        plain(ax, "x")
        ax.tick_params(axis="y", length=0, color=FAINT)

    return figure((8, 1.5 + 0.6 * len(by_model)), draw)
