"""What a model wants of a table, and what it gives, as its file says."""

from dataclasses import dataclass
from typing import Any

from rfrboost import file_info
from rfrboost.cli.cells import DATES, NUMBERS, WORDS
from rfrboost.cli.errors import CommandError, listed

#: what a column held in fit, by the kind of its encoder
KINDS = {"NumberColumns": NUMBERS, "DateColumn": DATES, "LevelColumn": WORDS}


@dataclass(frozen=True)
class Signature:
    """The columns of a model: how many, their names if it knows any, and what they hold.

    A column that held one value only, or none, is in no encoder and may hold anything.
    """

    n_columns: int
    names: list[str] | None
    held: dict[int, str]

    def columns(self, present: list[str], table: str) -> list[str]:
        """Which columns of a table the model takes, in its order."""
        if self.names is None:
            if len(present) != self.n_columns:
                raise CommandError(
                    f"{table} has {len(present):,} columns, but the model was fitted on "
                    f"{self.n_columns:,} without names."
                )
            return present
        found = set(present)
        lacking = [name for name in self.names if name not in found]
        if lacking:
            what = "columns" if len(lacking) > 1 else "column"
            raise CommandError(f"{table} lacks the {what} {listed(lacking)}.")
        return self.names

    def kinds(self, columns: list[str]) -> dict[str, str]:
        """What every column held in fit, where that matters."""
        return {columns[j]: kind for j, kind in self.held.items()}


def read_signature(path: str) -> Signature:
    """The signature of a model file."""
    fitted: dict[str, Any] = file_info(path)["fitted"]
    n_columns, encoder = fitted["n_features_in"], fitted.get("encoder")
    names = fitted["feature_names_in"]
    if encoder is None:
        return Signature(n_columns, names, dict.fromkeys(range(n_columns), NUMBERS))
    held = {}
    for part in encoder["columns"]:
        numbers = [*part.get("columns", []), *([part["column"]] if "column" in part else [])]
        held.update(dict.fromkeys(numbers, KINDS[part["kind"]]))
    return Signature(n_columns, names, held)
