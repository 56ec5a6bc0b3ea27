"""Dask arrays and data frames as partitions of rows: X, y and weights together, as blocks."""

from copy import copy
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed

from rfrboost._blocks.block import NamedBlock, rows_of
from rfrboost._blocks.reader import MIXED_LABELS, BlockArrays, ClassBlockArrays, naming
from rfrboost._blocks.sample import SameColumns, concatenated, contents_of
from rfrboost._dask.cluster import Call, Cluster, Futures
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Sums


def is_array(A: Any) -> bool:
    """Whether this is a Dask array, and not a data frame or a column of one."""
    return isinstance(A, da.Array)


def is_collection(A: Any) -> bool:
    """Whether this is a Dask array, a Dask data frame or a column of one."""
    return is_dask_collection(A) and (is_array(A) or hasattr(A, "_meta"))


def delayed_rows(A: Any) -> list[Delayed]:
    """The partitions of a collection, each with all columns of its rows."""
    if not is_array(A):
        return list(A.to_delayed())
    whole = A.rechunk({1: -1}) if A.ndim > 1 else A
    return list(whole.to_delayed().ravel())


def cut_like(A: Any, X: Any, name: str) -> Any:
    """A cut into the partitions of X, if both are arrays that know their numbers of rows."""
    if not is_array(A) or not is_array(X):
        return A
    lengths = (X.shape[0], A.shape[0])
    if np.isnan(lengths).any():
        return A
    if lengths[0] != lengths[1]:
        raise ValueError(f"X has {lengths[0]} rows and {name} {lengths[1]}.")
    return A.rechunk({0: X.chunks[0]})


class Partitions:
    """All partitions as futures of :class:`~rfrboost._blocks.block.NamedBlock`.

    ``n_rows`` is the number of all rows, ``firsts`` the index of the first row of each partition.
    ``reader`` says how targets and weights are read.
    """

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
                "Give them the same partitions, for example with repartition or rechunk."
            )
        make = delayed(NamedBlock, pure=True)
        no_weights = (None,) if w is None else ()
        blocks = [
            make(f"Partition {i}", *part, *no_weights, dask_key_name=f"block-{cluster.token}-{i}")
            for i, part in enumerate(zip(*rows.values(), strict=True))
        ]
        client: Any = cluster.client
        self.blocks: Futures = client.compute(blocks)
        counted = cluster.map(applied, Call(counts_of, (reader,)), self.blocks)
        lengths, self.largest_weight, labels = cluster.total(counted).values
        if len(labels) > 1:
            raise ValueError(MIXED_LABELS)
        self.n_rows = sum(lengths)
        self.complete = True
        self.n_workers = len(client.nthreads())
        self.firsts = np.cumsum([0, *lengths[:-1]]).tolist()

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of all rows, or of evenly spaced ones if there are many.

        X is of the same type as in the partitions.
        """
        every = 1
        while -(-self.n_rows // every) > self.sizes.sampled_rows:
            every *= 2
        call = Call(every_nth_row, (every, self.reader))
        parts = self.cluster.map(applied, call, self.blocks, self.firsts)
        X, y, w, contents = self.cluster.total(parts).values
        first = SameColumns()
        for block, found in contents:
            with naming(block):
                first.check(found)
        if not X:
            raise ValueError("There are no rows to fit: every partition is empty.")
        weights = None if w[0] is None else np.concatenate(w)
        return concatenated(tuple(X)), np.concatenate(y), weights


def applied(call: Call, piece: Any, *more: Any) -> Any:
    """On a worker: the call's function of one piece of data."""
    return call.function(piece, *more, *call.args)


class Counts(Sums):
    """A list of the lengths of partitions, their largest weight, and whether labels are text."""

    def take(self, part: Sums) -> None:
        lengths, largest, labels = self.values
        more_lengths, other_largest, other_labels = part.values
        self.values = (lengths + more_lengths, max(largest, other_largest), labels | other_labels)


def counts_of(block: NamedBlock, reader: BlockArrays) -> Counts:
    """The length of one partition, its largest weight, and whether its labels are text."""
    largest = 0.0 if block.w is None else np.asarray(block.w, dtype=float).max(initial=0.0)
    labels: set[bool] = set()
    if isinstance(reader, ClassBlockArrays):
        noting = copy(reader)
        with naming(block):
            noting.target(block.y)
        labels = noting.text
    return Counts([np.shape(block.X)[0]], largest, labels)


def every_nth_row(block: NamedBlock, first: int, n: int, reader: BlockArrays) -> Sums:
    """The rows of a partition whose indices among all rows are multiples of n, and its contents."""
    X, y, w = copy(reader).unread(block)
    with naming(block):
        contents = [(block._replace(X=None, y=None, w=None), contents_of(X))]
    some = slice(-first % n, None, n)
    if some.start >= len(y):
        return Sums([], [], [], contents)
    return Sums([rows_of(X, some)], [y[some]], [None if w is None else w[some]], contents)
