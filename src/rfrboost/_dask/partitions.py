"""Dask arrays and data frames as partitions of rows: X, y and weights side by side."""

from copy import copy
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Future

from rfrboost._blocks.block import LabelledBlock, rows_of
from rfrboost._blocks.reader import BlockArrays
from rfrboost._blocks.sample import joined
from rfrboost._dask.cluster import Call, Cluster
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Sums


def is_array(A: Any) -> bool:
    """Whether this is a Dask array; other collections of rows are data frames and their columns."""
    return isinstance(A, da.Array)


def is_collection(A: Any) -> bool:
    """Whether this is rows on Dask: an array, a data frame or a column of one."""
    return dask.is_dask_collection(A) and (is_array(A) or hasattr(A, "_meta"))


def delayed_rows(A: Any) -> list[Delayed]:
    """The partitions of a collection, whole rows each."""
    if not is_array(A):
        return list(A.to_delayed())
    whole = A.rechunk({1: -1}) if A.ndim > 1 else A
    return list(whole.to_delayed().ravel())


def cut_like(A: Any, X: Any, name: str) -> Any:
    """An array cut as X is, where both know their chunks."""
    if not is_array(A) or not is_array(X):
        return A
    lengths = X.shape[0], A.shape[0]
    if np.isnan(lengths).any():
        return A
    if lengths[0] != lengths[1]:
        raise ValueError(f"X has {lengths[0]} rows and {name} {lengths[1]}.")
    return A.rechunk({0: X.chunks[0]})


class Partitions:
    """All partitions as futures of labelled blocks; what is known of them at a first look."""

    def __init__(
        self,
        cluster: Cluster,
        reader: BlockArrays,
        X: Any,
        y: Any,
        w: Any,
        sizes: Sizes = SIZES,
    ) -> None:
        self.cluster = cluster
        self.reader = reader
        self.sizes = sizes
        columns = {"X": X, "y": y} | ({} if w is None else {"sample_weight": w})
        rows = {name: delayed_rows(cut_like(A, X, name)) for name, A in columns.items()}
        counts = {name: len(parts) for name, parts in rows.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(
                f"X, y and sample_weight are cut differently: they have {counts} partitions. "
                "Repartition them alike."
            )
        make = dask.delayed(labelled, pure=True)
        blocks = [
            make(f"Partition {i}", *part, dask_key_name=f"labelled-{cluster.token}-{i}")
            for i, part in enumerate(zip(*rows.values(), strict=True))
        ]
        self.blocks: list[Future] = cluster.client.compute(blocks)
        counted = cluster.map(applied, Call(counts_of, ()), self.blocks)
        lengths, self.largest_weight = cluster.total(counted).values
        self.n_rows = sum(lengths)
        self.firsts = np.cumsum([0, *lengths[:-1]]).tolist()

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """All rows, or evenly spaced ones where they are many; X of the kind it came in."""
        every = 1
        while -(-self.n_rows // every) > self.sizes.sampled_rows:
            every *= 2
        call = Call(every_so_manieth, (every, self.reader))
        parts = self.cluster.map(applied, call, self.blocks, self.firsts)
        X, y, w = self.cluster.total(parts).values
        if not X:
            raise ValueError("There are no rows to fit: every partition is empty.")
        weights = None if w[0] is None else np.concatenate(w)
        return joined(tuple(X)), np.concatenate(y), weights


def labelled(label: str, X: Any, y: Any, w: Any = None) -> LabelledBlock:
    """A partition's rows."""
    return LabelledBlock(label, X, y, w)


def applied(call: Call, piece: Any, *more: Any) -> Any:
    """The call's function of one piece of data."""
    return call.function(piece, *more, *call.args)


class Counts(Sums):
    """Sizes of partitions, and the largest weight."""

    def take(self, part: Sums) -> None:
        (sizes, largest), (others, theirs) = self.values, part.values
        self.values = (sizes + others, max(largest, theirs))


def counts_of(block: LabelledBlock) -> Counts:
    """The same of one partition."""
    largest = 0.0 if block.w is None else np.asarray(block.w, dtype=float).max(initial=0.0)
    return Counts([np.shape(block.X)[0]], largest)


def every_so_manieth(block: LabelledBlock, first: int, every: int, reader: BlockArrays) -> Sums:
    """Rows of a partition whose numbers among all are multiples of ``every``."""
    y, w = copy(reader).beside(block)
    some = slice(-first % every, None, every)
    if some.start >= len(y):
        return Sums([], [], [])
    return Sums([rows_of(block.X, some)], [y[some]], [None if w is None else w[some]])
