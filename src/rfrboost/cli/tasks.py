"""The two tasks, and the names of the scores that commands report for each."""

from enum import StrEnum


class Task(StrEnum):
    """What is predicted: a number (regression) or a class (classification)."""

    REGRESSION = "regression"
    CLASSIFICATION = "classification"


#: the score that an estimator has as ``oof_score_`` after an automatic fit
OUT_OF_FOLD_SCORE = {Task.REGRESSION: "R²", Task.CLASSIFICATION: "accuracy"}
#: the scores that ``evaluate`` shows, in the order of its columns
METRICS = {
    Task.REGRESSION: ("RMSE", "MAE", "R²"),
    Task.CLASSIFICATION: ("accuracy", "log loss", "calibration error"),
}
#: the linear model that ``evaluate`` compares with
LINEAR_MODEL = {Task.REGRESSION: "ridge regression", Task.CLASSIFICATION: "logistic regression"}
