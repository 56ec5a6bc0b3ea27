"""Row blocks as a fit takes them: checked arrays of numbers, whatever type the user passed.

Blocks must agree with the first one in columns, targets and whether rows have weights; an error
names the block that does not. Columns that have names may come in any order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from rfrboost._blocks.block import NamedBlock
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._tables.encoder import Encoder, differences
from rfrboost._tables.table import (
    UNREADABLE,
    by_name,
    is_missing,
    lacking_and_extra,
    unreadable,
    without_arrow,
)
from rfrboost._typing import Array, Mask

MIXED_LABELS = "y holds numbers in some rows and text in others: make all labels one type."


def names_of(X: Any) -> list[str] | None:
    """The names of a data frame's columns if they are all text, else None."""
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


def numbers(A: Any, name: str, two_axes: bool = False) -> Array:
    """An array of finite numbers in float64, which may be empty; errors name it."""
    checked: Array = check_array(
        A, dtype=np.float64, ensure_2d=two_axes, input_name=name, ensure_min_samples=0
    )
    return checked


@contextmanager
def naming(block: NamedBlock) -> Iterator[None]:
    """Let errors that are raised inside begin with the name of the block."""
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(f"{block.name}: X, y or the weights") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{block.name}: {error}") from error


class BlockArrays:
    """Iterates over row blocks as arrays X (m, D), y (m, k) and w (m,) or None, in float64.

    X is encoded if there is an ``encoder``. ``n_columns``, ``names`` and ``targets`` (the number of
    columns of y) are those of the first block, and every other block must have the same.
    ``former_names`` are those of a model that layers are added to: every block is brought to these
    columns first. Rows of weight up to ``least_weight`` are left out.
    """

    def __init__(self, blocks: RowBlocks, encoder: Encoder | None = None) -> None:
        self.blocks = blocks
        self.encoder = encoder
        self.n_columns: int | None = None
        self.names: list[str] | None = None
        self.former_names: list[str] | None = None
        self.targets: int | None = None
        self.y_is_1d = True
        self.weighted: bool | None = None
        self.least_weight = self.largest_weight = 0.0
        self.smallest_weight = np.inf

    def __iter__(self) -> Iterator[tuple[Array, Array, Array | None]]:
        for block in self.blocks.labelled():
            yield self.to_fit(block)[:3]

    def to_fit(self, block: NamedBlock) -> tuple[Array, Array, Array | None, Mask]:
        """X, y and weights of a block's rows whose weight is not negligible, and a mask of them."""
        X, y, w = self.checked(block)
        counting = self.counting(y, w)
        if counting.all():
            return X, self.coded(y), w, counting
        return X[counting], self.coded(y[counting]), None if w is None else w[counting], counting

    def checked(self, block: NamedBlock) -> tuple[Array, np.ndarray, Array | None]:
        """X, y and weights of all rows of a block; errors name it."""
        with naming(block):
            X = self._ordered(block.X)
            y, w = self._targets(block)
            return self._encoded(X), y, w

    def unread(self, block: NamedBlock) -> tuple[Any, np.ndarray, Array | None]:
        """X, not read but in the order of the first block, y as the user's, and weights."""
        with naming(block):
            X = self._ordered(block.X)
            y, w = self._targets(block)
        return X, (y[:, 0] if self.y_is_1d and y.ndim > 1 else y), w

    def counting(self, y: np.ndarray, w: Array | None) -> Mask:
        """Which rows weigh enough to count, as a mask (m,); all if there are no weights."""
        return np.ones(len(y), bool) if w is None else w > self.least_weight

    def _targets(self, block: NamedBlock) -> tuple[np.ndarray, Array | None]:
        """y and weights of a block, checked beside its X."""
        y = self.target(block.y)
        n_rows = np.shape(block.X)[0]
        w = None if block.w is None else self._weights(block.w)
        if self.weighted is None:
            self.weighted = w is not None
        if self.weighted != (w is not None):
            raise ValueError("all blocks must have weights, or none of them.")
        if len({n_rows, len(y), n_rows if w is None else len(w)}) > 1:
            parts = f"X has {n_rows} rows and y {len(y)}"
            raise ValueError(parts + ("." if w is None else f", and there are {len(w)} weights."))
        return y, w

    def _encoded(self, X: Any) -> Array:
        """X as an array of finite numbers."""
        if self.encoder is None:
            return numbers(X, "X", two_axes=True)
        n_rows = np.shape(X)[0]
        return self.encoder(X, warn=False) if n_rows else np.empty((0, self.encoder.width))

    def target(self, y: Any) -> np.ndarray:
        """The targets of a block, checked: numbers (m, k), or labels (m,)."""
        y = numbers(y, "y")
        if self.targets is None:
            self.targets = y.shape[1] if y.ndim > 1 else 1
            self.y_is_1d = y.ndim == 1
        columns: np.ndarray = y[:, None] if y.ndim == 1 else y
        if columns.shape[1] != self.targets:
            raise ValueError(
                f"y has {columns.shape[1]} columns, but {self.targets} in the first block."
            )
        return columns

    def coded(self, y: np.ndarray) -> Array:
        """The targets of rows, already without those of negligible weight, as numbers (m, k)."""
        return y

    def _weights(self, w: Any) -> Array:
        """The weights of a block, checked; notes the extremes of the positive ones."""
        weights: Array = column_or_1d(numbers(w, "w"))
        if (weights < 0).any():
            raise ValueError("weights must be zero or positive.")
        positive = weights[weights > 0]
        self.largest_weight = max(self.largest_weight, positive.max(initial=0.0))
        self.smallest_weight = min(self.smallest_weight, positive.min(initial=np.inf))
        return weights

    def drop_below(self, least: float) -> None:
        """Leave out rows of weight up to ``least`` from now on: the rows are then read again."""
        self.least_weight = least

    def _of_last_fit(self, X: Any) -> Any:
        """X with the columns of the model that layers are added to, if there is one."""
        names = names_of(X)
        if self.former_names is None or names is None:
            return X
        lacking, _ = lacking_and_extra(self.former_names, names)
        if lacking:
            raise ValueError(
                "the columns of X are not those of the last fit, which warm_start adds layers to: "
                f"{differences(lacking, [])}."
            )
        return by_name(X, self.former_names)

    def _ordered(self, X: Any) -> Any:
        """X with the columns of the first block, in its order; other columns are refused."""
        X = self._of_last_fit(without_arrow(X))
        shape = np.shape(X)
        if len(shape) != 2:
            raise ValueError(f"X has {len(shape)} axes, not two: rows and columns.")
        names = names_of(X)
        if self.n_columns is None:
            self.n_columns, self.names = shape[1], names
            return X
        if names is not None and self.names is not None and names != self.names:
            lacking, extra = lacking_and_extra(self.names, names)
            if lacking or extra:
                what = differences(lacking, extra)
                raise ValueError(f"the columns of X are not those of the first block: {what}.")
            X = by_name(X, self.names)
        if shape[1] != self.n_columns:
            raise ValueError(f"X has {shape[1]} columns, but {self.n_columns} in the first block.")
        return X


class ClassBlockArrays(BlockArrays):
    """Row blocks whose targets are class labels of any type.

    ``coded`` numbers the labels in the order in which they are found: y is (m, 1).
    """

    def __init__(self, blocks: RowBlocks, encoder: Encoder | None = None) -> None:
        super().__init__(blocks, encoder)
        self.numbers_of: dict[Any, int] = {}
        self.found: list[np.ndarray] = []
        #: whether labels are text, once there are any
        self.text: set[bool] = set()

    def target(self, y: Any) -> np.ndarray:
        shape = np.shape(y)
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"y has {shape[1]} columns. Several labels per row are fitted to rows in memory "
                "only: pass arrays or data frames, or fit a model for each label."
            )
        labels: np.ndarray = column_or_1d(y)
        whole = labels.dtype.kind != "f" or (
            np.isfinite(labels).all() and (labels == np.round(labels)).all()
        )
        if not whole:
            raise ValueError(
                "y holds numbers that cannot be class labels: missing, infinite or continuous."
            )
        mixed = labels.dtype == object
        if mixed and any(map(is_missing, labels)):
            raise ValueError("y has missing labels.")
        if len(labels):
            kinds = {isinstance(label, str) for label in labels[: None if mixed else 1]} | self.text
            if len(kinds) > 1:
                raise ValueError(MIXED_LABELS)
            self.text = kinds
        return labels

    def coded(self, y: np.ndarray) -> Array:
        labels, codes = np.unique(y, return_inverse=True)
        new = [k for k, label in enumerate(labels) if label not in self.numbers_of]
        for k in new:
            self.numbers_of[labels[k]] = len(self.numbers_of)
        if new:
            self.found.append(labels[new])
        number = np.array([self.numbers_of[label] for label in labels], float)
        return number[codes].reshape(-1, 1)

    def drop_below(self, least: float) -> None:
        super().drop_below(least)
        self.numbers_of = {}
        self.found = []

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """All labels, sorted, and for each number of ``coded`` the label's index among them."""
        labels = np.concatenate(self.found)
        classes, places = np.unique(labels, return_inverse=True)
        return classes, places
