"""From partitions to chunks, on the workers: read and checked as row blocks are, then cut anew.

The chunks hold the same rows as those of an array in memory, whatever the partitions are: that is
why a fit on a cluster gives the local model.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np

from rfrboost._blocks.block import NamedBlock
from rfrboost._blocks.held_out import HeldOutRows
from rfrboost._blocks.open import scaled_weights
from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._dask.chunks import DaskChunks
from rfrboost._dask.cluster import Call, Cluster, Futures
from rfrboost._dask.partitions import Partitions, applied
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import NEGLIGIBLE_WEIGHT, Sums
from rfrboost._rows.streamed import INPUTS, Arrays, rows_of_arrays, stacked


@dataclass(frozen=True)
class Read:
    """The rows of a partition: those to fit, and those held out, if any are."""

    fitted: Arrays
    held: Arrays | None


def open_partitions(
    partitions: Partitions, source: BlockArrays, sizes: Sizes = SIZES
) -> DaskChunks:
    """All rows that count, in chunks.

    ``source`` says how partitions are read. The labels found, and the rows held out, are noted in
    it.
    """
    exponent = int(np.frexp(partitions.largest_weight)[1])
    if source.weighted:
        # Divided by a power of two, so that equal weights of any size give the same bits.
        source.least_weight = float(np.ldexp(NEGLIGIBLE_WEIGHT, exponent))
    cluster = partitions.cluster
    if isinstance(source, ClassBlockArrays):
        number_labels(cluster, partitions.blocks, source)
    call = Call(read_partition, (source,))
    read = cluster.map(applied, call, partitions.blocks, partitions.firsts)
    lengths = cluster.total(cluster.map(applied, Call(size_of, ()), read)).values[0]
    if not sum(lengths):
        raise ValueError("There are no rows to fit: every partition is empty, or of weight zero.")
    if source.held is not None:
        gather_held(cluster, read, source.held)
    chunks = cut_anew(cluster, read, lengths, bool(source.weighted), sizes)
    if source.weighted:
        chunks.set("w", scaled_weights, -exponent)
    return chunks


def number_labels(cluster: Cluster, blocks: Futures, source: ClassBlockArrays) -> None:
    """Find the labels of all rows that count, and number them in sorted order."""
    found = cluster.total(cluster.map(applied, Call(labels_of, (source,)), blocks)).values[0]
    if found:
        labels = np.unique(np.concatenate(found))
        source.found = [labels]
        source.numbers_of = {label: k for k, label in enumerate(labels)}


def labels_of(block: NamedBlock, source: ClassBlockArrays) -> Sums:
    """The distinct labels of the rows of a partition that count."""
    _, y, w = copy(source).checked(block)
    y = y[source.counting(w)]
    return Sums([np.unique(y)] if len(y) else [])


def read_partition(block: NamedBlock, first: int, source: BlockArrays) -> Read:
    """A partition as arrays; ``first`` is the place of its first row among all rows."""
    # Copies, because both note what they read, and other tasks share them.
    source = copy(source)
    if source.held is None:
        return Read(source.to_fit(block, first), None)
    source.held = held = copy(source.held)
    held.begin()
    fitted = source.to_fit(block, first)
    held.close()
    return Read(fitted, (held.X, held.y, held.w))


def size_of(read: Read) -> Sums:
    """The number of rows of a partition to fit, in a list."""
    return Sums([len(read.fitted[0])])


def held_of(read: Read) -> Sums:
    """The rows of a partition held out, in a list."""
    return Sums([read.held])


def gather_held(cluster: Cluster, read: Futures, held: HeldOutRows) -> None:
    """Bring the rows held out to the client: about 10,000 at most."""
    parts = cluster.total(cluster.map(applied, Call(held_of, ()), read)).values[0]
    held.X, held.y, held.w = (np.concatenate(a) for a in zip(*parts, strict=True))
    held.complete = True


def cut_anew(
    cluster: Cluster, read: Futures, rows_of_each: list[int], weighted: bool, sizes: Sizes
) -> DaskChunks:
    """The chunks that the same rows are cut into in memory, made of runs of partitions' rows."""
    n_rows = sum(rows_of_each)
    whole_chunk = sizes.chunk_rows
    lengths = [min(whole_chunk, n_rows - first) for first in range(0, n_rows, whole_chunk)]
    runs = list(runs_of(rows_of_each, whole_chunk))
    bounds = [run[1:] for run in runs]
    cuts = cluster.map(applied, Call(some_rows, ()), [read[run[0]] for run in runs], bounds)
    grouped: list[Futures] = [[] for _ in lengths]
    first = 0
    for (begin, stop), cut in zip(bounds, cuts, strict=True):
        grouped[first // whole_chunk].append(cut)
        first += stop - begin
    whole = cluster.map(applied, Call(stacked, ()), grouped)
    names = INPUTS if weighted else INPUTS[:2]
    fields = {
        name: cluster.map(applied, Call(item_of, (k,)), whole) for k, name in enumerate(names)
    }
    return DaskChunks(cluster, lengths, fields, sizes)


def runs_of(rows_of_each: list[int], chunk_rows: int) -> Iterator[tuple[int, int, int]]:
    """Partitions cut where chunks begin: the partition's number, and where the run begins and ends.

    ``rows_of_each`` are the lengths of the partitions.
    """
    first = 0
    for number, size in enumerate(rows_of_each):
        begin = 0
        while begin < size:
            stop = min(begin + chunk_rows - first % chunk_rows, size)
            yield number, begin, stop
            first += stop - begin
            begin = stop


def some_rows(read: Read, bounds: tuple[int, int]) -> Arrays:
    """A run of a partition's rows."""
    return rows_of_arrays(read.fitted, slice(*bounds))


def item_of(arrays: Arrays, k: int) -> object:
    """X, y or the weights."""
    return arrays[k]
