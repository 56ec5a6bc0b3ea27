"""What a fitted encoder consists of: a new kind of column is one more ``Kind`` here."""

from rfrboost._files.schema import (
    COUNT,
    FLAG,
    TEXT,
    Kind,
    Many,
    Maybe,
    Numbers,
    Part,
    Plain,
    choice,
)
from rfrboost._tables.encoder import (
    DATE_PARTS,
    DateColumn,
    Encoder,
    LevelColumn,
    NumberColumns,
    Scaling,
)

INDEX = Plain("the number of a column", lambda v: type(v) is int and 0 <= v < 2**31)


def levels_fit(encoder: LevelColumn) -> bool:
    """A row of values for each level and one for all others, a name for each column of them."""
    different = len(set(encoder.levels)) == len(encoder.levels)
    shape = (len(encoder.levels) + 1, len(encoder.suffixes))
    return different and encoder.values.shape == shape


COLUMN_ENCODER = Part(
    Kind(
        NumberColumns,
        {"columns": Many(INDEX), "holes": Many(INDEX)},
        lambda encoder: True,
    ),
    Kind(
        DateColumn,
        {"column": INDEX, "parts": Many(choice(dict.fromkeys(DATE_PARTS))), "holes": FLAG},
        lambda encoder: True,
    ),
    Kind(
        LevelColumn,
        {
            "column": INDEX,
            "levels": Many(Maybe(TEXT)),
            "values": Numbers(2),
            "suffixes": Many(TEXT),
        },
        levels_fit,
    ),
)


#: told the number of columns
SCALING = Part(
    Kind(
        Scaling,
        {key: Numbers(1) for key in ("fill", "start", "width", "mean", "gain")},
        lambda s, columns: (
            {len(s.fill), len(s.start), len(s.width), len(s.mean), len(s.gain)} == {columns}
            and bool((s.width > 0).all())
        ),
    ),
)


def encoder_fits(encoder: Encoder, width: int) -> bool:
    """Told the number of columns that must come out."""
    return (
        all(COLUMN_ENCODER.fits(part) for part in encoder.columns)
        and len(encoder.sources) == width > 0
        and max(encoder.sources) < encoder.n_columns
        and (encoder.names is None or len(encoder.names) == encoder.n_columns)
        and SCALING.fits(encoder.scaling, width)
    )


#: told the number of columns that come out
ENCODER = Part(
    Kind(
        Encoder,
        {
            "names": Maybe(Many(TEXT)),
            "n_columns": COUNT,
            "columns": Many(COLUMN_ENCODER),
            "scaling": SCALING,
        },
        encoder_fits,
    ),
)
