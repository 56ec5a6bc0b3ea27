"""Importances by column of the table, and their bar chart.

An automatic fit has ``feature_importances_``. For a single network the same formula is applied to
input gradients at given rows. Gradients are local: a steep step in a narrow range can outweigh a
column that matters everywhere. Check with ``sklearn.inspection.permutation_importance``.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rfrboost._auto.importances import gradient_shares
from rfrboost.inspection._models import column_names, method_of
from rfrboost.inspection._style import COLOURS, INK, heading, panels, plain, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importances(model: Any, X: Any = None) -> dict[str, float]:
    """Each column's share of the mean squared input gradient, largest first.

    Columns are measured in their standard deviations, and the shares add up to 1. A column of the
    table counts with everything that it was encoded as: the indicators of a category, the parts of
    a date, and whether a value is missing. Categories are differentiated as if they were numbers.
    ``sklearn.inspection.permutation_importance`` takes longer and is a good check.

    Parameters
    ----------
    model : RFRBoostRegressor, RFRBoostClassifier, RFNNRegressor or RFNNClassifier
        A fitted model. An automatic fit has computed its importances at training rows.
    X : array-like of shape (n_samples, n_features_in), optional
        Needed for a single network: the rows at which gradients are taken. All columns must be
        numbers without missing values.

    Returns
    -------
    dict of column name to share
        In decreasing order, which ``pandas.Series(importances(model))`` keeps.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfrboost import RFRBoostClassifier
    >>> from rfrboost.inspection import importances
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> sorted(list(importances(RFRBoostClassifier(random_state=0).fit(X, y)))[:2])
    ['petal length (cm)', 'petal width (cm)']
    """
    check_is_fitted(model)
    shares = getattr(model, "feature_importances_", None)
    if shares is None:
        shares = shares_at(model, X)
    names = column_names(model)
    # A stable sort keeps equal shares in the order of the table.
    order = np.argsort(-shares, kind="stable")
    return {names[j]: float(shares[j]) for j in order}


def shares_at(model: Any, X: Any) -> np.ndarray:
    """The shares of a single network's columns, from gradients at the rows of X."""
    input_gradient = method_of(model, "input_gradient")
    if X is None:
        raise ValueError(
            f"This {type(model).__name__} has no feature_importances_: pass X, the rows at which "
            "to take input gradients."
        )
    gradient = input_gradient(X)
    deviation = np.std(numbers_of(X), axis=0)
    return gradient_shares(gradient.reshape(*gradient.shape[:2], -1), deviation)


def numbers_of(X: Any) -> np.ndarray:
    """X as finite numbers; other tables are refused."""
    try:
        numbers = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise ValueError(
            "X must contain only numbers, without missing values, to compute importances of a "
            "single network. An automatic fit of at least 50 rows has importances for any table."
        )
    return numbers


@dataclass
class ImportancesDisplay:
    """Importances by column (``shares``), and their bar chart."""

    shares: dict[str, float]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, top: int = 15, ax: "Axes | None" = None) -> "ImportancesDisplay":
        """Draw the ``top`` largest shares, and write the sum of all others above them."""
        values = 100 * np.array(list(self.shares.values()))
        names = [text(name) for name in list(self.shares)[:top]]
        (ax,) = panels(ax, (8, 1.4 + 0.3 * len(names)))
        bars = ax.barh(range(len(names)), values[:top], color=COLOURS[0], height=0.72)
        ax.bar_label(bars, fmt="%.1f", padding=4, color=INK)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.margins(x=0.08, y=0.02)
        ax.set_xlabel("share of the mean squared input gradient, %")
        others = len(values) - len(names)
        rest = f"all others ({others}) together: {values[top:].sum():.1f} %" if others else ""
        heading(ax, "Which columns the model responds to", rest)
        plain(ax, "x")
        ax.tick_params(axis="y", length=0)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def plot_importances(
    model: Any, X: Any = None, *, top: int = 15, ax: "Axes | None" = None
) -> ImportancesDisplay:
    """Draw a bar chart of :func:`importances`.

    Parameters
    ----------
    model, X
        As for :func:`importances`.
    top : int, default=15
        The number of columns that are drawn; the sum of all others is written above the bars.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    ImportancesDisplay
        ``shares``, ``ax_`` and ``figure_``.
    """
    return ImportancesDisplay(importances(model, X)).plot(top, ax)
