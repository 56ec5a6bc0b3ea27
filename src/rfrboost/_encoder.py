"""From a table to the array of numbers that the mathematics works on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rfrboost._encoders import ColumnEncoder
from rfrboost._scaling import Scaling
from rfrboost._table import Table, read_table
from rfrboost._typing import Array


@dataclass(frozen=True)
class Encoder:
    """What was learned about the columns of a training table.

    ``names`` are the names of the table's columns, or None if it had none, ``n_columns`` how many
    there are, ``columns`` the encoders of columns, side by side, and ``scaling`` what is done to
    all that they write.
    """

    names: tuple[str, ...] | None
    n_columns: int
    columns: tuple[ColumnEncoder, ...]
    scaling: Scaling

    @property
    def width(self) -> int:
        """The number of columns that come out."""
        return len(self.scaling.fill)

    @property
    def sources(self) -> tuple[int, ...]:
        """For every column that comes out, the number of the column that it is made of."""
        return tuple(j for encoder in self.columns for j in encoder.sources)

    @property
    def names_out(self) -> tuple[str, ...]:
        """Names of the columns that come out; without names to begin with they start with x0."""
        names = self.names or tuple(f"x{j}" for j in range(self.n_columns))
        return tuple(
            f"{names[j]}{suffix}"
            for encoder in self.columns
            for j, suffix in zip(encoder.sources, encoder.suffixes, strict=True)
        )

    def __call__(self, X: Any) -> Array:
        """The array (n, width) of a table with the same columns in the same order."""
        table = read_table(X)
        self._check(table)
        return self.encode(table)

    def encode(self, table: Table) -> Array:
        """The array of a table that is known to have the right columns."""
        out = np.empty((table.shape[0], self.width))
        begin = 0
        for encoder in self.columns:
            end = begin + len(encoder.sources)
            encoder(table, out[:, begin:end])
            begin = end
        self.scaling(out)
        return out

    def pull(self, X: Any, gradient: Array) -> Array:
        """Derivatives (n, width, d) in what comes out, as derivatives in the table's numbers.

        Categories have no derivatives and dates none to speak of: theirs are 0.
        """
        table = read_table(X)
        numbers = self._number_columns()
        raw = np.full((table.shape[0], self.width), np.nan)
        for k, j in numbers.items():
            raw[:, k] = table.number(j)
        slopes = self.scaling.slopes(raw)
        total = np.zeros((len(raw), self.n_columns, gradient.shape[2]))
        for k, j in numbers.items():
            total[:, j] += slopes[:, k, None] * gradient[:, k]
        return total

    def _number_columns(self) -> dict[int, int]:
        """The columns that come out and are numbers of the table, with the columns they are."""
        places = enumerate(
            (j, suffix)
            for encoder in self.columns
            for j, suffix in zip(encoder.sources, encoder.suffixes, strict=True)
        )
        return {k: j for k, (j, suffix) in places if suffix == ""}

    def _check(self, table: Table) -> None:
        """Refuse other columns than those of the training table, by name where there are names."""
        if self.names is None or table.names is None:
            if table.shape[1] != self.n_columns:
                raise ValueError(
                    f"X has {table.shape[1]} columns, but the model was fitted on {self.n_columns}."
                )
            return
        if table.names == self.names:
            return
        lacking = [name for name in self.names if name not in set(table.names)]
        extra = [name for name in table.names if name not in set(self.names)]
        if lacking or extra:
            raise ValueError(
                f"The columns of X are not those of fit: {differences(lacking, extra)}."
            )
        raise ValueError(
            "The columns of X are those of fit in another order: pass X[model.feature_names_in_]."
        )


def differences(lacking: list[str], extra: list[str]) -> str:
    """Which columns are lacking and which are new, in words."""
    parts = [(lacking, "is missing", "are missing"), (extra, "is new", "are new")]
    return ", ".join(
        f"{', '.join(map(repr, names[:5]))}{' and more' if len(names) > 5 else ''} "
        f"{one if len(names) == 1 else several}"
        for names, one, several in parts
        if names
    )
