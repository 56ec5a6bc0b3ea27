"""Residuals: predicted against actual values, and the distribution of their differences."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from rfrboost.inspection._models import predictions
from rfrboost.inspection._style import COLOURS, INK, MOST_POINTS, PALE, heading, panels, plain, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Residuals below this quantile, or above 1 minus it, are counted in the outermost bars.
TAIL = 0.002
N_BARS = 25


@dataclass
class ResidualsDisplay:
    """Actual and predicted values (n,), and the figure of both."""

    actual: np.ndarray
    predicted: np.ndarray
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @property
    def residuals(self) -> np.ndarray:
        """Actual minus predicted."""
        return np.asarray(self.actual - self.predicted)

    @property
    def rmse(self) -> float:
        """The root mean squared residual."""
        return float(np.sqrt(np.mean(np.square(self.residuals))))

    @property
    def r2(self) -> float:
        """The explained share of the variance; NaN if y does not vary."""
        variance = np.var(self.actual)
        return float(1 - self.rmse**2 / variance) if variance > 0 else np.nan

    def plot(
        self, target: str = "y", rows: str = "", ax: "Axes | None" = None
    ) -> "ResidualsDisplay":
        """Draw actual against predicted values, and the distribution of the residuals.

        ``target`` names y on the axes; ``rows`` tells in the subtitle which rows these are.
        """
        left, right = panels(ax, (9, 4.9), widths=(1.0, 1.0))
        self._draw_points(left, target)
        heading(left, "Predicted and actual", f"R² {self.r2:.3f}; {rows}".rstrip("; "))
        self._draw_distribution(right)
        right.set_xlabel(f"actual − predicted {target}")
        heading(right, "Residuals", f"RMSE {digits(self.rmse)}")
        self.ax_ = np.array([left, right])
        self.figure_ = left.figure
        return self

    def _draw_points(self, ax: "Axes", target: str) -> None:
        """Draw actual against predicted values, on equal axes."""
        n = len(self.actual)
        shown = np.arange(n)
        if n > MOST_POINTS:
            shown = np.random.default_rng(0).choice(n, MOST_POINTS, replace=False)
        both = np.concatenate([self.actual, self.predicted])
        ends = both.min(), both.max()
        margin = 0.04 * (ends[1] - ends[0]) or 0.5
        ax.scatter(
            self.predicted[shown],
            self.actual[shown],
            s=18,
            color=COLOURS[0],
            alpha=float(np.clip(12 / np.sqrt(n), 0.2, 0.7)),
            linewidths=0,
            rasterized=True,
        )
        ax.plot(ends, ends, color=INK, linestyle="--", linewidth=1.2, label="predicted = actual")
        limits = (ends[0] - margin, ends[1] + margin)
        ax.set(xlim=limits, ylim=limits, box_aspect=1)
        ax.set(xlabel=f"predicted {target}", ylabel=f"actual {target}")
        ax.legend(loc="upper left", frameon=False, labelcolor=INK)
        plain(ax, "both")

    def _draw_distribution(self, ax: "Axes") -> None:
        """Draw a histogram, with lines between which 90 % of the residuals lie."""
        low, high = np.quantile(self.residuals, [TAIL, 1 - TAIL])
        clipped = np.clip(self.residuals, low, high)
        ax.hist(clipped, N_BARS if high > low else 1, color=PALE, edgecolor="white")
        ax.axvline(0, color=INK, linestyle="--", linewidth=1.2)
        ax.margins(x=0.2, y=0.16)
        for level, side in ((0.05, "right"), (0.95, "left")):
            value = float(np.quantile(self.residuals, level))
            ax.axvline(value, color=COLOURS[1], linewidth=1.5)
            ax.annotate(
                f"{level:.0%}: {digits(value)}",
                (value, 0.985),
                (4 if side == "left" else -4, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha=side,
                va="top",
                color=COLOURS[1],
            )
        ax.set(ylabel="rows", box_aspect=1)
        plain(ax, "y")


def digits(value: float) -> str:
    """A number with three digits; from 1,000 to a million, with all digits before the point."""
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")


def plot_residuals(
    model: Any, X: Any = None, y: Any = None, *, ax: "Axes | None" = None
) -> ResidualsDisplay:
    """Draw predicted against actual values of a regressor, and its residuals' distribution.

    Parameters
    ----------
    model : regressor
        A fitted regressor with one target.
    X, y : array-like, optional
        Rows that the model was not fitted on. For an automatic fit X may be left out; y is then
        the one that was passed to ``fit``, and the out-of-fold predictions are used. If y has a
        name, as a column of a data frame has, it labels the axes.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    ResidualsDisplay
        ``actual``, ``predicted``, ``residuals``, ``rmse``, ``r2``, ``ax_`` and ``figure_``.
    """
    if is_classifier(model):
        raise TypeError(
            f"plot_residuals takes regressors, but {type(model).__name__} is a classifier: use "
            "plot_calibration."
        )
    name = getattr(y, "name", None)
    actual, predicted, rows = predictions(model, X, y, "predict")
    if predicted.ndim > 1 and predicted.shape[1] > 1:
        raise ValueError(
            f"The model predicts {predicted.shape[1]} targets; plot_residuals takes one target."
        )
    display = ResidualsDisplay(actual.astype(float).ravel(), predicted.astype(float).ravel())
    return display.plot("y" if name in (None, "") else text(name), rows, ax)
