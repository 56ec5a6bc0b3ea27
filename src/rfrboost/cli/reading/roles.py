"""Columns beside the target that are no inputs: weights and groups of the rows."""

import numpy as np
import pyarrow as pa

from rfrboost.cli.console import CommandError, WrongUsageError
from rfrboost.cli.reading.columns import (
    BadCellError,
    Cells,
    as_written,
    categories_as_text,
    is_text,
    to_numbers,
)
from rfrboost.cli.request import Roles


def check_roles(roles: Roles) -> None:
    """Refuse a column that would be two things at once."""
    for option, name in (("--weight", roles.weight), ("--groups", roles.groups)):
        if name == roles.target:
            raise WrongUsageError(f"{option} {name} is the target; name another column.")
    no_inputs = {roles.target, roles.weight, roles.groups, *roles.drop}
    for name in roles.categorical:
        if name in no_inputs:
            raise WrongUsageError(f"--categorical {name} is not an input of the model.")


def row_weights(cells: Cells, name: str) -> np.ndarray:
    """The weights of the rows that have a label; each must be a number."""
    try:
        numbers = to_numbers(cells) if is_text(cells.type) else cells.cast(pa.float64())
    except (BadCellError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CommandError(f"--weight {name}: the column must contain numbers only.") from error
    if numbers.null_count:
        raise CommandError(f"--weight {name}: a row without a weight is not allowed; use 0.")
    return as_numpy(numbers)


def row_groups(column: Cells, name: str) -> np.ndarray:
    """The groups of the rows that have a label."""
    cells = categories_as_text(column)
    cells = as_written(cells) if is_text(cells.type) else cells
    if cells.null_count:
        raise CommandError(f"--groups {name}: a row without a group is not allowed.")
    return as_numpy(cells)


def as_numpy(cells: Cells) -> np.ndarray:
    """A column as an array; text as objects."""
    return np.asarray(cells.to_numpy())
