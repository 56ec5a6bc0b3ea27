"""Chunks that are read when they are needed: a fit of more rows than memory holds.

Rows come from a source that can be iterated several times, in blocks of any size, which are cut
into chunks. After the first pass the rows are on disk if the budget allows it; otherwise they are
read from the source in every pass. Values that the fit sets are not computed at once: the functions
that make them are kept, and called when a chunk is visited. Values that take longer to compute than
to write and read are stored on disk too, within the budget; all others are computed again in every
pass. Which of these happens changes the time of a fit, but no bit of its result.
"""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Chunk, Facts, FeatureCache, TreeSum, facts_of
from rfrboost._rows.spill import Spill, SpillFile
from rfrboost._typing import Array, Indices

# The values that the source gives. What is set under these names is a function of each row alone:
# it is applied whenever rows are read, to a whole chunk or to a few of its rows.
INPUTS = ("x", "y", "w")
# Names whose new value may be computed from the old one.
GROWING = (*INPUTS, "phi")

# X (m, D), y (m, k) and weights (m,) or None.
Arrays = tuple[Array, Array, Array | None]
# A function of a chunk, and its further arguments.
Step = tuple[Callable[..., Any], tuple[Any, ...]]


class Field:
    """The values of all rows under one name: a file, and the steps set since it was written.

    ``stored`` says that the file holds the values of every row.
    """

    def __init__(self) -> None:
        self.file: SpillFile | None = None
        self.stored = False
        self.steps: list[Step] = []


class StreamedChunk(Chunk):
    """A chunk whose values are read or computed when they are first used.

    ``given`` are values that come with it, as they were read from the source.
    """

    def __init__(self, first: int, size: int, chunks: "Streamed", given: dict[str, Any]) -> None:
        super().__init__(first, size, chunks.cache, chunks.sizes)
        self._chunks = chunks
        self._given = given
        self._loaded: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._chunks.fields:
            raise AttributeError(name)
        if name not in self._loaded:
            self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> None:
        """Read the value of a name, and apply the steps that were set for it."""
        field = self._chunks.fields[name]
        if name in self._given:
            self._loaded[name] = self._given[name]
        elif field.file is not None and field.stored and (name in GROWING or not field.steps):
            self._loaded[name] = field.file.read(self.first, self.size)
        elif name == "w":
            self._loaded[name] = None
        for function, args in field.steps:
            # Steps read the value before them as an attribute of the chunk.
            self._loaded[name] = function(self, *args)

    def at(self, name: str, rows: Indices) -> Array:
        """The values of some rows; only these are read where that gives the same values."""
        field = self._chunks.fields[name]
        by_rows = field.file is not None and not field.file.fortran
        alone = name in INPUTS or (field.stored and not field.steps and by_rows)
        if name in self._loaded or not alone:
            return super().at(name, rows)
        if name in self._given:
            some = self._given[name][rows]
        else:
            assert field.file is not None
            some = np.concatenate([field.file.read(self.first + int(i), 1) for i in rows])
        values: Array = getattr(
            StreamedChunk(self.first, len(rows), self._chunks, {name: some}), name
        )
        return values


class Streamed:
    """Chunks of the rows that ``source`` gives, the same ones in every iteration.

    ``changed`` are the names that were set since the last sum; the next sum decides whether to
    store them. ``on_disk`` says that the rows themselves are stored.
    """

    def __init__(self, source: Iterable[Arrays], spill: Spill, sizes: Sizes = SIZES) -> None:
        self.source = source
        self.spill = spill
        self.sizes = sizes
        self.cache = FeatureCache(0)
        self.fields: dict[str, Field] = {name: Field() for name in INPUTS}
        self.changed: list[str] = []
        self.on_disk = True
        self.facts = self._first_pass()

    @property
    def remembers(self) -> bool:
        return "phi" in self.fields and self.fields["phi"].stored

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        tree = TreeSum()
        changed = self.changed
        self.changed = []
        for chunk in self._chunks():
            if chunk.first == 0:
                changed = [name for name in changed if self._is_worth_storing(chunk, name)]
            # Values are computed first, so that the function uses the same ones that are stored.
            values = {name: getattr(chunk, name) for name in changed}
            tree.add(function(chunk, *args))
            for name, value in values.items():
                self._store(chunk, name, value)
        for name in changed:
            self.fields[name].steps = []
            self.fields[name].stored = True
        return tree.total()

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        field = self.fields.setdefault(name, Field())
        kept = field.steps if name in GROWING else []
        field.steps = [*kept, (function, args)]
        if name not in INPUTS and name not in self.changed:
            self.changed.append(name)

    def _first_pass(self) -> Facts:
        """Read all rows once, for their facts; they are copied to disk if there is room."""
        tree = TreeSum()
        for first, arrays in cut_into_chunks(self.source, self.sizes.chunk_rows):
            tree.add(facts_of(self._chunk(first, arrays)))
            if self.on_disk:
                self._store_inputs(first, arrays)
        facts: Facts | None = tree.total()
        if facts is None:
            raise ValueError("There are no rows to fit: every block is empty, or of weight zero.")
        return facts

    def _store_inputs(self, first: int, inputs: Arrays) -> None:
        """Write the rows of a chunk to disk, or give up what was written if there is no room."""
        pairs = zip(INPUTS, inputs, strict=True)
        arrays = {name: array for name, array in pairs if array is not None}
        self.on_disk = self.spill.take(sum(array.nbytes for array in arrays.values()))
        for name, array in arrays.items():
            field = self.fields[name]
            if self.on_disk and field.file is None:
                field.file = SpillFile(self.spill, array)
            if self.on_disk and field.file is not None:
                field.file.write(first, array)
                field.stored = True
            else:
                self._give_back(field, first)

    def close_inputs(self) -> None:
        """Free the disk space of the rows themselves, before they are read differently."""
        for name in INPUTS:
            self._give_back(self.fields[name], self.facts.n_rows)

    def _give_back(self, field: Field, n_rows: int) -> None:
        """Close the file of a field, which holds ``n_rows`` rows."""
        if field.file is not None:
            field.file.file.close()
            self.spill.left += n_rows * field.file.row_bytes
        field.file = None
        field.stored = False

    def _chunks(self) -> Iterator[StreamedChunk]:
        """All chunks in order, from disk or from the source."""
        if self.on_disk:
            for first in range(0, self.facts.n_rows, self.sizes.chunk_rows):
                size = min(self.sizes.chunk_rows, self.facts.n_rows - first)
                yield StreamedChunk(first, size, self, {})
            return
        n_rows = 0
        for first, arrays in cut_into_chunks(self.source, self.sizes.chunk_rows):
            n_rows = first + len(arrays[0])
            if n_rows <= self.facts.n_rows:
                yield self._chunk(first, arrays)
        if n_rows != self.facts.n_rows:
            raise ValueError(
                f"The blocks held {self.facts.n_rows} rows when they were first read and hold "
                f"{n_rows} now. They must give the same rows in every iteration."
            )

    def _chunk(self, first: int, arrays: Arrays) -> StreamedChunk:
        given = dict(zip(INPUTS, arrays, strict=True))
        return StreamedChunk(first, len(arrays[0]), self, given)

    def _is_worth_storing(self, chunk: StreamedChunk, name: str) -> bool:
        """Whether to store values that have changed, judged by the first chunk.

        They are stored if there is room and computing them took longer than a write and a read.
        """
        field = self.fields[name]
        began = perf_counter()
        value = getattr(chunk, name)
        seconds = perf_counter() - began
        if field.file is not None:
            return True
        size = value.nbytes / chunk.size * self.facts.n_rows
        slow = seconds > 2 * self.spill.time_for(value.nbytes)
        if slow and self.spill.take(size):
            field.file = SpillFile(self.spill, value)
        return field.file is not None

    def _store(self, chunk: StreamedChunk, name: str, value: Array) -> None:
        file = self.fields[name].file
        if file is not None:
            file.write(chunk.first, value)


def cut_into_chunks(blocks: Iterable[Arrays], chunk_rows: int) -> Iterator[tuple[int, Arrays]]:
    """Blocks of any size cut into ``chunk_rows`` rows each, with the index of the first row."""
    first = 0
    waiting: list[Arrays] = []
    room = chunk_rows
    for block in blocks:
        begin = 0
        while begin < len(block[0]):
            waiting.append(rows_of_arrays(block, slice(begin, begin + room)))
            taken = len(waiting[-1][0])
            begin += taken
            room -= taken
            if not room:
                yield first, stacked(waiting)
                first += chunk_rows
                waiting = []
                room = chunk_rows
    if waiting:
        yield first, stacked(waiting)


def rows_of_arrays(arrays: Arrays, rows: slice) -> Arrays:
    """Some consecutive rows of X, y and weights."""
    x, y, w = arrays
    return x[rows], y[rows], None if w is None else w[rows]


def stacked(blocks: list[Arrays]) -> Arrays:
    """Blocks of rows as one, in C order."""
    x, y, w = zip(*blocks, strict=True)
    weights = None if w[0] is None else np.concatenate(w)
    return stacked_in_c_order(x), stacked_in_c_order(y), weights


def stacked_in_c_order(blocks: tuple[Array, ...]) -> Array:
    """Arrays (m, k) as one, in C order whatever theirs is."""
    out = np.empty((sum(map(len, blocks)), blocks[0].shape[1]))
    return np.concatenate(blocks, out=out)
