"""How people write values as text: numbers, dates, yes and no.

A *spelling* turns texts into numbers. It is chosen in ``fit`` for a whole column of text
(:func:`recognised`), belongs to the encoder, and reads the column's texts at prediction. A column
has a spelling only if every cell that is not missing can be read by it. If some cell cannot, the
column stays text, and :func:`recognised` names that cell.

Whether "1,234" is a number with a separator of thousands or with a decimal comma, and whether
"01/02/2024" is in January or February, follows from the other cells. Where these leave it open, a
point is the decimal sign and the month comes first.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unicodedata import category

import numpy as np

from rfrboost._typing import Array

#: spellings of a missing value among numbers, dates and truth values, in lower case
MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "<na>", "none", "?", "-", "."])

#: spellings of true and false, in lower case
TRUTH = ("true false", "yes no", "y n", "t f")

CURRENCIES = "USD|EUR|GBP|CHF|JPY|CNY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|INR|BRL|MXN|ZAR|KRW|TRY"

# What may stand around the digits: sign, currency (symbols have been removed), percent.
AROUND = re.compile(
    rf"(?P<sign>[+\-−]?)\s*(?:{CURRENCIES})?\s*(?P<inner>[+\-−]?)\s*"
    rf"(?P<digits>[\d.,'’_ ]*\d[.,]?(?:[eE][+\-]?\d+)?)\s*(?P<percent>%?)\s*(?:{CURRENCIES})?"
)

# Digits with this decimal sign; before it they may be in groups of three with separators between.
# The first group does not begin with a zero: in "0,250" the comma is a decimal sign.
DIGITS = {
    ".": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<by>[,'’_ ])\d{3}(?:(?P=by)\d{3})*)?(?:\.\d*)?"),
    ",": re.compile(r"(?:\d+|[1-9]\d{0,2}(?P<by>[.'’_ ])\d{3}(?:(?P=by)\d{3})*)?(?:,\d*)?"),
}

# Spaces that do not break a line, which are separators of thousands too.
SPACES = str.maketrans("\u00a0\u2009\u202f", "   ")

# A zero before other digits is part of a code, such as a postcode, and not of a number.
CODE = re.compile(r"0\d+")

#: dates other than ISO 8601, in the order in which they are tried
DATE_FORMATS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%Y-%m-%d", "%Y.%m.%d"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y"),
    *("%b %d %Y", "%B %d %Y", "%a, %d %b %Y", "%A, %d %B %Y", "%A, %B %d, %Y"),
    *("%b %Y", "%B %Y", "%b-%Y"),
)
#: times of day that may follow them
TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")

#: the name of ISO 8601 among the formats
ISO = "ISO 8601"

# How a date in ISO 8601 begins. Without this check Python would read bare numbers as dates too.
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# If at least this share of the different values of a column of text, and at least this many of
# them, are numbers, it was meant to hold numbers: the user is told which value is not one.
MOSTLY = 0.5
FEWEST_NUMBERS = 10


@dataclass(frozen=True)
class Spelling:
    """How a column of text was written: as ``what``, in this ``form``.

    The form of "numbers" is the decimal sign, that of "dates" one of the formats, and that of
    "truth values" one of :data:`TRUTH`.
    """

    what: str
    form: str

    def __call__(self, text: str) -> float:
        """The number that a text stands for, a date in seconds since 1970; NaN if missing.

        Raises
        ------
        ValueError
            If the text is not written in this form.
        """
        text = text.strip()
        return np.nan if text.lower() in MISSING else READERS[self.what](text, self.form)

    def numbers(self, texts: Sequence[str | None]) -> Array:
        """The numbers (n,) of texts; a ValueError names the first text that cannot be read."""
        known: dict[str | None, float] = {None: np.nan}
        for text in texts:
            if text is not None and text not in known:
                try:
                    known[text] = self(text)
                except (ValueError, OverflowError) as error:
                    raise ValueError(text) from error
        return np.array([known[text] for text in texts], dtype=float)


@dataclass(frozen=True)
class SpelledColumn:
    """A column of text, by its index, that stands for numbers, dates or truth values."""

    column: int
    spelling: Spelling


def read_number(text: str, decimal: str) -> float:
    """A number with this decimal sign, perhaps with a currency, separators or a percent sign."""
    negative = text.startswith("(") and text.endswith(")")
    bare = "".join(c for c in text.translate(SPACES) if category(c) != "Sc").strip("() ")
    found = AROUND.fullmatch(bare)
    if found is None or (found["sign"] and found["inner"]):
        raise ValueError(text)
    digits, e, exponent = found["digits"].strip().lower().partition("e")
    written = DIGITS[decimal].fullmatch(digits)
    if written is None:
        raise ValueError(text)
    plain = digits.replace(written["by"], "") if written["by"] else digits
    number = float(plain.replace(",", ".") + e + exponent)
    if not np.isfinite(number):
        raise ValueError(text)
    negative ^= (found["sign"] or found["inner"]) in ("-", "−")
    return (-number if negative else number) / (100 if found["percent"] else 1)


def read_date(text: str, form: str) -> float:
    """A date in seconds since 1970; one without a time zone is taken to be in UTC."""
    if form == ISO:
        if not ISO_DATE.fullmatch(text):
            raise ValueError(text)
        when = datetime.fromisoformat(text.removesuffix(" UTC"))
    else:
        when = datetime.strptime(text, form)
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    return (when - EPOCH) / timedelta(seconds=1)


def read_truth(text: str, form: str) -> float:
    """1 for the first word of the form (yes, true), 0 for the second."""
    return 1.0 - form.split().index(text.lower())


#: the function that reads a text, by what the column holds
READERS: dict[str, Callable[[str, str], float]] = {
    "numbers": read_number,
    "dates": read_date,
    "truth values": read_truth,
}

#: all spellings, in the order in which they are tried
SPELLINGS = (
    *(Spelling("numbers", decimal) for decimal in DIGITS),
    *(Spelling("truth values", form) for form in TRUTH),
    *(
        Spelling("dates", form)
        for form in (ISO, *(day + time for day in DATE_FORMATS for time in TIMES))
    ),
)


def spelling_of(texts: Iterable[str | None]) -> Spelling | None:
    """The first spelling that reads all texts, at least one of which is not missing."""
    present = present_texts(texts)
    if not present or any(CODE.fullmatch(text.strip()) for text in present):
        return None
    # Most spellings cannot read the first text already, which saves reading all others.
    return next((s for s in SPELLINGS if reads(s, present[:1]) and reads(s, present)), None)


def present_texts(texts: Iterable[str | None]) -> list[str]:
    """The different texts that are not missing, sorted."""
    different = {text for text in texts if text is not None}
    return sorted(text for text in different if text.strip().lower() not in MISSING)


def reads(spelling: Spelling, texts: Iterable[str]) -> bool:
    """Whether a spelling reads all texts."""
    try:
        for text in texts:
            spelling(text)
    except (ValueError, OverflowError):
        return False
    return True


def recognised(texts: Sequence[str | None]) -> tuple[Spelling | None, str]:
    """The spelling of a column of text, if it has one, and what the user should know of it."""
    present = present_texts(texts)
    spelling = spelling_of(present)
    if spelling is None:
        odd = odd_text(present)
        return None, "" if odd is None else (
            f"is read as categories: most of its values are numbers, but {odd!r} is not. Correct "
            "it, or use pandas.to_numeric(..., errors='coerce')."
        )
    if day_may_be_first(spelling, present):
        return spelling, (
            f"holds dates such as {present[0]!r}, in which the month is taken to be first. If it "
            "is the day, convert the column with pandas.to_datetime(..., dayfirst=True)."
        )
    return spelling, ""


def odd_text(texts: Sequence[str]) -> str | None:
    """The first text that is no number, where most are; else None."""
    if len(texts) <= FEWEST_NUMBERS or any(CODE.fullmatch(text.strip()) for text in texts):
        return None
    for spelling in SPELLINGS[: len(DIGITS)]:
        odd = [text for text in texts if not reads(spelling, [text])]
        numbers = len(texts) - len(odd)
        if numbers >= max(FEWEST_NUMBERS, MOSTLY * len(texts)):
            return odd[0]
    return None


def day_may_be_first(spelling: Spelling, texts: Sequence[str]) -> bool:
    """Whether dates could as well have the day before the month."""
    other = spelling.form.replace("%m/%d", "%d/%m").replace("%m-%d", "%d-%m")
    return other != spelling.form and reads(Spelling(spelling.what, other), texts)
