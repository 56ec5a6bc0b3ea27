"""Rows in blocks, which a fit reads several times, one block at a time.

For data that memory does not hold. Rows that are in memory are fitted faster as arrays.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from rfrboost._blocks.block import BLOCK_ROWS, NamedBlock, rows_of
from rfrboost._blocks.parquet import DatasetBlocks, ParquetBlocks

# The most bytes of temporary files, unless the user says otherwise: room for a hundred million rows
# of twenty columns.
DISK_BUDGET = 16e9


class RowBlocks:
    """Rows in blocks, for ``fit``: more of them than memory holds.

    Wraps anything that can be iterated several times and gives ``(X, y)`` or ``(X, y, w)``: arrays
    or data frames X, their targets y, and weights w. Blocks may have any number of rows, even zero;
    the fitted model does not depend on it. Every iteration must give the same rows in the same
    order.

    Parameters
    ----------
    blocks : iterable
        A list, or an object whose ``__iter__`` begins anew every time. Generators, which iterate
        only once, are refused.
    spill_dir : path, default=None
        The folder of temporary files; None is the system's folder for them. The files have no names
        and are removed when the fit ends, also if it is killed.
    disk_budget : float, default=16e9
        The most bytes that temporary files may have together. What does not fit is read or computed
        again in every pass over the rows, which takes longer and gives the same model.

    Examples
    --------
    >>> import numpy as np
    >>> from rfrboost import RFRBoostRegressor, RowBlocks
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> y = np.sin(X[:, 0])
    >>> blocks = RowBlocks([(X[:300], y[:300]), (X[300:], y[300:])])
    >>> model = RFRBoostRegressor(n_layers=3, random_state=0).fit(blocks)
    >>> in_memory = RFRBoostRegressor(n_layers=3, random_state=0).fit(X, y)
    >>> bool((model.predict(X) == in_memory.predict(X)).all())
    True
    """

    def __init__(
        self,
        blocks: Iterable[Any],
        *,
        spill_dir: str | Path | None = None,
        disk_budget: float = DISK_BUDGET,
    ) -> None:
        if not isinstance(blocks, Iterable):
            raise TypeError(f"RowBlocks needs an iterable of (X, y) blocks, not {blocks!r}.")
        if isinstance(blocks, Iterator):
            raise TypeError(
                f"A {type(blocks).__name__} iterates once only, and a fit reads its rows several "
                "times. Pass a list, or an object whose __iter__ begins anew every time."
            )
        if not disk_budget >= 0:
            raise ValueError(f"disk_budget is a number of bytes, 0 or more; got {disk_budget!r}.")
        self.blocks = blocks
        self.spill_dir = spill_dir
        self.disk_budget = disk_budget

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """The blocks as (X, y, w); w is None where rows have no weights."""
        for block in self.labelled():
            yield block.X, block.y, block.w

    def labelled(self) -> Iterator[NamedBlock]:
        """The blocks, each with a name for error messages."""
        for number, block in enumerate(self.blocks):
            if isinstance(block, NamedBlock):
                yield block
                continue
            parts = tuple(block) if isinstance(block, tuple | list) else ()
            if len(parts) not in (2, 3):
                raise ValueError(
                    f"Block {number} is not a tuple (X, y) or (X, y, w) but {type(block).__name__}"
                    f"{f' of {len(parts)}' if parts else ''}."
                )
            X, y, w = parts if len(parts) == 3 else (*parts, None)
            yield NamedBlock(f"Block {number}", X, y, w)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        block_rows: int = BLOCK_ROWS,
        spill_dir: str | Path | None = None,
        disk_budget: float = DISK_BUDGET,
    ) -> Self:
        """Blocks of arrays, for example of memory maps; data frames work too.

        Parameters
        ----------
        X : array of shape (n_samples, n_features_in), or data frame
        y : array of shape (n_samples,) or (n_samples, d)
        sample_weight : array of shape (n_samples,), optional
        block_rows : int, default=65536
            Rows that are read at a time.
        spill_dir, disk_budget
            As in :class:`RowBlocks`.

        Returns
        -------
        RowBlocks
        """
        if block_rows < 1:
            raise ValueError(f"block_rows must be at least 1; got {block_rows}.")
        lengths = [np.shape(a)[0] for a in (X, y, sample_weight) if a is not None]
        if len(set(lengths)) > 1:
            raise ValueError(f"X, y and sample_weight differ in length: {lengths}.")
        blocks = Slices(X, y, sample_weight, block_rows)
        return cls(blocks, spill_dir=spill_dir, disk_budget=disk_budget)

    @classmethod
    def from_parquet(
        cls,
        paths: Any,
        *,
        target: str | Sequence[str],
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        spill_dir: str | Path | None = None,
        disk_budget: float = DISK_BUDGET,
    ) -> Self:
        """Blocks of Parquet files, one after the other. Needs pandas and pyarrow.

        Parameters
        ----------
        paths : path, or sequence of paths
            Files, or folders, which stand for their .parquet files, sorted by name.
        target : str or sequence of str
            The column, or columns, to predict.
        weight : str, optional
            The column of weights.
        columns : sequence of str, optional
            The columns of X; by default all columns of the first file but target and weight.
        spill_dir, disk_budget
            As in :class:`RowBlocks`.

        Returns
        -------
        RowBlocks
        """
        blocks = ParquetBlocks(paths, target, weight, columns)
        return cls(blocks, spill_dir=spill_dir, disk_budget=disk_budget)

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        *,
        target: str | Sequence[str],
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        spill_dir: str | Path | None = None,
        disk_budget: float = DISK_BUDGET,
    ) -> Self:
        """Blocks of a ``pyarrow.dataset.Dataset``, in its own order. Needs pandas and pyarrow.

        Parameters
        ----------
        dataset : pyarrow.dataset.Dataset
        target, weight, columns, spill_dir, disk_budget
            As in :meth:`from_parquet`.

        Returns
        -------
        RowBlocks
        """
        blocks = DatasetBlocks(dataset, target, weight, columns)
        return cls(blocks, spill_dir=spill_dir, disk_budget=disk_budget)


class Slices:
    """Arrays or data frames X, y and w (or None), cut into blocks of ``block_rows`` rows."""

    def __init__(self, X: Any, y: Any, w: Any, block_rows: int) -> None:
        self.arrays = (X, y, w)
        self.n_rows = np.shape(X)[0]
        self.block_rows = block_rows

    def __iter__(self) -> Iterator[NamedBlock]:
        for first in range(0, self.n_rows, self.block_rows):
            stop = min(first + self.block_rows, self.n_rows)
            X, y, w = (None if a is None else rows_of(a, slice(first, stop)) for a in self.arrays)
            yield NamedBlock(f"Rows {first} to {stop - 1}", X, y, w)
