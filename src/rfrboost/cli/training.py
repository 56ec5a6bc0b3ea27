"""A table and its label, ready to be learned from; the unfitted estimator of a task."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost.cli.console import say
from rfrboost.cli.errors import CommandError, listed
from rfrboost.cli.frames import training_frame
from rfrboost.cli.labels import Target, read_target
from rfrboost.cli.tables import open_table
from rfrboost.cli.tasks import Task

ESTIMATORS = {
    Task.REGRESSION: RFRBoostRegressor,
    Task.CLASSIFICATION: RFRBoostClassifier,
}


@dataclass(frozen=True)
class Training:
    """Inputs, and what is to be predicted from them."""

    frame: pd.DataFrame
    target: Target

    @property
    def size(self) -> str:
        """Rows and columns, for a sentence."""
        rows, columns = self.frame.shape
        return f"{rows:,} rows, {columns:,} column{'s' * (columns != 1)}"


def read_training(path: str, target: str, task: Task | None, drop: list[str]) -> Training:
    """The rows of a table that have a label."""
    with open_table(path) as table:
        absent = [name for name in [target, *drop] if name not in table.columns]
        if absent:
            raise CommandError(
                f"{table.name} has no column {listed(absent)}; its columns are "
                f"{listed(table.columns)}."
            )
        if table.ignored:
            say(f"Left out {listed(table.ignored)}, which only names the rows.")
        inputs = [name for name in table.columns if name not in {target, *drop}]
        if not inputs:
            raise CommandError(f"{table.name} has no column to predict {target!r} from.")
        read = table.whole([*inputs, target])
        label = read_target(read[target], target, task)
        rows = read.select(inputs).filter(pa.array(label.present))
        return Training(training_frame(rows, table.typed), label)


def estimator_for(
    task: Task, seed: int, max_seconds: float | None, verbose: bool
) -> RFRBoostRegressor | RFRBoostClassifier:
    """The automatic model."""
    return ESTIMATORS[task](random_state=seed, max_seconds=max_seconds, verbose=int(verbose))


def default_model(path: str) -> str:
    """Where the model of a table goes if nobody says: beside us, called like the table."""
    return f"{Path(path).name.split('.')[0] if path != '-' else 'model'}.rfrboost"
