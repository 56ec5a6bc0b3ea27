"""How predictions depend on a column, and which pairs of columns act together.

Partial dependence (Friedman, 2001) is the mean prediction with a column set to a value in all rows.
It is what scikit-learn's ``partial_dependence`` computes, but at values that occur in the rows, so
that dates, categories and missing values need no care. An interaction of two columns is measured by
H of Friedman and Popescu (2008): the part of the joint partial dependence of both that is not the
sum of their single ones. Here it is in standard deviations of the predictions. Divided by the
pair's own effect, as in the paper, it would be large for pairs that hardly matter too.
"""

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._importances import importances
from rfrboost.inspection._models import column_names, outputs, recombined, table_of
from rfrboost.inspection._style import COLOURS, INK, PALE, heading, panels, plain, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The most rows that predictions are averaged over, and the most values of a column of numbers or
# dates, or of levels: a curve costs their product in predictions, at most 6,000.
DEPENDENCE_ROWS = 200
GRID = 30
MOST_LEVELS = 15
# The most rows at which H is measured: a pair of columns costs their square in predictions, 1,600.
INTERACTION_ROWS = 40
SEED = 0
# The most characters of the name of a level below its point.
LONGEST_LABEL = 14


@dataclass
class DependenceDisplay:
    """Partial dependence by column: grid values, mean predictions, and quartiles over rows."""

    curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, target: str = "prediction", ax: "Axes | None" = None) -> "DependenceDisplay":
        """Draw a panel for each column, two in a row; ``target`` names the vertical axis."""
        n_lines = -(-len(self.curves) // 2)
        n_beside = min(2, len(self.curves))
        size = (4.5 * n_beside, 3.2 * n_lines)
        axes = panels(ax, size, widths=(1.0,) * n_beside, heights=(1.0,) * n_lines)
        for panel, (name, curve) in zip(axes, self.curves.items(), strict=False):
            draw_curve(panel, *curve)
            panel.set(xlabel=text(name), ylabel=target, ylim=self._limits())
            plain(panel, "y")
        for panel in axes[len(self.curves) :]:
            panel.set_axis_off()
        self.ax_ = np.array(axes[: len(self.curves)])
        self.figure_ = axes[0].figure
        return self

    def _limits(self) -> tuple[float, float]:
        """The same range for all panels, so that their heights can be compared."""
        ends = np.concatenate([np.concatenate(curve[1:]) for curve in self.curves.values()])
        margin = 0.05 * (ends.max() - ends.min()) or 0.5
        return float(ends.min() - margin), float(ends.max() + margin)


def draw_curve(
    ax: "Axes", grid: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """A line over numbers or dates, points over levels; a band or bars between quartiles."""
    if grid.dtype.kind in "fM":
        ax.fill_between(grid, low, high, color=PALE, alpha=0.35, linewidth=0)
        ax.plot(grid, mean, color=COLOURS[0], linewidth=2)
        if grid.dtype.kind == "M":
            ax.tick_params(axis="x", labelrotation=30)
        return
    places = np.arange(len(grid))
    ax.vlines(places, low, high, color=PALE, alpha=0.5, linewidth=6)
    ax.plot(places, mean, "o", color=COLOURS[0])
    labels = [shortened(text(level)) for level in grid]
    ax.set_xlim(-0.6, len(grid) - 0.4)
    ax.set_xticks(places, labels, rotation=30 if len(grid) > 3 else 0, ha="center")


def shortened(label: str) -> str:
    """The name of a level, short enough to stand below its point."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def plot_dependence(
    model: Any,
    X: Any,
    columns: Any = None,
    *,
    top: int = 4,
    ax: "Axes | None" = None,
) -> DependenceDisplay:
    """Draw how the prediction depends on single columns, with all other columns unchanged.

    The line is the mean prediction over rows with the column set to a value (partial dependence);
    the band is where the middle half of the rows lie. A wide band means that other columns change
    the effect. For two classes it is the probability of the second, for more that of the most
    frequent prediction.

    Parameters
    ----------
    model : fitted regressor of one target, or classifier
    X : array-like of shape (n_samples, n_features_in)
        Rows to average over; 200 of them are used at most.
    columns : list of names or indices, optional
        By default the ``top`` most important columns.
    top : int, default=4
        The number of columns if none are named.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    DependenceDisplay
        ``curves``, ``ax_`` and ``figure_``.
    """
    display, label = partial_dependence_of(model, X, columns, top)
    return display.plot(label, ax)


def partial_dependence_of(
    model: Any, X: Any, columns: Any, top: int = 4
) -> tuple[DependenceDisplay, str]:
    """The curves of :func:`plot_dependence`, not yet drawn, and the label of their values."""
    check_is_fitted(model)
    names = column_names(model, X)
    table = sampled(table_of(model, X), DEPENDENCE_ROWS)
    places = chosen_columns(model, X, columns, top, names)
    label, output = drawn_output(model, table)
    curves = {names[j]: curve(model, table, j, output) for j in places}
    return DependenceDisplay(curves), label


def drawn_output(model: Any, table: Any) -> tuple[str, int]:
    """The label and the index of the output that is drawn."""
    if not is_classifier(model):
        return "prediction", 0
    mean = outputs(model, table).mean(axis=0)
    if np.ndim(model.classes_) == 2:
        k = int(np.argmax(mean))
        return f"probability of label {k}", k
    k = 1 if len(mean) == 2 else int(np.argmax(mean))
    return f"probability of “{text(model.classes_[k])}”", k


def curve(
    model: Any, table: Any, column: int, output: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Grid, mean and quartiles of the partial dependence of one column."""
    levels = is_categorical(model, column)
    grid = grid_of(table, column, levels)
    indices = np.tile(np.arange(len(table))[:, None], (len(grid), 1, table.shape[1]))
    indices[:, :, column] = grid[:, None]
    predicted = outputs(model, recombined(table, indices.reshape(-1, table.shape[1])))
    by_value = predicted[:, output].reshape(len(grid), len(table))
    low, high = np.quantile(by_value, [0.25, 0.75], axis=1)
    return values_at(table, column, grid, levels), by_value.mean(axis=1), low, high


def sampled(table: Any, most: int) -> Any:
    """At most ``most`` rows of a table, drawn at random."""
    drawn = np.sort(np.random.default_rng(SEED).permutation(len(table))[:most])
    return table.iloc[drawn] if hasattr(table, "iloc") else table[drawn]


def is_categorical(model: Any, column: int) -> bool:
    """Whether the fit has read a column as categories, also if these are numbers."""
    report = getattr(model, "column_report_", None) or ()
    return column < len(report) and bool(report[column].kind == "categories")


def column_of(table: Any, column: int, levels: bool = False) -> np.ndarray:
    """One column as numbers, dates (datetime64) or levels (objects), with NaN, NaT or None.

    Numbers are ``levels`` if the fit has read them so.
    """
    cells = table.iloc[:, column] if hasattr(table, "iloc") else table[:, column]
    kind = cells.dtype.kind
    if kind in "iuf" and levels:
        return np.array([f"{cell:g}" for cell in np.asarray(cells, dtype=float)], dtype=object)
    if kind in "iuf":
        return np.asarray(cells, dtype=float)
    if kind == "M":
        return np.asarray(cells, dtype="datetime64[ns]")
    return np.asarray(cells, dtype=object)


def grid_of(table: Any, column: int, levels: bool = False) -> np.ndarray:
    """The rows whose values of a column are the grid: at evenly spaced ranks, or one per level.

    Of numbers and dates, the lowest and the highest 2 % are left out, because predictions at single
    extreme values say little. Of more than ``MOST_LEVELS`` levels, the rarest are left out.
    """
    values = column_of(table, column, levels)
    if values.dtype.kind == "O":
        first, counts = level_counts(values)
        kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_LEVELS])
        return first[kept]
    known = np.flatnonzero(values == values)
    if not len(known):
        return np.zeros(1, np.intp)
    order = known[np.argsort(values[known], kind="stable")]
    ranks = np.linspace(0.02, 0.98, GRID) * (len(order) - 1)
    rows = order[np.round(ranks).astype(int)]
    return np.asarray(rows[np.unique(values[rows], return_index=True)[1]])


def level_counts(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row and the count of each level of a column of objects, sorted by their text."""
    texts = np.array([str(value) for value in values])
    _, first, counts = np.unique(texts, return_index=True, return_counts=True)
    return first, counts


def values_at(table: Any, column: int, rows: np.ndarray, levels: bool) -> np.ndarray:
    """The values of a column at some rows; levels as text."""
    values = column_of(table, column, levels)[rows]
    return np.array([str(v) for v in values], dtype=object) if values.dtype == object else values


def chosen_columns(model: Any, X: Any, columns: Any, top: int, names: list[str]) -> list[int]:
    """The indices of the named columns, or of the most important ones."""
    if columns is None:
        stored = hasattr(model, "feature_importances_")
        columns = list(importances(model, None if stored else X))[:top]
    unknown = [c for c in columns if not isinstance(c, int | np.integer) and c not in names]
    if unknown:
        raise ValueError(f"The model has no column {unknown[0]!r}; its columns are {names}.")
    return [int(c) if isinstance(c, int | np.integer) else names.index(c) for c in columns]


@dataclass
class InteractionsDisplay:
    """H of pairs of columns (``strengths``), largest first, and their bar chart.

    H is the standard deviation of the part of two columns' joint partial dependence that is not
    the sum of their single ones, in standard deviations of the predictions: 0 if effects add up.
    """

    strengths: dict[tuple[str, str], float]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, top: int = 10, ax: "Axes | None" = None) -> "InteractionsDisplay":
        """Draw a bar for each of the ``top`` strongest pairs."""
        shown = list(self.strengths.items())[:top]
        (ax,) = panels(ax, (8, 1.4 + 0.3 * len(shown)))
        bars = ax.barh(range(len(shown)), [h for _, h in shown], color=COLOURS[0], height=0.72)
        ax.bar_label(bars, fmt="%.2f", padding=4, color=INK)
        labels = [f"{text(a)} × {text(b)}" for (a, b), _ in shown]
        ax.set_yticks(range(len(shown)), labels)
        ax.invert_yaxis()
        ax.set_xlim(0, max(0.1, *(1.15 * h for _, h in shown)))
        ax.set_xlabel("interaction, in standard deviations of the predictions")
        heading(ax, "Which columns act together")
        plain(ax, "x")
        ax.tick_params(axis="y", length=0)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def interactions(model: Any, X: Any, columns: Any = None, *, top: int = 5) -> InteractionsDisplay:
    """How much every pair of columns acts together, by Friedman and Popescu's H; no figure.

    Parameters
    ----------
    model : fitted regressor or classifier
    X : array-like of shape (n_samples, n_features_in)
        Rows to average over; 40 are used at most, and a pair costs 1,600 predictions.
    columns : list of names or indices, optional
        By default the ``top`` most important columns.
    top : int, default=5
        The number of columns if none are named.

    Returns
    -------
    InteractionsDisplay
        ``strengths``, largest first; ``plot()`` draws them.
    """
    check_is_fitted(model)
    names = column_names(model, X)
    table = sampled(table_of(model, X), INTERACTION_ROWS)
    places = chosen_columns(model, X, columns, top, names)
    _, output = drawn_output(model, table)
    single = {j: joint_dependence(model, table, (j,), output) for j in places}
    spread = float(outputs(model, table)[:, output].std()) or 1.0
    found = {}
    for j, k in combinations(places, 2):
        both = joint_dependence(model, table, (j, k), output)
        rest = both - single[j] - single[k]
        found[names[j], names[k]] = float(np.sqrt(np.mean(rest**2)) / spread)
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return InteractionsDisplay(dict(ordered))


def joint_dependence(model: Any, table: Any, columns: tuple[int, ...], output: int) -> np.ndarray:
    """The centred partial dependence of some columns at the values of every row, (n,)."""
    n, D = table.shape
    indices = np.tile(np.arange(n)[:, None], (n, 1, D))
    for column in columns:
        indices[:, :, column] = np.arange(n)[:, None]
    predicted = outputs(model, recombined(table, indices.reshape(-1, D)))[:, output]
    mean = predicted.reshape(n, n).mean(axis=1)
    return np.asarray(mean - mean.mean())


def plot_interactions(
    model: Any, X: Any, columns: Any = None, *, top: int = 5, ax: "Axes | None" = None
) -> InteractionsDisplay:
    """Draw a bar chart of :func:`interactions`.

    Parameters
    ----------
    model, X, columns, top
        As for :func:`interactions`.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    InteractionsDisplay
        ``strengths``, ``ax_`` and ``figure_``.
    """
    return interactions(model, X, columns, top=top).plot(ax=ax)
