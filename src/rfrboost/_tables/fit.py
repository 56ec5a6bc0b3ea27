"""Fitting an encoder to a training table: columns by kind, and target encodings across folds.

Numbers are scaled, and get an indicator of missing values where enough values are missing. Dates
become the time since 1970 and their place in the year, the week and the day. Categories become
indicator columns if they have few levels, and target encodings if they have many. Columns that do
not vary are left out. What is learned about each column is in
:mod:`rfrboost._tables.statistics`; :func:`fit_encoder` puts it together.
"""

import re
import warnings
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import sparse
from sklearn.utils import _safe_indexing

from rfrboost._numerics.arrays import content_order, frozen, spacing
from rfrboost._tables.encoder import (
    ColumnEncoder,
    Encoder,
    Scale,
    Scaling,
    level_codes,
)
from rfrboost._tables.report import ColumnReport
from rfrboost._tables.sparse_columns import usable_columns
from rfrboost._tables.spellings import MISSING, TRUTH, SpelledColumn, recognised
from rfrboost._tables.statistics import (
    FEWEST_ROWS,
    MOST_INDICATORS,
    NO_SCALE,
    Part,
    Range,
    common_levels,
    constant_column,
    cross_fitted,
    fit_dates,
    fit_indicators,
    fit_numbers,
    fit_scale,
    fit_targets,
)
from rfrboost._tables.table import DATES, LEVELS, NOTHING, NUMBERS, Table, read_table
from rfrboost._typing import Array

# Folds for the target encodings of training rows.
N_FOLDS = 5

# Weights are rounded to multiples of this, in units of their mean. Sums of such numbers over up to
# 10⁸ rows are exact.
WEIGHT_STEP = 2.0**-26

# The largest sum of weights that count rows; every whole number up to it is a float.
MOST_COUNTED = 2.0**53

#: the value of ``categorical_features`` under which types and values say what a column holds
FROM_DTYPE = "from_dtype"

# With fewer rows than this, all values of a column may differ by chance: it is not called an id.
WORTH_A_WARNING = 30

DIGIT = re.compile(r"\d")
TRUTH_WORDS = {word for pair in TRUTH for word in pair.split()}

# Names that ids have: id, customer_id, ID_NO, customerId, index, uuid.
ID_NAME = re.compile(r"(?i:(^|[_\W])(id|uuid|guid|index|key)($|[_\W]))|[a-z]I[dD]$")

#: why a column is not used, by how many different values it has: none, one or several
UNUSED = ("it has no values", "all its values are equal", "too few rows have the same value")


def fit_encoder(
    X: Any,
    y: Any,
    w: Array | None,
    task: str,
    rng: Generator,
    parts: list[Part] | None = None,
    categorical: Any = FROM_DTYPE,
    most_rows: int | None = None,
) -> tuple[Encoder, Array]:
    """An encoder of tables like X, and X encoded by it.

    Encoding X again gives the same array except in target-encoded columns, where rows of the
    training table must not see their own target.

    Parameters
    ----------
    X : table of n rows
    y : array of shape (n,) or, for regression, (n, k)
        Numbers for ``task="regression"``, labels for ``task="classification"``.
    w : array of shape (n,) or None
        Weights as the user gave them. A row of weight 0 has no influence. Weights that are all
        whole numbers count rows; others are divided by their mean. A row of weight 2 gives the same
        encoder as that row twice. Only the target encodings of the training rows themselves differ,
        because equal rows may be in different folds.
    task : {"regression", "classification"}
    rng : Generator
        Deals the rows to folds, by their content and not by their order.
    parts : list of pairs of masks (n,), optional
        Instead of folds. Each pair is a mask of rows to encode, and a mask of the rows whose
        targets these are encoded by. Every row is in exactly one of the first masks.
    categorical : "from_dtype", or names, indices or a mask of columns
        The columns that hold categories even if their values are numbers or dates.
    most_rows : int, optional
        If there are more rows than this, the encoder is fitted to evenly spaced ones
        (:func:`fit_sampled`), unless there are ``parts``.
    """
    if most_rows is not None and len(y) > most_rows and parts is None:
        every = spacing(len(y), most_rows)
        sampled = fit_sampled(X, np.asarray(y), w, task, rng, categorical, every)
        if sampled is not None:
            return sampled
    table = read_table(X)
    forced = chosen_columns(categorical, table)
    y = np.asarray(y)
    if table.array is None and sparse.issparse(X):
        table = replace(table, usable=usable_columns(X, y, task))
    if w is None or (w > 0).all():
        Y = encoding_targets(y, task, counts(w))
        return fit_present(table, Y, counts(w), rng, parts, forced)
    present = np.flatnonzero(w > 0)
    w = counts(w[present])
    Y = encoding_targets(y[present], task, w)
    parts = parts and [(some[present], by[present]) for some, by in parts]
    encoder, encoded = fit_present(table.rows(present), Y, w, rng, parts, forced)
    out = encoder.encode(table)
    out[present] = encoded
    return encoder, out


def fit_sampled(
    X: Any,
    y: np.ndarray,
    w: Array | None,
    task: str,
    rng: Generator,
    categorical: Any,
    every: int,
) -> tuple[Encoder, Array] | None:
    """An encoder that is fitted to the rows whose indices are multiples of ``every``, and all rows
    encoded by it; None if other rows show that a column must be read differently."""
    some = np.arange(0, len(y), every)
    if sparse.issparse(X):
        X = X.tocsr()
    weights = None if w is None else w[some]
    if weights is not None and not weights.any():
        return None
    encoder, encoded = fit_encoder(
        _safe_indexing(X, some), y[some], weights, task, deepcopy(rng), None, categorical
    )
    try:
        out = encoder.encode(read_table(X))
    except ValueError:
        return None
    out[some] = encoded
    return encoder, out


def chosen_columns(categorical: Any, table: Table) -> frozenset[int]:
    """The indices of the columns that a user calls categorical."""
    if isinstance(categorical, str) and categorical == FROM_DTYPE:
        return frozenset()
    chosen = np.asarray(categorical)
    n_columns = table.shape[1]
    if chosen.dtype == bool and chosen.shape == (n_columns,):
        return frozenset(np.flatnonzero(chosen).tolist())
    wanted = [] if chosen.size == 0 else chosen.ravel().tolist()
    places: dict[Any, int] = {name: j for j, name in enumerate(table.names or ())}
    places |= {j - below: j for j in range(n_columns) for below in (0, n_columns)}
    unknown = [column for column in wanted if column not in places]
    if chosen.ndim != 1 or chosen.dtype == bool or unknown:
        what = repr(unknown[0]) if unknown else f"an array of shape {chosen.shape}"
        raise ValueError(
            f"categorical_features has {what}, which is no column of X: pass names of columns, "
            f"their indices, a mask of {n_columns} booleans, or 'from_dtype'."
        )
    return frozenset(places[column] for column in wanted)


@dataclass
class Draft:
    """An encoder that is being put together.

    ``notes`` say how a column was read, ``advice`` is what the user is warned of, and ``texts`` are
    the columns of free text.
    """

    columns: list[ColumnEncoder] = field(default_factory=list)
    scales: list[Scale] = field(default_factory=list)
    spelled: list[SpelledColumn] = field(default_factory=list)
    notes: dict[int, str] = field(default_factory=dict)
    advice: dict[int, str] = field(default_factory=dict)
    texts: set[int] = field(default_factory=set)
    ranges: dict[int, Range] = field(default_factory=dict)

    def add(
        self,
        encoder: ColumnEncoder,
        scales: list[Scale],
        ranges: dict[int, Range] | None = None,
    ) -> None:
        """Add an encoder of columns, unless it writes none, and the scales of what it writes."""
        self.ranges |= ranges or {}
        if scales:
            self.columns.append(encoder)
            self.scales += scales

    def add_text(self, table: Table, column: int, w: Array | None, rare: set[str]) -> bool:
        """Add a column of free text if ``rare``, its texts in few rows each, have several words."""
        # Most tables have no such column.
        from rfrboost._tables.words import fit_text, has_words

        encoder = fit_text(column, table.texts(column), w) if has_words(rare) else None
        if encoder is None:
            return False
        written = np.empty((table.shape[0], len(encoder.sources)))
        encoder(table, written)
        self.add(encoder, [fit_scale(x, w) or NO_SCALE for x in written.T])
        self.texts.add(column)
        return True

    def finished(self, table: Table) -> Encoder:
        """The encoder of everything that was added."""
        columns = tuple(self.columns)
        scaling = stack(self.scales)
        return Encoder(table.names, table.shape[1], columns, scaling, tuple(self.spelled))


class Targets(NamedTuple):
    """The numbers (n, k) that levels are encoded by, and the suffix of each encoded column."""

    values: Array
    suffixes: tuple[str, ...]


def fit_present(
    table: Table,
    Y: Targets,
    w: Array | None,
    rng: Generator,
    parts: list[Part] | None,
    forced: frozenset[int],
) -> tuple[Encoder, Array]:
    """The encoder and the encoded table, where all weights are positive.

    ``forced`` are the columns that hold categories because the user says so.
    """
    draft = Draft()
    kinds = column_kinds(table, forced, draft)
    if draft.spelled:
        table = table.spelled(draft.spelled)
    draft.add(*fit_numbers(table, [j for j, kind in kinds.items() if kind == NUMBERS], w))
    for j in (j for j, kind in kinds.items() if kind == DATES):
        draft.add(*fit_dates(table, j, w))
    many: dict[int, list[str | None]] = {}
    for j in (j for j, kind in kinds.items() if kind == LEVELS):
        many |= fit_levels(draft, table, j, w, j in forced)
    varies = bool(draft.columns or many)
    if not varies:
        # A model needs at least one column.
        draft.add(*constant_column())
    encoder = draft.finished(table)
    encoded = encoder.encode(table)
    if many:
        encoder, encoded = add_targets(draft, table, many, encoded, Y, w, rng, parts)
    used = set(encoder.sources) if varies else set()
    report = tuple(described(table, j, kind, j in used, draft) for j, kind in kinds.items())
    if draft.advice:
        warnings.warn(" ".join(draft.advice.values()), stacklevel=2)
    return replace(encoder, report=report), encoded


def column_kinds(table: Table, forced: frozenset[int], draft: Draft) -> dict[int, str]:
    """The kind of every column, after numbers and dates written as text have been recognised."""
    kinds = {}
    for j in table.usable or range(table.shape[1]):
        column = table.column(j)
        kinds[j] = column.kind
        if j in forced:
            kinds[j] = NOTHING if column.kind == NOTHING else LEVELS
            draft.notes[j] = "categories as requested"
        elif column.kind == LEVELS and not column.declared:
            texts = column.texts()
            spelling, advice = recognised(texts) if may_be_spelled(texts) else (None, "")
            if spelling is not None:
                draft.spelled.append(SpelledColumn(j, spelling))
                draft.notes[j] = f"{spelling.what} written as text"
                kinds[j] = DATES if spelling.what == DATES else NUMBERS
            if advice:
                draft.advice[j] = f"{column.label} {advice}"
    return kinds


def may_be_spelled(texts: list[str | None]) -> bool:
    """Whether a column of text can hold numbers, dates or truth values; most hold words only."""
    present = {text.strip().lower() for text in texts if text is not None}
    return present - MISSING <= TRUTH_WORDS or any(map(DIGIT.search, present))


def fit_levels(
    draft: Draft, table: Table, column: int, w: Array | None, forced: bool
) -> dict[int, list[str | None]]:
    """Add a column of text or categories; if it has many levels, return these instead."""
    texts = table.texts(column)
    levels, weight = common_levels(texts, w)
    recurring = set(levels)
    rare = {text for text in texts if text is not None and text not in recurring}
    mostly_rare = 2 * sum(text in rare for text in texts) > len(texts) - texts.count(None)
    if not forced and mostly_rare and draft.add_text(table, column, w, rare):
        return {}
    if len(levels) > MOST_INDICATORS:
        return {column: levels}
    encoder, scales = fit_indicators(column, texts, levels, weight)
    draft.add(encoder, scales)
    if not scales and len(texts) >= WORTH_A_WARNING and len(rare) > 1:
        draft.advice.setdefault(
            column,
            f"{table.label(column)} is not used: its values have fewer than {FEWEST_ROWS} rows "
            "each, as those of an id. Drop it, or make columns of what is in it.",
        )
    return {}


def stack(scales: list[Scale]) -> Scaling:
    """One scaling of all columns."""
    table = np.array(scales, dtype=float).reshape(-1, len(Scale._fields))
    return Scaling(*(frozen(column) for column in table.T))


# What is said about columns


def described(table: Table, j: int, kind: str, used: bool, draft: Draft) -> ColumnReport:
    """What the fit has found in a column."""
    name = f"x{j}" if table.names is None else table.names[j]
    note = draft.notes.get(j, "")
    if kind == LEVELS:
        texts = table.texts(j)
        levels = len({text for text in texts if text is not None})
        what = "text" if j in draft.texts else "categories"
        why = note if used else UNUSED[min(levels, 2)]
        return ColumnReport(name, what, texts.count(None), levels, None, None, used, why)
    missing, low, high = draft.ranges.get(j, Range(table.shape[0], np.nan, np.nan))
    if np.isnan(low):
        return ColumnReport(name, kind, missing, None, None, None, used, note or UNUSED[0])
    why = note if used else UNUSED[1]
    if kind == DATES:
        first, last = (str(np.datetime64(round(end), "s")) for end in (low, high))
        return ColumnReport(name, kind, missing, None, first, last, used, why)
    if not note and used and ID_NAME.search(name) and is_id(table, j):
        why = "looks like an id: it is different in every row"
        draft.advice[j] = (
            f"{table.label(j)} {why}. It is used as a number; drop it if it only names rows."
        )
    return ColumnReport(name, kind, missing, None, low, high, used, why)


def is_id(table: Table, j: int) -> bool:
    """Whether a column of numbers has a different whole number in every row."""
    x = table.number(j)
    whole = bool((x == np.floor(x)).all())
    return whole and len(x) >= WORTH_A_WARNING and len(np.unique(x)) == len(x)


def counts(w: Array | None) -> Array | None:
    """Weights as numbers of rows: whole numbers unchanged, others divided by their mean.

    The latter are rounded to multiples of WEIGHT_STEP, whose sums are exact in every order of rows.
    Whole numbers with a sum above MOST_COUNTED are divided too: every large float is a whole
    number, so that these need not count rows.
    """
    if w is None or ((w == np.floor(w)).all() and fsum(w) <= MOST_COUNTED):
        return w
    steps = np.round(w / (fsum(w) / len(w)) / WEIGHT_STEP)
    return np.maximum(steps, 1.0) * WEIGHT_STEP


# Target encodings of columns with many levels


def add_targets(
    draft: Draft,
    table: Table,
    many: dict[int, list[str | None]],
    encoded: Array,
    Y: Targets,
    w: Array | None,
    rng: Generator,
    parts: list[Part] | None,
) -> tuple[Encoder, Array]:
    """Add target encodings of columns with many levels.

    ``many`` has these columns and their levels, ``encoded`` (n, D) the other columns encoded.
    """
    codes = {j: level_codes(levels, table.texts(j)) for j, levels in many.items()}
    content = np.column_stack([encoded, *(c / len(many[j]) for j, c in codes.items())])
    # Rows are sorted by their content, so that sums over them are the same to the bit in whatever
    # order they were passed.
    order = content_order(content, Y.values, rng)
    values = Y.values[order]
    weights = None if w is None else w[order]
    given = parts is not None
    parts = dealt(len(order)) if parts is None else [(a[order], b[order]) for a, b in parts]
    columns = [encoded]
    for j, levels in many.items():
        own = codes[j][order]
        texts = table.texts(j)
        encoder, scales = fit_targets(j, texts, levels, own, values, Y.suffixes, weights)
        draft.add(encoder, scales)
        column = np.empty_like(values)
        column[order] = cross_fitted(own, len(levels), values, weights, parts, given)
        stack(scales)(column)
        columns.append(column)
    return draft.finished(table), np.hstack(columns)


def dealt(n: int) -> list[Part]:
    """Masks of each fold of n rows, and of all other rows; neighbours are in different folds."""
    folds = np.arange(n) % N_FOLDS
    return [(folds == fold, folds != fold) for fold in np.unique(folds)]


def encoding_targets(y: np.ndarray, task: str, w: Array | None) -> Targets:
    """The targets that levels are encoded by.

    For regression these are the outputs and their ranks: where outputs have heavy tails, a few rows
    decide the mean of a level, and the mean of the ranks says more. (Ranks are taken over all rows.
    A row's own target moves the ranks of others by one place at most, so that hardly anything of it
    gets into their encodings.) Outputs are divided by a power of two, so that their squares stay
    finite; the encodings are scaled afterwards. For classification they are indicators of the
    classes; with two classes one is enough. Several labels per row, y (n, L), are indicators
    already.
    """
    if task == "regression":
        outputs = np.asarray(y, dtype=float).reshape(len(y), -1)
        small = np.ldexp(outputs, -np.frexp(np.abs(outputs).max(axis=0))[1])
        names = numbered(" target", small.shape[1]) + numbered(" target rank", small.shape[1])
        return Targets(np.column_stack([small, *(ranks(y, w) for y in small.T)]), names)
    if y.ndim == 2:
        return Targets(np.asarray(y, dtype=float), numbered(" target", y.shape[1]))
    classes, codes = np.unique(y, return_inverse=True)
    indicator = (codes[:, None] == np.arange(len(classes))).astype(float)
    values = indicator[:, 1:] if len(classes) == 2 else indicator
    return Targets(values, numbered(" target", values.shape[1]))


def ranks(values: Array, w: Array | None) -> Array:
    """For each value, the share of all weight below it plus half of the share at it (n,)."""
    _, codes = np.unique(values, return_inverse=True)
    weight = np.bincount(codes, w).astype(float)
    shares: Array = ((np.cumsum(weight) - weight / 2) / weight.sum())[codes]
    return shares


def numbered(suffix: str, k: int) -> tuple[str, ...]:
    """The suffixes of k columns: numbered from 0, unless there is only one."""
    return (suffix,) if k == 1 else tuple(f"{suffix} {i}" for i in range(k))
