"""Reports on columns: after a fit, and when rows to predict are unlike those of the fit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ColumnReport:
    """What a fit has found in a column of X, and what it made of it.

    Parameters
    ----------
    name
        The column's name, or x0, x1, … where X has no names.
    kind
        "numbers", "dates", "categories", "text" or "nothing".
    missing
        How many values are missing.
    levels
        How many different values categories or text have.
    low, high
        The least and the largest number; dates as in ISO 8601.
    used
        Whether the model sees the column.
    why
        Why it is not used, or how it was read.
    """

    name: str
    kind: str
    missing: int
    levels: int | None
    low: float | str | None
    high: float | str | None
    used: bool
    why: str


class UnseenValuesWarning(UserWarning):
    """Rows to predict hold unseen categories, or numbers far outside the range of training rows.

    ``rows`` is the number of such rows, ``columns`` their number for each column, by its name.
    """

    def __init__(self, rows: int, total: int, columns: dict[str, int]) -> None:
        named = [f"{name!r} ({count:,})" for name, count in list(columns.items())[:10]]
        more = " and more" if len(columns) > 10 else ""
        super().__init__(
            f"{rows:,} of {total:,} rows hold numbers far outside the range of the training rows, "
            f"or unseen categories, in {', '.join(named)}{more}. A number counts as the nearest "
            "one of training, an unseen category as an average one: do not rely on these rows."
        )
        self.rows = rows
        self.columns = columns
