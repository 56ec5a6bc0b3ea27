"""From partitions to chunks: rows checked as those of row blocks are, on the workers."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from distributed import Future

from rfrboost._blocks.block import LabelledBlock
from rfrboost._blocks.held_out import HeldOutRows
from rfrboost._blocks.open import scaled_weights
from rfrboost._blocks.reader import BlockArrays, LabelledArrays
from rfrboost._dask.chunks import DaskChunks
from rfrboost._dask.cluster import Call, Cluster
from rfrboost._dask.partitions import Partitions, applied
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Sums
from rfrboost._rows.streamed import INPUTS, Arrays
from rfrboost._rows.streamed import joined as stacked
from rfrboost._rows.targets import NEGLIGIBLE_WEIGHT

Source = TypeVar("Source", bound=BlockArrays)


@dataclass(frozen=True)
class Read:
    """What a partition comes to: the rows to fit, and those held out, if any."""

    fitted: Arrays
    held: Arrays | None


def opened(partitions: Partitions, source: BlockArrays, sizes: Sizes = SIZES) -> DaskChunks:
    """All rows that count, in chunks. ``source`` says how partitions are read, and is told what
    turned up: the classes there are, and the rows that were held out."""
    exponent = int(np.frexp(partitions.largest_weight)[1])
    if source.weighted:
        # A power of two, so that equal weights of any size give the same bits.
        source.least_weight = float(np.ldexp(NEGLIGIBLE_WEIGHT, exponent))
    cluster = partitions.cluster
    if isinstance(source, LabelledArrays):
        number_labels(cluster, partitions.blocks, source)
    read = cluster.map(applied, Call(read_partition, (source,)), partitions.blocks)
    lengths = cluster.total(cluster.map(applied, Call(size_of, ()), read)).values[0]
    if not sum(lengths):
        raise ValueError("There are no rows to fit: every partition is empty, or of weight zero.")
    if source.held is not None:
        gather_held(cluster, read, source.held)
    chunks = cut_anew(cluster, read, lengths, bool(source.weighted), sizes)
    if source.weighted:
        chunks.set("w", scaled_weights, -exponent)
    return chunks


def number_labels(cluster: Cluster, blocks: list[Future], source: LabelledArrays) -> None:
    """Find the labels of all rows that count, and number them in their order."""
    found = cluster.total(cluster.map(applied, Call(labels_of, (source,)), blocks)).values[0]
    if found:
        labels = np.unique(np.concatenate(found))
        source.found = [labels]
        source.numbers_of = {label: k for k, label in enumerate(labels)}


def labels_of(block: LabelledBlock, source: LabelledArrays) -> Sums:
    """The labels in a partition."""
    _, y, _ = source.present(*copy(source).checked(block))
    return Sums([np.unique(y)] if len(y) else [])


def read_partition(block: LabelledBlock, source: BlockArrays) -> Read:
    """A partition's rows as arrays of numbers."""
    # The source takes notes as it reads, and is the same object for all tasks of a thread.
    X, y, w = source.present(*copy(source).checked(block))
    Y = source.coded(y)
    if source.held is None:
        return Read((X, Y, w), None)
    held = copy(source.held)
    held.begin()
    fitted = held.split(X, Y, w, source.content(y))
    held.close()
    return Read(fitted, (held.X, held.y, held.w))


def size_of(read: Read) -> Sums:
    """How many rows there are to fit."""
    return Sums([len(read.fitted[0])])


def held_of(read: Read) -> Sums:
    """The rows held out."""
    return Sums([read.held])


def gather_held(cluster: Cluster, read: list[Future], held: HeldOutRows) -> None:
    """Bring the rows held out to the client: some 10,000, however many there are."""
    parts = cluster.total(cluster.map(applied, Call(held_of, ()), read)).values[0]
    held.X, held.y, held.w = (np.concatenate(a) for a in zip(*parts, strict=True))
    held.complete = True


def cut_anew(
    cluster: Cluster, read: list[Future], rows_of_each: list[int], weighted: bool, sizes: Sizes
) -> DaskChunks:
    """The chunks that the same rows are cut into in memory, made of runs of partitions."""
    n_rows = sum(rows_of_each)
    whole_chunk = sizes.chunk_rows
    lengths = [min(whole_chunk, n_rows - first) for first in range(0, n_rows, whole_chunk)]
    runs = list(runs_of(rows_of_each, whole_chunk))
    bounds = [run[1:] for run in runs]
    cuts = cluster.map(applied, Call(some_rows, ()), [read[run[0]] for run in runs], bounds)
    grouped: list[list[Future]] = [[] for _ in lengths]
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
    """Partitions cut where chunks begin: the partition's number, and the ends of the run in it."""
    first = 0
    for number, size in enumerate(rows_of_each):
        begin = 0
        while begin < size:
            stop = min(begin + chunk_rows - first % chunk_rows, size)
            yield number, begin, stop
            first, begin = first + stop - begin, stop


def some_rows(read: Read, bounds: tuple[int, int]) -> Arrays:
    """A run of a partition's rows."""
    x, y, w = read.fitted
    s = slice(*bounds)
    return x[s], y[s], None if w is None else w[s]


def item_of(arrays: Arrays, k: int) -> object:
    """X, y or the weights."""
    return arrays[k]
