"""What the report says about a model, measured: scores, predictions, coverage, seconds, bytes.

All predictions here are for rows that the predicting model was not fitted on. The model's settings
are fitted again without the rows of each fold, because nobody can tell whether the rows at hand
were among those that the model itself was fitted on.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from rfrboost.inspection._models import column_names, table_of
from rfrboost.inspection._report.baselines import linear, trees
from rfrboost.inspection._report.trial import LINEAR_MODEL, Trial, out_of_fold, trials

#: the model that the report is about, among those that it is compared with
OURS = "this model"
LEVELS = (0.5, 0.8, 0.9, 0.95)
# The most rows that are cross-validated, and the most rows by which the time of a prediction is
# measured. They bound the time of a report.
MOST_ROWS = 5000
TIMED_ROWS = 1000


@dataclass(frozen=True)
class Evidence:
    """What was measured with the rows ``frame`` and their labels ``y``.

    ``rows`` are their indices among the rows given. ``scores`` has, for each model and score, the
    values of all folds; ``seconds`` has, for each model, the seconds of one fold's fit and
    prediction. ``predicted`` are out-of-fold predictions (n,) or probabilities (n, classes).
    ``coverage`` maps a nominal level to the share of rows whose label is in the interval or set,
    and its mean width or size.
    """

    task: str
    frame: pd.DataFrame
    y: np.ndarray
    rows: np.ndarray
    scores: dict[str, dict[str, np.ndarray]]
    seconds: dict[str, float]
    predicted: np.ndarray
    coverage: dict[float, tuple[float, float]]
    predict_seconds: float
    n_bytes: int | None


def gather(model: Any, X: Any, y: Any, folds: int, seed: int) -> Evidence:
    """Cross-validate the model's settings beside others, and measure the model itself."""
    task = "classification" if is_classifier(model) else "regression"
    frame = as_frame(model, X)
    labels = np.asarray(y)
    if len(labels) != len(frame):
        raise ValueError(f"X has {len(frame):,} rows, but y has {len(labels):,}.")
    if labels.ndim != 1:
        raise ValueError(f"The report takes one target, but y has {labels.ndim} axes.")
    rows = np.sort(np.random.default_rng(seed).permutation(len(frame))[:MOST_ROWS])
    frame = frame.iloc[rows].reset_index(drop=True)
    labels = labels[rows] if task == "classification" else labels[rows].astype(float)
    models = {
        OURS: lambda *_: clone(model),
        "HistGradientBoosting": trees,
        LINEAR_MODEL[task]: linear,
    }
    done: list[Trial] = []
    coverage: list[tuple[int, dict[float, tuple[float, float]]]] = []
    for trial in trials(frame, labels, task, models, folds, seed):
        if trial.name == OURS:
            held_out = frame.iloc[trial.rows]
            found = covered(trial.fitted, held_out, labels[trial.rows], task)
            coverage.append((len(trial.rows), found))
        done.append(trial)
    return Evidence(
        task=task,
        frame=frame,
        y=labels,
        rows=rows,
        scores={name: by_score([t for t in done if t.name == name]) for name in models},
        seconds={n: float(np.mean([t.seconds for t in done if t.name == n])) for n in models},
        predicted=out_of_fold([t for t in done if t.name == OURS], len(labels)),
        coverage=averaged(coverage),
        predict_seconds=seconds_per_row(model, X),
        n_bytes=saved_bytes(model),
    )


def as_frame(model: Any, X: Any) -> pd.DataFrame:
    """X as a data frame with the model's columns; whole numbers as floats."""
    table = table_of(model, X)
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(table, columns=column_names(model))
    numbers = [n for n in table.columns if table[n].dtype.kind in "iuf"]
    return table.astype(dict.fromkeys(numbers, float)).reset_index(drop=True)


def by_score(trials_of_model: list[Trial]) -> dict[str, np.ndarray]:
    """The values of each score over folds."""
    names = trials_of_model[0].scores
    return {name: np.array([t.scores[name] for t in trials_of_model]) for name in names}


def covered(
    model: Any, frame: pd.DataFrame, y: np.ndarray, task: str
) -> dict[float, tuple[float, float]]:
    """Coverage and mean width (or size) of intervals (or sets) at each level, if there are any."""
    found = {}
    for level in LEVELS:
        try:
            if task == "regression":
                low, high = model.predict_interval(frame, coverage=level).T
                found[level] = float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))
            else:
                sets = model.predict_set(frame, coverage=level)
                right = sets & (y[:, None] == model.classes_)
                found[level] = float(right.any(axis=1).mean()), float(sets.sum(axis=1).mean())
        except (AttributeError, ValueError):
            # Single networks and fits of few rows have no held-out errors to make intervals of.
            return {}
    return found


def averaged(
    by_fold: list[tuple[int, dict[float, tuple[float, float]]]],
) -> dict[float, tuple[float, float]]:
    """Means over folds, weighted by their rows; empty if a fold has no intervals."""
    if not all(found for _, found in by_fold):
        return {}
    weights = [n for n, _ in by_fold]
    means = {
        level: np.average([found[level] for _, found in by_fold], axis=0, weights=weights)
        for level in LEVELS
    }
    return {level: (float(share), float(width)) for level, (share, width) in means.items()}


def seconds_per_row(model: Any, X: Any) -> float:
    """The seconds that the prediction of a row takes if up to 1,000 are predicted at once."""
    rows = X[:TIMED_ROWS]
    began = time.perf_counter()
    model.predict(rows)
    return (time.perf_counter() - began) / len(table_of(model, rows))


def saved_bytes(model: Any) -> int | None:
    """The size of the model's file; None if it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rfrboost"
        try:
            model.save(path)
        except (AttributeError, ImportError, ValueError):
            return None
        return path.stat().st_size
