"""``rfrboost fit``: from a table to a model file."""

import os
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from rfrboost.cli.console import (
    CommandError,
    WrongUsageError,
    duration,
    printable,
    say,
)
from rfrboost.cli.notices import say_columns, warnings_said
from rfrboost.cli.output import named, refuse_overwriting
from rfrboost.cli.request import STANDARD, Roles, Settings, Source, Task
from rfrboost.cli.training import Target, default_model, estimator_for, read_training

#: the score that an estimator has as ``oof_score_`` after an automatic fit
OUT_OF_FOLD_SCORE = {Task.REGRESSION: "R²", Task.CLASSIFICATION: "accuracy"}
#: that of several quantile levels, beside the best constants
SAVED = "share of the pinball loss saved"
# A model that saves less than this share of the loss of a constant has learnt hardly anything.
LITTLE = 0.01


def fit(table: Source, roles: Roles, out: str | None, settings: Settings) -> None:
    """Fit the automatic model to all rows that have a label, and save it."""
    path = out or default_model(table.path)
    check_model_path(path)
    refuse_overwriting(path, table.path)
    training = read_training(table, roles)
    say(f"Fitting {training.size}.")
    began = time.monotonic()
    model = estimator_for(training.target.task, settings, True)
    if roles.categorical:
        model.categorical_features = list(roles.categorical)
    with warnings_said():
        model.fit(training.frame, training.target.labels, training.weights, groups=training.groups)
    seconds = time.monotonic() - began
    say_columns([asdict(column) for column in model.column_report_])
    if training.target.is_constant:
        say(
            f"Every value of {printable(roles.target)!r} is the same: the model predicts it always."
        )
    # Fits of fewer than 50 rows have no out-of-fold score.
    elif hasattr(model, "oof_score_"):
        several = len(settings.quantile) > 1
        score = SAVED if several else OUT_OF_FOLD_SCORE[training.target.task]
        say(f"Cross-validated {score}: {model.oof_score_:.3f}")
        if saved_share(model, training.target) < LITTLE:
            say(
                f"The columns say hardly anything about {printable(roles.target)!r}: the model is "
                "little better than predicting the same for all rows."
            )
    with named(path):
        model.set_params(verbose=0).save(path)
    size = os.path.getsize(path) / 1e6
    say(f"Wrote {path} ({size:.1f} MB) after {duration(seconds)} of fitting.")


def saved_share(model: Any, target: Target) -> float:
    """The share of a constant's loss that out-of-fold predictions save."""
    if target.task == Task.REGRESSION:
        return float(model.oof_score_)
    classes, counts = np.unique(target.labels, return_counts=True)
    shares = np.tile(counts / counts.sum(), (len(target.labels), 1))
    constant = log_loss(target.labels, shares, labels=classes)
    return float(1 - log_loss(target.labels, model.oof_prediction_, labels=classes) / constant)


def check_model_path(path: str) -> None:
    """Refuse a path that cannot be written before the fit, not after it."""
    target = Path(os.path.realpath(path))
    if path == STANDARD or (target.exists() and not target.is_file()):
        raise WrongUsageError(f"--out {path} is not a file; a model can be saved to a file only.")
    if not target.parent.is_dir():
        raise WrongUsageError(f"There is no folder {target.parent} for --out {path}.")
    try:
        with TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(
            f"Cannot write {path}: {reason} in the folder {target.parent}."
        ) from error
