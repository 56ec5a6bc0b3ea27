"""Residuals: predicted against actual values, and how the differences are distributed."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from rfrboost.inspection._style import COLOURS, INK, MOST_POINTS, PALE, heading, panels, plain, text
from rfrboost.inspection._models import predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Residuals further out than these quantiles are counted in the outermost bars.
TAIL = 0.002
N_BARS = 25


@dataclass
class ResidualsDisplay:
    """Actual and predicted values, and what is drawn of them."""

    actual: np.ndarray
    predicted: np.ndarray
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @property
    def residuals(self) -> np.ndarray:
        """Actual minus predicted."""
        return self.actual - self.predicted

    @property
    def rmse(self) -> float:
        """The root mean squared residual."""
        return float(np.sqrt(np.mean(np.square(self.residuals))))

    @property
    def r2(self) -> float:
        """The explained share of the variance (NaN if y does not vary)."""
        variance = np.var(self.actual)
        return float(1 - self.rmse**2 / variance) if variance > 0 else np.nan

    def plot(
        self, target: str = "y", rows: str = "", ax: "Axes | None" = None
    ) -> "ResidualsDisplay":
        """Draw actual against predicted values, and the distribution of the residuals."""
        left, right = panels(ax, (9, 4.9), widths=(1.0, 1.0))
        self._draw_points(left, target)
        heading(left, "Predicted and actual", f"R² {self.r2:.3f}; {rows}".rstrip("; "))
        self._draw_distribution(right)
        right.set_xlabel(f"actual − predicted {target}")
        heading(right, "Residuals", f"RMSE {self.rmse:.4g}")
        self.ax_, self.figure_ = np.array([left, right]), left.figure
        return self

    def _draw_points(self, ax: "Axes", target: str) -> None:
        """Actual against predicted values, on equal axes."""
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
        """A histogram, with the residuals between which nine tenths lie."""
        low, high = np.quantile(self.residuals, [TAIL, 1 - TAIL])
        clipped = np.clip(self.residuals, low, high)
        ax.hist(clipped, N_BARS if high > low else 1, color=PALE, edgecolor="white")
        ax.axvline(0, color=INK, linestyle="--", linewidth=1.2)
        ax.margins(x=0.16, y=0.16)
        for level, side in ((0.05, "right"), (0.95, "left")):
            value = float(np.quantile(self.residuals, level))
            ax.axvline(value, color=COLOURS[1], linewidth=1.5)
            ax.annotate(
                f"{level:.0%}: {value:.3g}".replace("-", "−"),
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


def plot_residuals(
    model: Any, X: Any = None, y: Any = None, *, ax: "Axes | None" = None
) -> ResidualsDisplay:
    """Predicted against actual values of a regressor, and the distribution of its residuals.

    Parameters
    ----------
    model : regressor
        A fitted regressor of one target.
    X, y : array-like, optional
        Rows that the model was not fitted on. An automatic fit can do without X: y is then that of
        ``fit``, and the out-of-fold predictions are used. A named y (a column of a data frame)
        names the axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ResidualsDisplay
        With ``actual``, ``predicted``, ``residuals``, ``rmse``, ``r2``, ``ax_`` and ``figure_``.
    """
    if is_classifier(model):
        raise TypeError(
            f"Residuals are of regressors, and {type(model).__name__} is a classifier: see "
            "plot_calibration."
        )
    name = getattr(y, "name", None)
    actual, predicted, rows = predictions(model, X, y, "predict")
    if predicted.ndim > 1 and predicted.shape[1] > 1:
        raise ValueError(
            f"The model predicts {predicted.shape[1]} targets, and residuals are drawn of one."
        )
    display = ResidualsDisplay(actual.astype(float).ravel(), predicted.astype(float).ravel())
    return display.plot("y" if name in (None, "") else text(name), rows, ax)
