"""Notices about columns: how a fit read each, and which have unseen values at prediction."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rfrboost.cli.console import counted, listed, printable, say

# Columns of which ``fit`` says how they were read; ``info`` shows more. Of more columns, ``fit``
# names those that were converted or are not used.
MOST_COLUMNS = 20
#: adjectives for the kinds of columns in a report
ADJECTIVES = {"numbers": "numeric", "dates": "date", "categories": "categorical", "text": "text"}


def say_columns(report: Sequence[Mapping[str, Any]]) -> None:
    """Say how many columns of each kind there are, and how each was read."""
    say(f"Columns: {kinds_of(report)}.")
    few = len(report) <= MOST_COLUMNS
    told = [column for column in report if few or column["why"]]
    for column in told[:MOST_COLUMNS]:
        say(f"  {printable(column['name'])}: {described_column(column)}")
    if not few:
        say("  Others: see rfrboost info.")


def kinds_of(report: Sequence[Mapping[str, Any]]) -> str:
    """How many columns of each kind there are."""
    kinds = Counter(column["kind"] for column in report if column["used"])
    unused = len(report) - kinds.total()
    parts = [f"{kinds[kind]:,} {word}" for kind, word in ADJECTIVES.items() if kinds[kind]]
    return ", ".join(parts + ([f"{unused:,} not used"] if unused else []))


def described_column(column: Mapping[str, Any]) -> str:
    """One column in words: kind, levels or range, missing values, and what became of it."""
    parts = [str(column["kind"])]
    if column["levels"] is not None:
        parts.append(counted(int(column["levels"]), "level"))
    if column["low"] is not None:
        parts.append(f"{shortened(column['low'])} to {shortened(column['high'])}")
    if column["missing"]:
        parts.append(f"{int(column['missing']):,} missing")
    if not column["used"]:
        parts.append("not used")
    return ", ".join(parts + ([str(column["why"])] if column["why"] else []))


def shortened(end: float | str) -> str:
    """The end of a range; of a date without its time if that is midnight."""
    return end.removesuffix("T00:00:00") if isinstance(end, str) else f"{end:.6g}"


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say what a fit warns of, instead of printing it with a line of code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        say(str(warning.message))


class Unseen:
    """Counts rows unlike those of training over all blocks of a table."""

    def __init__(self) -> None:
        self.rows = 0
        self.columns: Counter[str] = Counter()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the rows of one block that are warned of, once even if it is predicted twice."""
        # Imported here because ``rfrboost info`` starts faster without it.
        from rfrboost import UnseenValuesWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        found = [w.message for w in caught if isinstance(w.message, UnseenValuesWarning)]
        for message in found[:1]:
            self.rows += message.rows
            self.columns.update(message.columns)

    def say(self, total: int) -> None:
        """Say how many rows there were, in which columns."""
        if self.rows:
            named = [f"{name} ({count:,})" for name, count in self.columns.items()]
            say(
                f"{self.rows:,} of {counted(total, 'row')} hold numbers far outside the range of "
                f"the training rows, or unseen categories: {listed(named)}. Do not rely on them."
            )
