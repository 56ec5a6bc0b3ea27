"""From partitions to what a fit takes, read and checked on the workers as row blocks are.

For a single network they are cut anew into chunks, which stay with the workers. The chunks hold the
same rows as those of an array in memory, whatever the partitions are: that is why a fit on a
cluster gives the local model. For an ensemble the encoded rows are streamed to the client.
"""

from collections.abc import Iterator
from copy import copy

import numpy as np

from rfrboost._blocks.block import NamedBlock
from rfrboost._blocks.open import least_weight, scale_weights
from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.table import Part
from rfrboost._dask.chunks import DaskChunks
from rfrboost._dask.cluster import Call, Cluster, Futures
from rfrboost._dask.partitions import Partitions, applied
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Sums
from rfrboost._rows.streamed import INPUTS, Arrays, rows_of_arrays, stacked


def open_partitions(
    partitions: Partitions, source: BlockArrays, sizes: Sizes = SIZES
) -> DaskChunks:
    """All rows whose weight is not negligible, in chunks.

    ``source`` says how partitions are read. The labels found are recorded in it.
    """
    exponent = int(np.frexp(partitions.largest_weight)[1])
    if source.weighted:
        # Weights are divided by a power of two, as those of rows in memory are.
        source.least_weight = least_weight(partitions.largest_weight)
    cluster = partitions.cluster
    if isinstance(source, ClassBlockArrays):
        number_labels(cluster, partitions.blocks, source)
    read = cluster.map(applied, Call(read_partition, (source,)), partitions.blocks)
    lengths = cluster.total(cluster.map(applied, Call(size_of, ()), read)).values[0]
    if not sum(lengths):
        raise ValueError("There are no rows to fit: every partition is empty, or of weight zero.")
    chunks = cut_anew(cluster, read, lengths, bool(source.weighted), sizes)
    if source.weighted:
        scale_weights(chunks, exponent)
    return chunks


def streamed_partitions(partitions: Partitions, source: BlockArrays) -> Iterator[Part]:
    """The rows of all partitions, encoded on the workers and brought to the client.

    Rows of negligible weight are left out. At most two partitions for each worker are under way at
    a time. The labels found are recorded in ``source``.
    """
    cluster = partitions.cluster
    if isinstance(source, ClassBlockArrays):
        number_labels(cluster, partitions.blocks, source)
    call = Call(encoded_partition, (source,))
    blocks = partitions.blocks
    some = partitions.n_workers
    waiting: Futures = []
    for begin in range(0, len(blocks) + some, some):
        coming = cluster.map(applied, call, blocks[begin : begin + some]) if blocks[begin:] else []
        while waiting:
            part: Part = waiting.pop(0).result()
            yield part
        waiting = coming


def number_labels(cluster: Cluster, blocks: Futures, source: ClassBlockArrays) -> None:
    """Find the labels of all rows whose weight is not negligible, and number them in order."""
    found = cluster.total(cluster.map(applied, Call(labels_of, (source,)), blocks)).values[0]
    if found:
        labels = np.unique(np.concatenate(found))
        source.found = [labels]
        source.numbers_of = {label: k for k, label in enumerate(labels)}


def labels_of(block: NamedBlock, source: ClassBlockArrays) -> Sums:
    """The distinct labels of the rows of a partition, without those of negligible weight."""
    _, y, w = copy(source).unread(block)
    y = y[source.counting(y, w)]
    return Sums([np.unique(y)] if len(y) else [])


def read_partition(block: NamedBlock, source: BlockArrays) -> Arrays:
    """The rows of a partition to fit."""
    return encoded_partition(block, source)[:3]


def encoded_partition(block: NamedBlock, source: BlockArrays) -> Part:
    """The rows of a partition to fit, and which of all its rows they are."""
    # A copy of the source, because it records what it reads, and other tasks share it.
    return copy(source).to_fit(block)


def size_of(read: Arrays) -> Sums:
    """The number of rows of a partition to fit, in a list."""
    return Sums([len(read[0])])


def cut_anew(
    cluster: Cluster, read: Futures, rows_of_each: list[int], weighted: bool, sizes: Sizes
) -> DaskChunks:
    """The chunks that the same rows would be cut into in memory.

    A chunk is made of runs: consecutive rows of one partition.
    """
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
    """Partitions cut where chunks begin: the partition's index, and where the run begins and ends.

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


def some_rows(read: Arrays, bounds: tuple[int, int]) -> Arrays:
    """A run of a partition's rows."""
    return rows_of_arrays(read, slice(*bounds))


def item_of(arrays: Arrays, k: int) -> object:
    """X, y or the weights."""
    return arrays[k]
