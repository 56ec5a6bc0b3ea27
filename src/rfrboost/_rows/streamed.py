"""Chunks of rows that are read when they are needed: a fit of more rows than memory holds.

Rows come from a source that can be iterated again and again, in blocks of any size, which are cut
anew into chunks. What was read is spilled to disk if the budget allows; otherwise it is read from
the source in every pass. Of what the fit sets for rows, that is spilled which takes longer to
compute than to write and read, again within the budget; the rest is made again from the rest.
"""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Chunk, Facts, FeatureCache, TreeSum, facts_of
from rfrboost._rows.spill import Spill, SpillFile
from rfrboost._typing import Array, Indices

#: what rows come with; anything set under these names is applied whenever they are read, to any
#: rows, each by itself
INPUTS = ("x", "y", "w")


#: names whose new value may be made of the old one
GROWING = (*INPUTS, "phi")


Arrays = tuple[Array, Array, Array | None]


Step = tuple[Callable[..., Any], tuple[Any, ...]]


class Field:
    """What all rows have under a name: where it is on disk, and the steps since it was written.

    ``stored`` says that all of it has been written.
    """

    def __init__(self) -> None:
        self.file: SpillFile | None = None
        self.stored = False
        self.steps: list[Step] = []


class StreamedRows(Chunk):
    """A chunk whose parts are read or made when they are first asked for."""

    def __init__(self, first: int, size: int, chunks: "Streamed", given: dict[str, Any]) -> None:
        super().__init__(first, size, chunks.cache, chunks.sizes)
        self._chunks, self._given = chunks, given

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._chunks.fields:
            raise AttributeError(name)
        self._chunks.load(self, name)
        return self.__dict__[name]

    def at(self, name: str, rows: Indices) -> Array:
        """A few rows are read, and made, by themselves where that gives the same."""
        field = self._chunks.fields[name]
        by_rows = field.file is not None and not field.file.fortran
        alone = name in INPUTS or (field.stored and not field.steps and by_rows)
        if name in self.__dict__ or not alone:
            return getattr(self, name)[rows]
        if name in self._given:
            some = self._given[name][rows]
        else:
            assert field.file is not None
            some = np.concatenate([field.file.read(self.first + int(i), 1) for i in rows])
        return getattr(StreamedRows(self.first, len(rows), self._chunks, {name: some}), name)


class Streamed:
    """Chunks of what ``source`` gives in every iteration: blocks of X (m, D), y (m, k), weights."""

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
        changed, self.changed = self.changed, []
        for rows in self._chunks():
            if rows.first == 0:
                changed = [name for name in changed if self._is_worth_storing(rows, name)]
            for name in changed:
                getattr(rows, name)
            tree.add(function(rows, *args))
            for name in changed:
                self._store(rows, name)
        for name in changed:
            self.fields[name].steps, self.fields[name].stored = [], True
        return tree.total()

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        field = self.fields.setdefault(name, Field())
        kept = field.steps if name in GROWING else []
        field.steps = [*kept, (function, args)]
        if name not in INPUTS and name not in self.changed:
            self.changed.append(name)

    def load(self, chunk: StreamedRows, name: str) -> None:
        """Give rows what they should have under a name."""
        field, values = self.fields[name], chunk.__dict__
        if name in chunk._given:
            values[name] = chunk._given[name]
        elif field.file is not None and field.stored and (name in GROWING or not field.steps):
            values[name] = field.file.read(chunk.first, chunk.size)
        elif name == "w":
            values[name] = None
        for function, args in field.steps:
            values[name] = function(chunk, *args)

    def _first_pass(self) -> Facts:
        """Read everything once: what there is to know, and, if it fits, a copy on disk."""
        tree = TreeSum()
        for first, arrays in numbered(self.source, self.sizes.chunk_rows):
            rows = self._rows(first, arrays)
            tree.add(facts_of(rows))
            if self.on_disk:
                self._store_inputs(rows)
        facts: Facts | None = tree.total()
        if facts is None:
            raise ValueError("There are no rows to fit: every block is empty, or of weight zero.")
        return facts

    def _store_inputs(self, chunk: StreamedRows) -> None:
        arrays = {name: chunk._given[name] for name in INPUTS if chunk._given[name] is not None}
        self.on_disk = self.spill.take(sum(array.nbytes for array in arrays.values()))
        for name, array in arrays.items():
            field = self.fields[name]
            if self.on_disk and field.file is None:
                field.file = SpillFile(self.spill, array)
            if self.on_disk and field.file is not None:
                field.file.write(chunk.first, array)
                field.stored = True
            else:
                self._give_back(field, chunk.first)

    def close_inputs(self) -> None:
        """Give back the disk that the rows as they came have taken."""
        for name in INPUTS:
            self._give_back(self.fields[name], self.facts.n_rows)

    def _give_back(self, field: Field, n_rows: int) -> None:
        if field.file is not None:
            field.file.file.close()
            self.spill.left += n_rows * field.file.row_bytes
        field.file, field.stored = None, False

    def _chunks(self) -> Iterator[StreamedRows]:
        if self.on_disk:
            for first in range(0, self.facts.n_rows, self.sizes.chunk_rows):
                size = min(self.sizes.chunk_rows, self.facts.n_rows - first)
                yield StreamedRows(first, size, self, {})
            return
        n_rows = 0
        for first, arrays in numbered(self.source, self.sizes.chunk_rows):
            n_rows = first + len(arrays[0])
            if n_rows <= self.facts.n_rows:
                yield self._rows(first, arrays)
        if n_rows != self.facts.n_rows:
            raise ValueError(
                f"The blocks held {self.facts.n_rows} rows when they were first read and hold "
                f"{n_rows} now. They must give the same rows every time."
            )

    def _rows(self, first: int, arrays: Arrays) -> StreamedRows:
        given = dict(zip(INPUTS, arrays, strict=True))
        return StreamedRows(first, len(arrays[0]), self, given)

    def _is_worth_storing(self, chunk: StreamedRows, name: str) -> bool:
        """Whether to spill what has changed, judged by the first chunk.

        It is if making it took longer than writing and reading it would, and there is room.
        """
        began = perf_counter()
        value = getattr(chunk, name)
        seconds, field = perf_counter() - began, self.fields[name]
        if field.file is not None:
            return True
        size = value.nbytes / chunk.size * self.facts.n_rows
        slow = seconds > 2 * self.spill.time_for(value.nbytes)
        if slow and self.spill.take(size):
            field.file = SpillFile(self.spill, value)
        return field.file is not None

    def _store(self, chunk: StreamedRows, name: str) -> None:
        file = self.fields[name].file
        if file is not None:
            file.write(chunk.first, chunk.__dict__[name])


def numbered(blocks: Iterable[Arrays], chunk_rows: int) -> Iterator[tuple[int, Arrays]]:
    """Blocks of any size as chunks of ``chunk_rows`` rows, with the number of the first row."""
    first = 0
    waiting: list[Arrays] = []
    room = chunk_rows
    for block in blocks:
        begin, size = 0, len(block[0])
        while begin < size:
            some = slice(begin, begin + room)
            waiting.append(tuple(None if a is None else a[some] for a in block))  # type: ignore
            taken = len(waiting[-1][0])
            begin, room = begin + taken, room - taken
            if not room:
                yield first, joined(waiting)
                first, waiting, room = first + chunk_rows, [], chunk_rows
    if waiting:
        yield first, joined(waiting)


def joined(blocks: list[Arrays]) -> Arrays:
    """Blocks, one below the other, row by row in memory."""
    x, y, w = zip(*blocks, strict=True)
    weights = None if w[0] is None else np.concatenate(w)
    return by_rows(x), by_rows(y), weights


def by_rows(blocks: tuple[Array, ...]) -> Array:
    """Arrays of one width in one, in C order."""
    out = np.empty((sum(map(len, blocks)), blocks[0].shape[1]))
    return np.concatenate(blocks, out=out)
