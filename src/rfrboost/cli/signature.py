"""The columns that a model takes, as its file says, without loading the model."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rfrboost import file_info
from rfrboost.cli.console import CommandError, counted, listed

#: what a column may hold
NUMBERS = "numbers"
DATES = "dates"
TEXT = "text"
#: what a column held in fit, by the kind of its encoder in the file
KINDS = {
    "NumberColumns": NUMBERS,
    "DateColumn": DATES,
    "LevelColumn": TEXT,
    "TextColumn": TEXT,
}


@dataclass(frozen=True)
class Held:
    """What a column held in fit: NUMBERS, DATES, or TEXT with these levels."""

    kind: str
    levels: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Signature:
    """The columns of a model: their number, their names if it knows them, and what they held.

    ``held`` has no entry for a column that the model does not use, which may hold anything. It is
    None if all columns held numbers: a forged file may claim any number of columns, so there is no
    entry for each of them.
    """

    n_columns: int
    names: list[str] | None
    held: dict[int, Held] | None

    def columns(self, present: list[str], table: str) -> list[str]:
        """The columns of a table that the model takes, in the model's order."""
        if self.names is None:
            if len(present) != self.n_columns:
                raise CommandError(
                    f"{table} has {counted(len(present), 'column')}, but the model was fitted on "
                    f"{self.n_columns:,} without names."
                )
            return present
        found = set(present)
        lacking = [name for name in self.names if name not in found]
        if lacking:
            noun = "columns" if len(lacking) > 1 else "column"
            raise CommandError(f"{table} lacks the {noun} {listed(lacking)}.")
        return self.names

    def by_name(self, columns: list[str]) -> dict[str, Held]:
        """What each column that the model uses held in fit, by its name in the table."""
        if self.held is None:
            return dict.fromkeys(columns, Held(NUMBERS))
        return {columns[j]: held for j, held in self.held.items()}

    def counts(self) -> dict[str, int]:
        """How many columns held each kind of values, of those that the model uses."""
        if self.held is None:
            return {NUMBERS: self.n_columns}
        return dict(Counter(held.kind for held in self.held.values()))


def read_signature(path: str) -> Signature:
    """The signature of a model file."""
    fitted: dict[str, Any] = file_info(path)["fitted"]
    n_columns = fitted["n_features_in"]
    names = fitted["feature_names_in"]
    encoder = fitted.get("encoder")
    if encoder is None:
        return Signature(n_columns, names, None)
    held = {}
    for part in encoder["columns"]:
        numbers = [*part.get("columns", []), *([part["column"]] if "column" in part else [])]
        levels = frozenset(level for level in part.get("levels", []) if level is not None)
        held.update(dict.fromkeys(numbers, Held(KINDS[part["kind"]], levels)))
    # Numbers and dates that the model reads from text come to it as text.
    held.update({part["column"]: Held(TEXT) for part in encoder.get("spelled") or []})
    return Signature(n_columns, names, held)
