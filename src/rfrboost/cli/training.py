"""A table as training data: its inputs, its labels, the task, and an estimator for that task.

If the user does not name the task, the target column decides: text, truth values and up to ten
different whole numbers are classes, other numbers are a regression target. Rows without a label
are left out. Both are reported on standard error.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.cli.console import (
    CommandError,
    WrongUsageError,
    counted,
    listed,
    printable,
    say,
)
from rfrboost.cli.reading.columns import (
    MOSTLY,
    NUMBER,
    NUMERIC,
    TEXTUAL,
    BadCellError,
    Cells,
    Convert,
    as_written,
    categories_as_text,
    is_any,
    is_text,
    odd_cell,
    to_numbers,
    to_truth,
    training_frame,
)
from rfrboost.cli.reading.roles import as_numpy, check_roles, row_groups, row_weights
from rfrboost.cli.reading.tables import open_table
from rfrboost.cli.request import STANDARD, Roles, Settings, Source, Task

# Up to this many different whole numbers are classes. Grades and digits are classes and have no
# more than ten different values; counts mostly have more.
MOST_CLASSES = 10
#: whole numbers without leading zeros, which stay the same text when they are read as int64
WHOLE = r"^(0|-?[1-9]\d{0,17})$"
# If most levels of a target look like numbers and there are more levels than this, it is taken for
# a column of numbers that are written wrongly, not for classes.
MOST_NUMBER_LEVELS = 30
#: numbers as people write them: signs, separators of thousands, currencies, units, percent
NUMBER_LIKE = (
    r"^[(+-]?\s*(\p{Sc}|[A-Z]{3})?\s*[+-]?[.,]?"
    r"\d[\d.,'’_ \x{a0}\x{202f}]*(\p{Sc}|%|\p{L}{1,3}[²³]?)?\)?$"
)


@dataclass(frozen=True)
class Target:
    """The task, the labels of the rows that have one, and which rows these are (a mask)."""

    task: Task
    labels: np.ndarray
    present: np.ndarray

    @property
    def is_constant(self) -> bool:
        """Whether all labels are equal, so that no score means anything."""
        return bool((self.labels == self.labels[0]).all())


@dataclass(frozen=True)
class Training:
    """The inputs of all rows that have a label, their target, and their weights and groups or
    None."""

    frame: pd.DataFrame
    target: Target
    weights: np.ndarray | None
    groups: np.ndarray | None

    @property
    def size(self) -> str:
        """Rows and columns, for a sentence."""
        rows, columns = self.frame.shape
        return f"{counted(rows, 'row')}, {counted(columns, 'column')}"


def read_training(source: Source, roles: Roles) -> Training:
    """Read a table and keep the rows that have a label."""
    target = roles.target
    beside = [name for name in (roles.weight, roles.groups) if name is not None]
    check_roles(roles)
    with open_table(source) as table:
        wanted = [target, *beside, *roles.drop, *roles.categorical]
        absent = [name for name in wanted if name not in table.columns]
        if absent:
            raise CommandError(
                f"{table.name} has no column {listed(absent)}; its columns are "
                f"{listed(table.columns)}."
            )
        if table.ignored:
            say(f"Ignored {listed(table.ignored)}, which only names the rows.")
        inputs = [name for name in table.columns if name not in {target, *beside, *roles.drop}]
        if not inputs:
            raise CommandError(f"{table.name} has no column to predict {target!r} from.")
        read = table.whole([*inputs, target, *dict.fromkeys(beside)])
        label = read_target(read[target], target, roles.task)
        rows = read.filter(pa.array(label.present))
        weights = None if roles.weight is None else row_weights(rows[roles.weight], roles.weight)
        groups = None if roles.groups is None else row_groups(rows[roles.groups], roles.groups)
        frame = training_frame(rows.select(inputs), table.typed, roles.categorical)
        return Training(frame, label, weights, groups)


def estimator_for(
    task: Task, settings: Settings, verbose: bool
) -> RFRBoostRegressor | RFRBoostClassifier:
    """The automatic model for a task, not fitted yet; what is not set keeps its default."""
    if task == Task.CLASSIFICATION:
        if settings.loss is not None or settings.quantile:
            raise WrongUsageError(
                "--loss and --quantile are for regression, and this is classification: leave them "
                "out, or use --task regression."
            )
        model: RFRBoostRegressor | RFRBoostClassifier = RFRBoostClassifier()
    else:
        model = RFRBoostRegressor()
        if settings.loss is not None:
            model.loss = str(settings.loss)
        if settings.quantile:
            several = len(settings.quantile) > 1
            model.quantile = settings.quantile if several else settings.quantile[0]
    if settings.bags is not None:
        model.n_bags = settings.bags
    model.random_state = settings.seed
    model.max_seconds = settings.max_seconds
    model.verbose = int(verbose)
    return model


def default_model(path: str) -> str:
    """The default model file of a table: its name with .rfrboost, in the current folder."""
    return f"{Path(path).name.split('.')[0] if path != STANDARD else 'model'}.rfrboost"


# The target column.


def read_target(column: Cells, name: str, wanted: Task | None) -> Target:
    """The labels in a column; reports the task and how many rows are left out."""
    cells = categories_as_text(column)
    if types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if not is_any(cells.type, (*TEXTUAL, *NUMERIC, types.is_boolean)):
        raise CommandError(f"Column {name!r} has type {cells.type}, which cannot be predicted.")
    present = labelled_rows(cells, wanted)
    if not present.any():
        raise CommandError(f"Column {name!r} is empty, so there is nothing to learn.")
    if not present.all():
        absent = int((~present).sum())
        say(f"Left out {absent:,} of {len(present):,} rows without a value of {printable(name)!r}.")
    kept = cells.filter(pa.array(present))
    declared = types.is_dictionary(column.type) or types.is_boolean(column.type)
    task, why = (wanted, "as requested") if wanted else detected(kept, name, declared)
    say(f"Task: {task} ({why})")
    return Target(task, label_values(kept, name, task), present)


def labelled_rows(cells: Cells, wanted: Task | None) -> np.ndarray:
    """A mask of the rows that have a label."""
    if not is_text(cells.type):
        return as_numpy(pc.invert(pc.is_null(cells, nan_is_null=True)))
    if wanted != Task.CLASSIFICATION:
        try:
            # Columns of numbers have more spellings of a missing value, such as "?".
            return as_numpy(pc.is_valid(to_numbers(cells)))
        except BadCellError:
            pass
    return as_numpy(pc.is_valid(as_written(cells)))


def detected(cells: Cells, name: str, declared: bool) -> tuple[Task, str]:
    """The task and the reason; ``declared`` if the file's type of the column means classes."""
    different = len(pc.unique(as_written(cells) if is_text(cells.type) else cells))
    is_words = is_text(cells.type) and not all_are(cells, to_numbers)
    if is_words and not declared:
        check_classes(cells, name, different)
    if is_words or declared:
        return Task.CLASSIFICATION, counted(different, "class", "classes")
    # Floating-point columns are numbers, unless they contain at most two whole numbers, such as 0
    # and 1: then missing values may be why they are floating-point.
    most = 2 if types.is_floating(cells.type) else MOST_CLASSES
    if different <= most and all_whole(cells):
        values = counted(different, "different whole number")
        return Task.CLASSIFICATION, (
            f"{printable(name)!r} contains {values}; use --task regression to predict a number"
        )
    return Task.REGRESSION, f"{printable(name)!r} contains numbers"


def check_classes(cells: Cells, name: str, different: int) -> None:
    """Refuse text that looks like numbers with a mistake, or like free text."""
    odd = odd_cell(cells)
    if odd is not None and different > MOST_CLASSES:
        raise CommandError(
            f"Column {name!r} contains numbers, but {odd.text!r} in row {odd.position + 1:,} of "
            "those with a label: correct it, or use --task classification."
        )
    check_number_like(cells, name, different)
    if different > max(len(cells) / 2, MOST_CLASSES):
        raise CommandError(
            f"Column {name!r} contains {different:,} different words in {len(cells):,} rows, too "
            "many to be classes; use --task classification if they are."
        )


def check_number_like(cells: Cells, name: str, different: int) -> None:
    """Refuse numbers that are written in a way that is not read."""
    cells = as_written(cells)
    alike = pc.match_substring_regex(cells, NUMBER_LIKE)
    if different <= MOST_NUMBER_LEVELS or pc.sum(alike).as_py() < MOSTLY * len(cells):
        return
    odd = pc.and_(alike, pc.invert(pc.match_substring_regex(cells, NUMBER)))
    example = cells.filter(odd)[0].as_py()
    raise CommandError(
        f"Column {printable(name)!r} contains {different:,} different values that look like "
        f"numbers but are not written as such, for example {printable(example)!r}. Use --decimal "
        "comma if the decimal sign is a comma; remove separators of thousands, currencies and "
        "units; or use --task classification if these are classes."
    )


def all_are(cells: Cells, convert: Convert) -> bool:
    """Whether all cells of text can be converted, for example to numbers."""
    try:
        convert(cells)
    except BadCellError:
        return False
    return True


def all_whole(cells: Cells) -> bool:
    """Whether all numbers are whole, also those written as 1.0."""
    if is_text(cells.type):
        found = as_numpy(to_numbers(cells))
    else:
        found = as_numpy(cells.cast(pa.float64(), safe=False))
    return bool((found == np.floor(found)).all())


def is_whole(cells: Cells) -> bool:
    """Whether all cells are whole numbers and written as such."""
    return bool(pc.all(pc.match_substring_regex(as_written(cells), WHOLE)).as_py())


def label_values(cells: Cells, name: str, task: Task) -> np.ndarray:
    """The labels as the estimators take them; classes are spelled as in the table."""
    if task == Task.CLASSIFICATION:
        if is_text(cells.type):
            cells = as_written(cells)
            truths = all_are(cells, to_truth)
            return as_numpy(truth_labels(cells) if truths else whole_labels(cells))
        whole = types.is_floating(cells.type) and pc.all(pc.equal(pc.floor(cells), cells)).as_py()
        return as_numpy(cells.cast(pa.int64()) if whole else cells)
    if not is_text(cells.type):
        return as_numpy(cells.cast(pa.float64(), safe=False))
    try:
        return as_numpy(to_numbers(cells))
    except BadCellError as bad:
        raise CommandError(
            f"Column {name!r} should contain numbers, but row {bad.position + 1:,} of those with a "
            f"label contains {printable(bad.text)!r}."
        ) from bad


def whole_labels(cells: Cells) -> Cells:
    """Labels as text, or as whole numbers if they are written as such."""
    return cells.cast(pa.int64()) if is_whole(cells) else cells


def truth_labels(cells: Cells) -> Cells:
    """Truth values; as text if all are written in one way other than True and False."""
    words = pc.unique(cells).to_pylist()
    truths = to_truth(cells)
    same = len(words) == len(pc.unique(truths))
    return cells if same and not set(words) <= {"True", "False"} else truths
