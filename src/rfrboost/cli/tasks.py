"""What can be predicted."""

from enum import StrEnum


class Task(StrEnum):
    """Numbers or classes."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"
