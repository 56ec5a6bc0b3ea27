"""A block of rows as a user hands it in, and what errors call it."""

from typing import Any, NamedTuple

#: rows that are read at a time where nobody says
BLOCK_ROWS = 65_536


class LabelledBlock(NamedTuple):
    """Rows X, targets y, and weights w or None."""

    label: str
    X: Any
    y: Any
    w: Any
