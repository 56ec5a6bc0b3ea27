"""Row blocks of Parquet files and Arrow datasets, a batch of rows at a time."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rfrboost._blocks.block import BLOCK_ROWS, NamedBlock
from rfrboost._tables.encoder import differences

# The column in which pandas stores an index without a name: row numbers, which predict nothing.
UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def parquet() -> ModuleType:
    """pyarrow's reader, or an ImportError that says what to install; pandas holds the blocks."""
    try:
        import pandas  # noqa: F401
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files and Arrow datasets need pandas and pyarrow: "
            "pip install 'rfrboost[parquet]'."
        ) from error
    reader: ModuleType = pyarrow.parquet
    return reader


@dataclass(frozen=True)
class Roles:
    """Which columns are X, which are targets, and which one holds weights.

    ``single`` says that the target was given by its name, so that y has one axis.
    """

    columns: list[str]
    targets: list[str]
    single: bool
    weight: str | None

    @property
    def all(self) -> list[str]:
        """All columns that are read."""
        return [*self.columns, *self.targets, *([self.weight] if self.weight else [])]

    def block(self, name: str, batch: Any) -> NamedBlock:
        """An Arrow batch of these columns as a block."""
        # pandas would make an index of a column that it once wrote as one; it stays a column here.
        frame = batch.to_pandas(ignore_metadata=True)
        y = frame[self.targets[0]] if self.single else frame[self.targets]
        w = frame[self.weight] if self.weight else None
        return NamedBlock(name, frame[self.columns], y, w)


def roles(
    present: list[str],
    name_of_table: str,
    target: str | Sequence[str],
    weight: str | None,
    columns: Sequence[str] | None,
) -> Roles:
    """The roles of the columns that are present, or a ValueError that names the wrong column."""
    targets = [target] if isinstance(target, str) else list(target)
    other = {*targets, weight}
    present = [name for name in present if name in other or not UNNAMED_INDEX.fullmatch(name)]
    chosen = [name for name in present if name not in other] if columns is None else list(columns)
    if not targets or not chosen:
        raise ValueError(f"{name_of_table} needs at least one column of X and one target.")
    found = Roles(chosen, targets, isinstance(target, str), weight)
    lacking = [name for name in found.all if name not in present]
    if lacking:
        what = differences(lacking, [])
        raise ValueError(f"{name_of_table}: {what}. It has {', '.join(present)}.")
    twice = [name for name in found.all if found.all.count(name) > 1]
    if twice:
        raise ValueError(
            f"Column {twice[0]!r} cannot be two of X, target and weight at once: name it once."
        )
    return found


class ParquetBlocks:
    """Blocks of Parquet files, one file after the other.

    All files must have the columns that are read, with the types that they have in the first.
    """

    def __init__(
        self,
        paths: Any,
        target: str | Sequence[str],
        weight: str | None,
        columns: Sequence[str] | None,
    ) -> None:
        self.reader = parquet()
        self.paths = files([paths] if isinstance(paths, str | Path) else paths)
        with self.open(self.paths[0]) as file:
            schema = file.schema_arrow
        self.roles = roles(schema.names, str(self.paths[0]), target, weight, columns)
        self.types = [schema.field(name).type for name in self.roles.all]
        self.all_columns = columns is None

    def open(self, path: Path) -> Any:
        """A Parquet file, or an OSError that names it."""
        try:
            return self.reader.ParquetFile(path)
        except FileNotFoundError as error:
            raise FileNotFoundError(f"There is no file {path}.") from error
        except (OSError, ValueError) as error:
            raise OSError(f"{path} cannot be read as Parquet: {error}") from error

    def __iter__(self) -> Iterator[NamedBlock]:
        for path in self.paths:
            with self.open(path) as file:
                self._check(path, file.schema_arrow)
                batches = file.iter_batches(batch_size=BLOCK_ROWS, columns=self.roles.all)
                for batch in read_to_end(str(path), batches):
                    yield self.roles.block(str(path), batch)

    def _check(self, path: Path, schema: Any) -> None:
        """Refuse a file whose columns are not those of the first file."""
        lacking = [name for name in self.roles.all if name not in schema.names]
        known = [*self.roles.all, *filter(UNNAMED_INDEX.fullmatch, schema.names)]
        extra = [n for n in schema.names if n not in known] if self.all_columns else []
        if lacking or extra:
            raise ValueError(
                f"{path} does not have the columns of {self.paths[0]}: "
                f"{differences(lacking, extra)}."
            )
        for name, expected in zip(self.roles.all, self.types, strict=True):
            if schema.field(name).type != expected:
                raise ValueError(
                    f"{path}: column {name!r} is of type {schema.field(name).type}, but "
                    f"{expected} in {self.paths[0]}."
                )


class DatasetBlocks:
    """Blocks of an Arrow dataset, in its own order."""

    def __init__(
        self,
        dataset: Any,
        target: str | Sequence[str],
        weight: str | None,
        columns: Sequence[str] | None,
    ) -> None:
        parquet()
        self.dataset = dataset
        self.roles = roles(dataset.schema.names, "The dataset", target, weight, columns)

    def __iter__(self) -> Iterator[NamedBlock]:
        batches = self.dataset.to_batches(columns=self.roles.all, batch_size=BLOCK_ROWS)
        for number, batch in enumerate(read_to_end("The dataset", batches)):
            yield self.roles.block(f"Batch {number} of the dataset", batch)


def read_to_end(name: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The batches; an error while they are read becomes an OSError that names the file."""
    try:
        yield from batches
    except (OSError, ValueError) as error:
        raise OSError(f"{name} cannot be read to its end: {error}") from error


def files(paths: Iterable[Any]) -> list[Path]:
    """The files at these paths; a folder stands for its .parquet files, sorted by name."""
    found: list[Path] = []
    for path in map(Path, paths):
        found += sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not found:
        raise FileNotFoundError("There are no Parquet files to read.")
    return found
