"""Calibration: whether events that are predicted with probability p happen in a share p of rows.

The reliability curve compares both in bins of equal width (DeGroot and Fienberg, 1983); the
expected calibration error is their mean distance (Naeini, Cooper and Hauskrecht, 2015). Use rows
that the model was not fitted on; a curve of training rows says nothing about new ones. With few
rows, gaps within the intervals may be chance.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from rfrboost.inspection._models import predictions
from rfrboost.inspection._style import COLOURS, FAINT, INK, PALE, heading, panels, plain, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The 97.5 % quantile of the normal distribution, for intervals that cover 95 %.
Z = 1.959963984540054


def expected_calibration_error(y: Any, p: Any, *, classes: Any = None, n_bins: int = 10) -> float:
    """The mean distance between predicted probabilities and observed shares.

    Rows are sorted into bins of equal width by their probability. The gap of a bin is the distance
    between its mean probability and the share of its rows in which the event happened. The error
    is the mean of the gaps, weighted by the number of rows. With two classes the event is the
    second class; with more it is that the most probable class is the right one.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels.
    p : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the second class, or of all classes.
    classes : array-like of shape (n_classes,), optional
        The labels in the order of the columns of p; by default the sorted labels of y.
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
    """For every row, whether the event happened and the probability that was predicted for it."""
    y = np.asarray(y)
    p = np.asarray(p, dtype=float)
    check_consistent_length(y, p)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    columns = 2 if p.ndim == 1 else p.shape[1]
    if len(classes) != columns or columns < 2:
        raise ValueError(
            f"p has probabilities of {columns} classes, but y has {len(classes)} labels: pass "
            "classes, the labels in the order of the columns of p."
        )
    if not (len(y) and (p >= 0).all() and (p <= 1).all()):
        raise ValueError("p must contain probabilities, numbers from 0 to 1, of at least one row.")
    if columns == 2:
        return y == classes[1], p if p.ndim == 1 else p[:, 1]
    return y == classes[np.argmax(p, axis=1)], p.max(axis=1)


@dataclass
class CalibrationDisplay:
    """A reliability curve: one entry per bin that has rows, by increasing probability.

    ``predicted`` is the mean probability in a bin, ``observed`` the share of its rows in which the
    event happened, ``low`` and ``high`` the ends of the 95 % interval of that share (Wilson, 1927),
    and ``counts`` the number of rows. ``bins`` are the indices of these bins among all bins, whose
    edges are ``edges``. ``error`` is the expected calibration error.
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
        """Draw the curve, and below it the number of rows in each bin.

        ``probability`` and ``share`` label the two axes; ``rows`` tells in the subtitle which rows
        these are.
        """
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
        # The area of a point shows how much its bin counts in the error.
        area = 25 + 350 * self.counts / self.counts.max()
        curve.scatter(self.predicted, self.observed, area, COLOURS[0], zorder=3)
        curve.scatter([], [], 60, COLOURS[0], label="the model (area: rows)")
        curve.set(xlim=(-0.03, 1.03), ylim=(-0.04, 1.04), ylabel=share)
        subtitle = f"expected calibration error {self.error:.3f}"
        heading(curve, "Calibration", f"{subtitle}; {rows}" if rows else subtitle)
        # Between the panels, because points may be anywhere inside.
        curve.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, frameon=False, labelcolor=INK
        )
        curve.tick_params(labelbottom=False)
        plain(curve, "both")
        self._draw_counts(counts)
        counts.set_xlabel(probability)
        self.ax_ = np.array([curve, counts])
        self.figure_ = curve.figure
        return self

    def _draw_counts(self, ax: "Axes") -> None:
        """Draw a bar and a number for every bin that has rows."""
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        bars = ax.bar(middle[self.bins], self.counts, 0.92 / len(middle), color=PALE)
        ax.bar_label(bars, fmt="{:,.0f}", padding=2, fontsize="small", color=INK)
        ax.set(xlim=(-0.03, 1.03), ylabel="rows")
        ax.margins(y=0.3)
        plain(ax)


def reliability(happened: np.ndarray, p: np.ndarray, n_bins: int) -> CalibrationDisplay:
    """The reliability curve of probabilities p (n,); ``happened`` (n,) are the events' outcomes."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins}.")
    # Only the last bin includes its upper edge.
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    filled = np.flatnonzero(counts)
    n = counts[filled]
    predicted, observed = (np.bincount(bins, v, n_bins)[filled] / n for v in (p, happened))
    # Wilson's interval of a share.
    centre = (observed + Z**2 / (2 * n)) / (1 + Z**2 / n)
    spread = observed * (1 - observed) / n
    half = Z * np.sqrt(spread + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    error = float(np.average(np.abs(predicted - observed), weights=n))
    edges = np.linspace(0, 1, n_bins + 1)
    low = centre - half
    high = centre + half
    return CalibrationDisplay(predicted, observed, low, high, n, filled, edges, error)


def plot_calibration(
    model: Any, X: Any = None, y: Any = None, *, n_bins: int = 10, ax: "Axes | None" = None
) -> CalibrationDisplay:
    """Draw the reliability curve of a classifier, with counts and expected calibration error.

    With two classes the curve shows the probability of the second class. With more it shows the
    probability of the predicted class against the share of predictions that are right. Of several
    labels per row it shows the probabilities of all of them.

    Parameters
    ----------
    model : classifier
        A fitted classifier with ``predict_proba``.
    X, y : array-like, optional
        Rows that the model was not fitted on. For an automatic fit X may be left out; y is then
        the one that was passed to ``fit``, and the out-of-fold predictions are used.
    n_bins : int, default=10
        The number of bins of equal width.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    CalibrationDisplay
        The numbers of the curve, ``error``, ``ax_`` and ``figure_``.
    """
    classes = getattr(model, "classes_", None)
    y, p, rows = predictions(model, X, y, "predict_proba")
    if classes is None:
        raise TypeError(f"plot_calibration takes classifiers; {type(model).__name__} is not one.")
    if np.ndim(classes) == 2:
        curve = reliability(*events(y.ravel(), p.ravel(), classes[0]), n_bins)
        return curve.plot("predicted probability of a label", "share of rows with it", rows, ax)
    curve = reliability(*events(y, p, classes), n_bins)
    if len(classes) == 2:
        event = f"“{text(classes[1])}”"
        return curve.plot(f"predicted probability of {event}", f"share of {event}", rows, ax)
    share = "share of predictions that are right"
    return curve.plot("probability of the predicted class", share, rows, ax)
