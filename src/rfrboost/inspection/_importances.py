"""Importances by column of the table, and their bar chart.

A column's share says how much predictions change when the column is shuffled, in comparison with
the other columns (:mod:`rfrboost._auto.importances` has the formula). An automatic fit has measured
that at training rows, as ``feature_importances_``; :func:`importances` measures it for any model at
any rows.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from rfrboost._auto.importances import column_shares
from rfrboost.inspection._models import column_names, outputs, recombined, table_of
from rfrboost.inspection._style import COLOURS, INK, heading, panels, plain, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The seed by which rows are drawn and columns shuffled.
SEED = 0


def importances(model: Any, X: Any = None) -> dict[str, float]:
    """How much predictions change when a column is shuffled, as shares, largest first.

    A column of the table is shuffled together with everything that it is encoded as: the
    indicators of a category, the parts of a date, and whether a value is missing. The squared
    changes of the predictions (for classification, of the probabilities) are averaged over rows,
    and divided by their sum over columns, so that shares add up to 1. They rank columns as
    ``sklearn.inspection.permutation_importance`` does on held-out rows, and need no labels.

    Parameters
    ----------
    model : RFRBoostRegressor, RFRBoostClassifier, RFNNRegressor or RFNNClassifier
        A fitted model. An automatic fit has computed its importances at training rows.
    X : array-like of shape (n_samples, n_features_in), optional
        The rows to measure at, at least two; needed for a single network. By default the
        ``feature_importances_`` of the fit.

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
    shares = getattr(model, "feature_importances_", None) if X is None else shares_at(model, X)
    if shares is None:
        raise ValueError(
            f"This {type(model).__name__} has no feature_importances_: pass X, the rows at which "
            "to shuffle columns."
        )
    names = column_names(model, X)
    # A stable sort keeps equal shares in the order of the table.
    order = np.argsort(-shares, kind="stable")
    return {names[j]: float(shares[j]) for j in order}


def shares_at(model: Any, X: Any) -> np.ndarray:
    """The shares of the columns at the rows of X."""
    table = table_of(model, X)
    if len(table) < 2:
        raise ValueError(f"X has {len(table)} row(s), but columns are shuffled among at least two.")
    return column_shares(
        lambda indices: outputs(model, recombined(table, indices)),
        len(table),
        table.shape[1],
        np.random.default_rng(SEED),
        same_unit=is_classifier(model),
    )


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
        ax.set_xlabel("share of the change in predictions, %")
        others = len(values) - len(names)
        rest = f"all others ({others}) together: {values[top:].sum():.1f} %" if others else ""
        heading(ax, "Which columns matter", rest)
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
