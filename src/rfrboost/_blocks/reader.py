"""Blocks as a fit takes them: checked arrays of numbers, whatever they came as."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from rfrboost._blocks.block import LabelledBlock
from rfrboost._blocks.held_out import HeldOutRows
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._tables.encoder import Encoder, differences
from rfrboost._tables.table import is_missing
from rfrboost._typing import Array


def names_of(X: Any) -> list[str] | None:
    """The names of a data frame's columns, if they are all text."""
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None


@contextmanager
def named(block: LabelledBlock) -> Iterator[None]:
    """What is wrong in here is wrong with a block, and says so."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{block.label}: {error}") from error


class BlockArrays:
    """Iterates X (m, D), y (m, k) and weights (m,) of row blocks, as float64.

    X is taken as it is, or as its ``encoder`` writes it. ``n_columns`` and ``names`` are those of
    the first block; every other must have the same. Rows of weight up to ``least_weight`` are as
    good as absent, and so are those that are ``held`` out.
    """

    def __init__(
        self,
        blocks: RowBlocks,
        encoder: Encoder | None = None,
        held: HeldOutRows | None = None,
    ) -> None:
        self.blocks, self.encoder, self.held = blocks, encoder, held
        self.n_columns: int | None = None
        self.names: list[str] | None = None
        self.targets: int | None = None
        self.y_is_1d = True
        self.weighted: bool | None = None
        self.least_weight = self.largest_weight = 0.0
        self.smallest_weight = np.inf

    def __iter__(self) -> Iterator[tuple[Array, Array, Array | None]]:
        for block in self.blocks.labelled():
            X, y, w = self.present(*self.checked(block))
            Y = self.coded(y)
            yield (X, Y, w) if self.held is None else self.held.split(X, Y, w, self.content(y))
        if self.held is not None:
            self.held.close()

    def checked(self, block: LabelledBlock) -> tuple[Array, np.ndarray, Array | None]:
        """A block as arrays; errors name it."""
        with named(block):
            return self._arrays(block)

    def beside(self, block: LabelledBlock) -> tuple[np.ndarray, Array | None]:
        """A block's targets, of as many axes as they came with, and weights; X is not read yet."""
        with named(block):
            y, w = self._targets(block)
        return (y[:, 0] if self.y_is_1d and y.ndim > 1 else y), w

    def present(
        self, X: Array, y: np.ndarray, w: Array | None
    ) -> tuple[Array, np.ndarray, Array | None]:
        """The rows that weigh anything."""
        if w is None:
            return X, y, None
        present = w > self.least_weight
        return X[present], y[present], w[present]

    def _arrays(self, block: LabelledBlock) -> tuple[Array, np.ndarray, Array | None]:
        y, w = self._targets(block)
        return self._numbers(block.X), y, w

    def _targets(self, block: LabelledBlock) -> tuple[np.ndarray, Array | None]:
        self._check_columns(block.X)
        y, n_rows = self.target(block.y), np.shape(block.X)[0]
        w = None if block.w is None else self._weights(block.w)
        if self.weighted is None:
            self.weighted = w is not None
        if self.weighted != (w is not None):
            raise ValueError("all blocks must have weights, or none.")
        if len({n_rows, len(y), n_rows if w is None else len(w)}) > 1:
            parts = f"X has {n_rows} rows and y {len(y)}"
            raise ValueError(parts + ("." if w is None else f", and there are {len(w)} weights."))
        return y, w

    def _numbers(self, X: Any) -> Array:
        if self.encoder is None:
            return check_array(X, dtype=np.float64, input_name="X", ensure_min_samples=0)
        return self.encoder(X) if np.shape(X)[0] else np.empty((0, self.encoder.width))

    def target(self, y: Any) -> np.ndarray:
        """The targets as numbers."""
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", ensure_min_samples=0)
        if self.targets is None:
            self.targets, self.y_is_1d = y.shape[1] if y.ndim > 1 else 1, y.ndim == 1
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[1] != self.targets:
            raise ValueError(f"y has {y.shape[1]} columns, but {self.targets} in the first block.")
        return y

    def coded(self, y: np.ndarray) -> Array:
        """Targets of rows that count, as numbers."""
        return y

    def content(self, y: np.ndarray) -> Array:
        """Numbers that depend on a row's target, and not on the rows before it."""
        return y

    def _weights(self, w: Any) -> Array:
        w = check_array(w, dtype=np.float64, ensure_2d=False, input_name="w", ensure_min_samples=0)
        w = column_or_1d(w)
        if (w < 0).any():
            raise ValueError("weights must be zero or positive.")
        self.largest_weight = max(self.largest_weight, w.max(initial=0.0))
        self.smallest_weight = min(self.smallest_weight, w[w > 0].min(initial=np.inf))
        return w

    def drop_below(self, least: float) -> None:
        """Begin anew, and count rows of so little weight as absent."""
        self.least_weight = least
        if self.held is not None:
            self.held.begin()

    def _check_columns(self, X: Any) -> None:
        if np.ndim(X) != 2:
            raise ValueError(f"X has {np.ndim(X)} axes, not two: rows and columns.")
        n_columns, names = np.shape(X)[1], names_of(X)
        if self.n_columns is None:
            self.n_columns, self.names = n_columns, names
            return
        if names is not None and self.names is not None and names != self.names:
            lacking = [name for name in self.names if name not in set(names)]
            extra = [name for name in names if name not in set(self.names)]
            what = differences(lacking, extra) or "they are in another order"
            raise ValueError(f"the columns of X are not those of the first block: {what}.")
        if n_columns != self.n_columns:
            raise ValueError(f"X has {n_columns} columns, but {self.n_columns} in the first block.")


class LabelledArrays(BlockArrays):
    """The same with class labels of any type, which are numbered as they turn up."""

    def __init__(
        self,
        blocks: RowBlocks,
        encoder: Encoder | None = None,
        held: HeldOutRows | None = None,
    ) -> None:
        super().__init__(blocks, encoder, held)
        self.numbers_of: dict[Any, int] = {}
        self.found: list[np.ndarray] = []
        self.text: bool | None = None

    def target(self, y: Any) -> np.ndarray:
        y = column_or_1d(y)
        if y.dtype.kind == "f" and (not np.isfinite(y).all() or (y != np.round(y)).any()):
            raise ValueError("y holds numbers that are no labels: missing, infinite or continuous.")
        if y.dtype == object and any(map(is_missing, y)):
            raise ValueError("y has missing labels.")
        if len(y):
            text = isinstance(y[0], str)
            if self.text not in (None, text):
                raise ValueError("y has numbers in some blocks and text in others.")
            self.text = text
        return y

    def coded(self, y: np.ndarray) -> Array:
        labels, codes = np.unique(y, return_inverse=True)
        new = [k for k, label in enumerate(labels) if label not in self.numbers_of]
        for k in new:
            self.numbers_of[labels[k]] = len(self.numbers_of)
        if new:
            self.found.append(labels[new])
        numbers = np.array([self.numbers_of[label] for label in labels], float)
        return numbers[codes].reshape(-1, 1)

    def content(self, y: np.ndarray) -> Array:
        labels, codes = np.unique(y, return_inverse=True)
        sums = [crc32(str(label).encode()) / 2.0**32 for label in labels]
        return np.array(sums, float)[codes].reshape(-1, 1)

    def drop_below(self, least: float) -> None:
        super().drop_below(least)
        self.numbers_of, self.found = {}, []

    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """All labels, sorted, and the place of each number among them."""
        labels = np.concatenate(self.found)
        classes, places = np.unique(labels, return_inverse=True)
        return classes, places
