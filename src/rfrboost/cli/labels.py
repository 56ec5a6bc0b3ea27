"""The column to predict: which rows have it, and whether it holds classes or numbers."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from rfrboost.cli.cells import BadCellError, Cells, numbers, odd_one, words
from rfrboost.cli.console import say
from rfrboost.cli.errors import CommandError, printable
from rfrboost.cli.frames import NUMERIC, TEXTUAL, is_any, is_text, plain
from rfrboost.cli.tasks import Task

# Up to so many different whole numbers are taken for classes.
MOST_CLASSES = 10
#: whole numbers that are written in one way only, so that they read back the same
WHOLE = r"^(0|-?[1-9]\d{0,17})$"


@dataclass(frozen=True)
class Target:
    """A task, the labels of the rows that have one, and which rows these are."""

    task: Task
    labels: np.ndarray
    present: np.ndarray


def read_target(column: Cells, name: str, wanted: Task | None) -> Target:
    """The labels in a column; says aloud what was found, and which rows are left out."""
    cells = plain(column)
    if types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if not is_any(cells.type, (*TEXTUAL, *NUMERIC)):
        raise CommandError(f"Column {name!r} has type {cells.type}, which cannot be predicted.")
    present = without_holes(cells, wanted)
    if not present.any():
        raise CommandError(f"Column {name!r} is empty, so that there is nothing to learn.")
    if not present.all():
        say(f"Left out {int((~present).sum()):,} of {len(present):,} rows: no {printable(name)!r}.")
    kept = cells.filter(pa.array(present))
    declared = types.is_dictionary(column.type) or types.is_boolean(column.type)
    task, why = (wanted, "as asked") if wanted else detected(kept, name, declared)
    say(f"Task: {task}, {why}.")
    return Target(task, values(kept, name, task), present)


def without_holes(cells: Cells, wanted: Task | None) -> np.ndarray:
    """Which rows have a label."""
    if not is_text(cells.type):
        return pc.invert(pc.is_null(cells, nan_is_null=True)).to_numpy()
    if wanted != Task.CLASSIFICATION:
        try:
            # Among numbers there are more ways to write a hole.
            return pc.is_valid(numbers(cells)).to_numpy()
        except BadCellError:
            pass
    return pc.is_valid(words(cells)).to_numpy()


def detected(cells: Cells, name: str, declared: bool) -> tuple[Task, str]:
    """The task, and why."""
    different = len(pc.unique(words(cells) if is_text(cells.type) else cells))
    in_words = is_text(cells.type) and not is_numeric_text(cells)
    if in_words and not declared:
        check_classes(cells, name, different)
    if in_words or declared:
        return Task.CLASSIFICATION, f"{different:,} classes"
    # A type of fractions means numbers, unless holes among 0 and 1 are why it was taken.
    most = 2 if types.is_floating(cells.type) else MOST_CLASSES
    if different <= most and all_whole(cells):
        return Task.CLASSIFICATION, (
            f"because {printable(name)!r} holds {different} different whole numbers "
            "(--task regression to predict a number)"
        )
    return Task.REGRESSION, f"because {printable(name)!r} holds numbers"


def check_classes(cells: Cells, name: str, different: int) -> None:
    """Refuse text that is neither a number nor the name of a class."""
    odd = odd_one(cells)
    if odd is not None and different > MOST_CLASSES:
        raise CommandError(
            f"Column {name!r} holds numbers, but {odd.text!r} in row {odd.place + 1:,} of those "
            "that have a label: correct it, or say --task classification."
        )
    if different > max(len(cells) / 2, MOST_CLASSES):
        raise CommandError(
            f"Column {name!r} holds {different:,} different words in {len(cells):,} rows, too many "
            "to be classes; say --task classification if they are."
        )


def is_numeric_text(cells: Cells) -> bool:
    """Whether all cells are numbers."""
    try:
        numbers(cells)
    except BadCellError:
        return False
    return True


def all_whole(cells: Cells) -> bool:
    """Whether all numbers are whole, however they are written."""
    found = as_numpy(
        numbers(cells) if is_text(cells.type) else cells.cast(pa.float64(), safe=False)
    )
    return bool((found == np.floor(found)).all())


def is_whole(cells: Cells) -> bool:
    """Whether all cells are whole numbers and written as such."""
    return bool(pc.all(pc.match_substring_regex(words(cells), WHOLE)).as_py())


def values(cells: Cells, name: str, task: Task) -> np.ndarray:
    """The labels as the estimators take them; of classes as they are written in the table."""
    if task == Task.CLASSIFICATION:
        if is_text(cells.type):
            cells = words(cells)
            return as_numpy(cells.cast(pa.int64()) if is_whole(cells) else cells)
        whole = types.is_floating(cells.type) and pc.all(pc.equal(pc.floor(cells), cells)).as_py()
        return as_numpy(cells.cast(pa.int64()) if whole else cells)
    if not is_text(cells.type):
        return as_numpy(cells.cast(pa.float64(), safe=False))
    try:
        return as_numpy(numbers(cells))
    except BadCellError as bad:
        raise CommandError(
            f"Column {name!r} should hold numbers, but row {bad.place + 1:,} of those that have a "
            f"label holds {printable(bad.text)!r}."
        ) from bad


def as_numpy(cells: Cells) -> np.ndarray:
    """A column as an array; text as objects."""
    return cells.to_numpy()
