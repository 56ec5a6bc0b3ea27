"""``rfrboost fit``: from a table to a model file."""

import os
import time
from pathlib import Path

from rfrboost.cli.console import in_words, line_cleared, on_terminal, say
from rfrboost.cli.errors import WrongUsageError
from rfrboost.cli.output import named
from rfrboost.cli.tasks import Task
from rfrboost.cli.training import default_model, estimator_for, read_training

SCORES = {Task.REGRESSION: "R²", Task.CLASSIFICATION: "accuracy"}


def fit(
    table: str,
    target: str,
    out: str | None,
    task: Task | None,
    drop: list[str],
    max_seconds: float | None,
    seed: int,
) -> None:
    """Fit the automatic model to all rows that have a label, and save it."""
    path = out or default_model(table)
    check_model_path(path)
    training = read_training(table, target, task, drop)
    say(f"Fitting {training.size}.")
    began = time.monotonic()
    model = estimator_for(training.target.task, seed, max_seconds, on_terminal())
    with line_cleared():
        model.fit(training.frame, training.target.labels)
    seconds = time.monotonic() - began
    score = getattr(model, "oof_score_", None)
    if score is not None:
        name = SCORES[training.target.task]
        say(f"{name} {score:.4f} on rows that the members predicting them had not seen.")
    with named(path):
        model.set_params(verbose=0).save(path)
    size = os.path.getsize(path) / 1e6
    say(f"Wrote {path} ({size:.1f} MB) after {in_words(seconds)} of fitting.")


def check_model_path(path: str) -> None:
    """Refuse, before the work and not after it, a place where no file can be."""
    target = Path(os.path.realpath(path))
    if path == "-" or (target.exists() and not target.is_file()):
        raise WrongUsageError(f"A model goes to a file, and --out {path} is none.")
    if not target.parent.is_dir():
        raise WrongUsageError(f"There is no folder {target.parent} for --out {path}.")
