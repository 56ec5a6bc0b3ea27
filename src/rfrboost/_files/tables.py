"""What model files hold of a fitted encoder of tables: a schema for every class.

A new kind of column is one more ``Kind`` in ``COLUMN_ENCODER``. Each schema's comment names the
sizes that its ``fits`` is given.
"""

from dataclasses import asdict

from rfrboost._files.schema import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    JsonValue,
    Kind,
    ListOf,
    Numbers,
    OneOf,
    OrNone,
    Record,
    State,
    choice,
    is_number,
)
from rfrboost._tables.encoder import (
    DATE_PARTS,
    DateColumn,
    Encoder,
    LevelColumn,
    NumberColumns,
    Scaling,
)
from rfrboost._tables.report import ColumnReport
from rfrboost._tables.spellings import SPELLINGS, SpelledColumn, Spelling
from rfrboost._tables.words import TextColumn

INDEX = JsonValue("the number of a column", lambda v: type(v) is int and 0 <= v < 2**31)


def levels_fit(encoder: LevelColumn) -> bool:
    """Whether levels differ, and each has a row of values, with one more row for all others."""
    different = len(set(encoder.levels)) == len(encoder.levels)
    shape = (len(encoder.levels) + 1, len(encoder.suffixes))
    return different and encoder.values.shape == shape


#: no sizes
COLUMN_ENCODER = OneOf(
    Kind(
        "NumberColumns",
        NumberColumns,
        {"columns": ListOf(INDEX), "holes": ListOf(INDEX)},
        lambda encoder: True,
    ),
    Kind(
        "DateColumn",
        DateColumn,
        {"column": INDEX, "parts": ListOf(choice(dict.fromkeys(DATE_PARTS))), "holes": FLAG},
        lambda encoder: True,
    ),
    Kind(
        "LevelColumn",
        LevelColumn,
        {
            "column": INDEX,
            "levels": ListOf(OrNone(TEXT)),
            "values": Numbers(2),
            "suffixes": ListOf(TEXT),
            "rare": OrNone(Numbers(1)),
        },
        levels_fit,
    ),
    Kind(
        "TextColumn",
        TextColumn,
        {
            "column": INDEX,
            "words": ListOf(TEXT),
            "weights": Numbers(1),
            "directions": Numbers(2),
        },
        lambda text: (
            len(set(text.words)) == len(text.words) == len(text.weights) == len(text.directions) > 0
        ),
    ),
)

KNOWN_FORMS = dict.fromkeys(spelling.form for spelling in SPELLINGS)
SPELLING = OneOf(
    Kind(
        "Spelling",
        Spelling,
        {
            "what": choice(dict.fromkeys(spelling.what for spelling in SPELLINGS)),
            "form": choice(KNOWN_FORMS),
        },
        lambda spelling: spelling in SPELLINGS,
    ),
)

SPELLED_COLUMN = OneOf(
    Kind(
        "SpelledColumn",
        SpelledColumn,
        {"column": INDEX, "spelling": SPELLING},
        lambda spelled: SPELLING.fits(spelled.spelling),
    ),
)

END = OrNone(JsonValue("a number or a date", lambda v: type(v) is str or is_number(v)))


class Report:
    """A ``ColumnReport``. It is no ``Kind``, because its field ``kind`` has the name of the tag."""

    record = Record(
        {
            "name": TEXT,
            "kind": TEXT,
            "missing": NUMBER,
            "levels": OrNone(NUMBER),
            "low": END,
            "high": END,
            "used": FLAG,
            "why": TEXT,
        }
    )

    def write(self, value: ColumnReport, where: str) -> State:
        return self.record.write(asdict(value), where)

    def read(self, state: State, where: str) -> ColumnReport:
        return ColumnReport(**self.record.read(state, where))


def range_fits(scaling: Scaling, columns: int) -> bool:
    """Whether every column has a range, or (models of older versions) none has."""
    low, high = scaling.low, scaling.high
    if low is None or high is None:
        return low is high
    return len(low) == len(high) == columns and bool((low <= high).all())


#: size: encoded columns
SCALING = OneOf(
    Kind(
        "Scaling",
        Scaling,
        {
            **{key: Numbers(1) for key in ("fill", "start", "width", "mean", "gain")},
            **{key: OrNone(Numbers(1)) for key in ("low", "high")},
        },
        lambda s, columns: (
            {len(s.fill), len(s.start), len(s.width), len(s.mean), len(s.gain)} == {columns}
            and bool((s.width > 0).all())
            and range_fits(s, columns)
        ),
    ),
)


def encoder_fits(encoder: Encoder, width: int) -> bool:
    """Whether the column encoders give ``width`` columns, from columns that the table has."""
    return (
        all(COLUMN_ENCODER.fits(column) for column in encoder.columns)
        and len(encoder.sources) == width > 0
        and max(encoder.sources) < encoder.n_columns
        and (encoder.names is None or len(encoder.names) == encoder.n_columns)
        and SCALING.fits(encoder.scaling, width)
        and all(spelled_fits(spelled, encoder) for spelled in encoder.spelled or ())
        and len(encoder.report or ()) in (0, encoder.n_columns)
    )


def spelled_fits(spelled: SpelledColumn, encoder: Encoder) -> bool:
    """Whether a column that is read from text is one of the table's."""
    return SPELLED_COLUMN.fits(spelled) and spelled.column < encoder.n_columns


#: size: encoded columns
ENCODER = OneOf(
    Kind(
        "Encoder",
        Encoder,
        {
            "names": OrNone(ListOf(TEXT)),
            "n_columns": COUNT,
            "columns": ListOf(COLUMN_ENCODER),
            "scaling": SCALING,
            "spelled": OrNone(ListOf(SPELLED_COLUMN)),
            "report": OrNone(ListOf(Report())),
        },
        encoder_fits,
    ),
)
