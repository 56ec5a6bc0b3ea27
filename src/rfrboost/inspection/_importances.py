"""Importances: which columns of the table the model responds to."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rfrboost._importances import gradient_shares
from rfrboost.inspection._style import COLOURS, INK, heading, panels, plain, text
from rfrboost.inspection._models import column_names, method_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def importances(model: Any, X: Any = None) -> dict[str, float]:
    """Each column's share of the mean squared input gradient, largest first.

    The gradient is taken in units of the columns' standard deviations, and the shares add up to 1.
    A column of the table counts with all that was made of it: the indicators of a category, the
    parts of a date, and whether a value is missing. Categories are differentiated as if they were
    numbers, so ``sklearn.inspection.permutation_importance``, which costs more, is the check.

    Parameters
    ----------
    model : RFRBoostRegressor, RFRBoostClassifier, RFNNRegressor or RFNNClassifier
        A fitted model. Automatic fits know their importances from the training rows.
    X : array-like of shape (n_samples, n_features_in), optional
        For a single network, which does not: the rows to take gradients at.

    Returns
    -------
    dict of column name to share
        ``pandas.Series(importances(model))`` keeps the order.

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
    # Equal shares stay in the order of the table.
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
    """X as finite numbers, or a sentence saying what has importances of any table."""
    try:
        numbers = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if not np.isfinite(numbers).all():
        raise ValueError(
            "Gradients at rows of X say how much its columns matter only where all of them are "
            "numbers without holes. An automatic fit of at least 50 rows has importances of any "
            "table."
        )
    return numbers


@dataclass
class ImportancesDisplay:
    """Shares by column, and their bar chart."""

    shares: dict[str, float]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, top: int = 15, ax: "Axes | None" = None) -> "ImportancesDisplay":
        """Draw the ``top`` columns, and say what all others have together."""
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
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_importances(
    model: Any, X: Any = None, *, top: int = 15, ax: "Axes | None" = None
) -> ImportancesDisplay:
    """A bar chart of :func:`importances`.

    Parameters
    ----------
    model, X
        As for :func:`importances`.
    top : int, default=15
        How many columns get a bar of their own.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ImportancesDisplay
        With ``shares``, ``ax_`` and ``figure_``.
    """
    return ImportancesDisplay(importances(model, X)).plot(top, ax)
