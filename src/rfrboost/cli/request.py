"""What a user passes to a command: the task, the table, the roles of its columns, and settings."""

from dataclasses import dataclass
from enum import StrEnum

#: the name of standard input and standard output on the command line
STANDARD = "-"


class Task(StrEnum):
    """What is predicted: a number (regression) or a class (classification)."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


class LossName(StrEnum):
    """The losses of a regression."""

    SQUARED_ERROR = "squared_error"
    HUBER = "huber"
    QUANTILE = "quantile"
    POISSON = "poisson"


@dataclass(frozen=True)
class Source:
    """A table to read: a file, or standard input (``-``).

    ``separator`` and ``decimal`` are those of delimited text, None if they are to be detected.
    """

    path: str
    separator: str | None = None
    decimal: str | None = None

    @property
    def name(self) -> str:
        """The name of the table in messages."""
        return "Standard input" if self.path == STANDARD else self.path


@dataclass(frozen=True)
class Roles:
    """The column to predict, the task if the user names it, and what other columns are.

    ``drop``, ``weight`` and ``groups`` are no inputs; ``categorical`` are inputs that hold
    categories, whatever is written in them.
    """

    target: str
    task: Task | None = None
    drop: tuple[str, ...] = ()
    weight: str | None = None
    groups: str | None = None
    categorical: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """Parameters of the estimator; ``loss`` and ``quantile`` are for regression only."""

    seed: int = 0
    max_seconds: float | None = None
    loss: LossName | None = None
    quantile: tuple[float, ...] = ()
    bags: int | None = None
