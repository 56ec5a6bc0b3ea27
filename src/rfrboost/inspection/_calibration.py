"""Calibration: whether what is predicted with probability p happens in a share p of cases."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from rfrboost.inspection._style import COLOURS, FAINT, INK, PALE, heading, panels, plain, text
from rfrboost.inspection._models import predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The 97.5 % point of the normal distribution: intervals of 95 %.
Z = 1.959963984540054


def expected_calibration_error(y: Any, p: Any, *, classes: Any = None, n_bins: int = 10) -> float:
    """How far probabilities are from the shares that come true, on average over rows.

    Probabilities are sorted into bins of equal width; a bin's gap is between their mean and the
    share of its rows in which the event happened, and the error is the mean gap, each bin counted
    with its rows. With two classes the event is the second one; with more it is that the most
    probable class is the right one.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    p : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities: of the second class, or of all classes.
    classes : array-like of shape (n_classes,), optional
        The labels in the order of p's columns; by default those of y, sorted.
    n_bins : int, default=10
        The number of bins.

    Returns
    -------
    float
        0 for perfect calibration, at most 1.

    Examples
    --------
    >>> from rfrboost.inspection import expected_calibration_error
    >>> expected_calibration_error([0, 1, 1, 1], [0.75, 0.75, 0.75, 0.75])
    0.0
    >>> expected_calibration_error(["no", "yes"], [[1.0, 0.0], [0.5, 0.5]])
    0.25
    """
    return reliability(*events(y, p, classes), n_bins).error


def events(y: Any, p: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """For every row whether the event that a probability is of happened, and that probability."""
    y, p = np.asarray(y), np.asarray(p, dtype=float)
    check_consistent_length(y, p)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    columns = 2 if p.ndim == 1 else p.shape[1]
    if len(classes) != columns or columns < 2:
        raise ValueError(
            f"p is of {columns} classes, but there are {len(classes)} labels: pass classes, the "
            "labels in the order of p's columns."
        )
    if not (len(y) and (p >= 0).all() and (p <= 1).all()):
        raise ValueError("p should hold probabilities, numbers from 0 to 1, of at least one row.")
    if columns == 2:
        return y == classes[1], p if p.ndim == 1 else p[:, 1]
    return y == classes[np.argmax(p, axis=1)], p.max(axis=1)


@dataclass
class CalibrationDisplay:
    """A reliability curve: bins that hold rows, from the lowest probability to the highest.

    ``predicted`` is a bin's mean probability, ``observed`` the share in which the event happened,
    ``low`` and ``high`` the ends of its 95 % (Wilson) interval, ``counts`` the number of rows.
    ``edges`` are those of all bins, ``bins`` says which of them hold rows, ``error`` is the
    expected calibration error.
    """

    predicted: np.ndarray
    observed: np.ndarray
    low: np.ndarray
    high: np.ndarray
    counts: np.ndarray
    bins: np.ndarray
    edges: np.ndarray
    error: float
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(
        self,
        probability: str = "predicted probability",
        share: str = "observed share",
        rows: str = "",
        ax: "Axes | None" = None,
    ) -> "CalibrationDisplay":
        """Draw the curve, and how many rows it rests on below; three texts label them."""
        curve, counts = panels(ax, (8, 6.6), heights=(3.6, 1.0))
        curve.plot([0, 1], [0, 1], color=FAINT, linestyle="--", label="perfect calibration")
        curve.errorbar(
            self.predicted,
            self.observed,
            np.abs([self.observed - self.low, self.high - self.observed]),
            fmt="none",
            ecolor=PALE,
            elinewidth=1.5,
            capsize=4,
            label="95 % interval",
        )
        # Area says how much a point weighs, in the picture as in the error.
        area = 25 + 350 * self.counts / self.counts.max()
        curve.scatter(self.predicted, self.observed, area, COLOURS[0], zorder=3)
        curve.scatter([], [], 60, COLOURS[0], label="the model (area: rows)")
        curve.set(xlim=(-0.03, 1.03), ylim=(-0.04, 1.04), ylabel=share)
        subtitle = f"expected calibration error {self.error:.3f}"
        heading(curve, "Calibration", f"{subtitle}; {rows}" if rows else subtitle)
        # Between the panels: inside, points may be anywhere.
        curve.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, frameon=False, labelcolor=INK
        )
        curve.tick_params(labelbottom=False)
        plain(curve, "both")
        self._draw_counts(counts)
        counts.set_xlabel(probability)
        self.ax_, self.figure_ = np.array([curve, counts]), curve.figure
        return self

    def _draw_counts(self, ax: "Axes") -> None:
        """A bar and a number for every bin that holds rows."""
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        bars = ax.bar(middle[self.bins], self.counts, 0.92 / len(middle), color=PALE)
        ax.bar_label(bars, fmt="{:,.0f}", padding=2, fontsize="small", color=INK)
        ax.set(xlim=(-0.03, 1.03), ylabel="rows")
        ax.margins(y=0.3)
        plain(ax)


def reliability(happened: np.ndarray, p: np.ndarray, n_bins: int) -> CalibrationDisplay:
    """The reliability curve of probabilities p of events that happened or not."""
    if n_bins < 1:
        raise ValueError(f"n_bins should be at least 1; got {n_bins}.")
    # A bin holds its upper end if it is the last.
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    filled = np.flatnonzero(counts)
    n = counts[filled]
    predicted, observed = (np.bincount(bins, v, n_bins)[filled] / n for v in (p, happened))
    centre, spread = (observed + Z**2 / (2 * n)) / (1 + Z**2 / n), observed * (1 - observed) / n
    half = Z * np.sqrt(spread + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    error = float(np.average(np.abs(predicted - observed), weights=n))
    low, high, edges = centre - half, centre + half, np.linspace(0, 1, n_bins + 1)
    return CalibrationDisplay(predicted, observed, low, high, n, filled, edges, error)


def plot_calibration(
    model: Any, X: Any = None, y: Any = None, *, n_bins: int = 10, ax: "Axes | None" = None
) -> CalibrationDisplay:
    """The reliability curve of a classifier, with counts and the expected calibration error.

    With two classes the curve is of the second one's probability; with more, of the probability
    of the class that is predicted, against the share of predictions that are right.

    Parameters
    ----------
    model : classifier
        A fitted classifier with ``predict_proba``.
    X, y : array-like, optional
        Rows that the model was not fitted on. An automatic fit can do without X: y is then that of
        ``fit``, and the out-of-fold predictions are used.
    n_bins : int, default=10
        The number of bins of equal width.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    CalibrationDisplay
        With the numbers of the curve, ``error``, ``ax_`` and ``figure_``.
    """
    classes = getattr(model, "classes_", None)
    y, p, rows = predictions(model, X, y, "predict_proba")
    if classes is None:
        raise TypeError(f"Calibration is of classifiers; {type(model).__name__} is none.")
    curve = reliability(*events(y, p, classes), n_bins)
    if len(classes) == 2:
        event = f"“{text(classes[1])}”"
        return curve.plot(f"predicted probability of {event}", f"share of {event}", rows, ax)
    texts = "probability of the predicted class", "share of predictions that are right"
    return curve.plot(*texts, rows, ax)
