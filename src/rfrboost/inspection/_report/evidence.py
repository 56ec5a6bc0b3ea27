"""What the report says about a model, measured: scores, predictions, coverage, seconds, bytes.

All predictions here are for rows that the predicting model was not fitted on. The model's settings
are fitted again without the rows of each fold, because nobody can tell whether the rows at hand
were among those that the model itself was fitted on.
"""

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from rfrboost.inspection._models import column_names, table_of
from rfrboost.inspection._report.baselines import linear, trees
from rfrboost.inspection._report.trial import LINEAR_MODEL, Trial, out_of_fold, some, trials

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
    and its mean width or size. ``folds`` says in words how rows were held out.
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
    folds: str


@dataclass(frozen=True)
class HoldingOut:
    """How rows are held out: by ``cv``, by whole groups, or at random in a number of folds.

    ``groups`` (n,) and ``weights`` (n,) are those of the rows given, or None.
    """

    folds: int
    seed: int
    groups: np.ndarray | None = None
    weights: np.ndarray | None = None
    cv: Any = None

    def at(self, rows: np.ndarray) -> "HoldingOut":
        """The same for some of the rows."""
        return replace(self, groups=some(self.groups, rows), weights=some(self.weights, rows))

    def words(self) -> str:
        """A sentence about the folds."""
        if self.cv is not None:
            return f"Folds are those of {type(self.cv).__name__}."
        if self.groups is not None:
            different = len(np.unique(self.groups))
            return f"{self.folds} folds hold out whole groups, of which there are {different:,}."
        return (
            f"{self.folds} folds are drawn at random. If rows belong together, or the model is "
            "for later rows than these, scores are too good: pass groups or cv then."
        )


def gather(model: Any, X: Any, y: Any, holding_out: HoldingOut) -> Evidence:
    """Cross-validate the model's settings beside others, and measure the model itself."""
    task = "classification" if is_classifier(model) else "regression"
    frame = as_frame(model, X)
    labels = np.asarray(y)
    if len(labels) != len(frame):
        raise ValueError(f"X has {len(frame):,} rows, but y has {len(labels):,}.")
    if labels.ndim != 1:
        raise ValueError(f"The report takes one target, but y has {labels.ndim} axes.")
    if np.ndim(model.predict(table_of(model, X)[:1])) > 1:
        raise ValueError(
            "The report takes one prediction per row, but this model predicts several quantiles. "
            "Fit one of a single level for a report."
        )
    for name, values in (("groups", holding_out.groups), ("weights", holding_out.weights)):
        if values is not None and len(values) != len(frame):
            raise ValueError(f"X has {len(frame):,} rows, but there are {len(values):,} {name}.")
    drawn = np.random.default_rng(holding_out.seed).permutation(len(frame))
    rows = np.sort(drawn[:MOST_ROWS])
    own = holding_out.at(rows)
    frame = frame.iloc[rows].reset_index(drop=True)
    labels = labels[rows] if task == "classification" else labels[rows].astype(float)
    models = {
        OURS: lambda *_: unfitted(model, own.cv),
        "HistGradientBoosting": trees,
        LINEAR_MODEL[task]: linear,
    }
    done: list[Trial] = []
    coverage: list[tuple[float, dict[float, tuple[float, float]]]] = []
    for trial in trials(
        frame, labels, task, models, own.folds, own.seed, own.weights, own.groups, own.cv
    ):
        if trial.name == OURS:
            held_out = frame.iloc[trial.rows]
            w = np.ones(len(labels)) if own.weights is None else own.weights
            found = covered(trial.fitted, held_out, labels[trial.rows], task, w[trial.rows])
            coverage.append((float(w[trial.rows].sum()), found))
        done.append(trial)
    ours = [trial for trial in done if trial.name == OURS]
    # A splitter by time holds out the later rows only.
    held = np.unique(np.concatenate([trial.rows for trial in ours]))
    return Evidence(
        task=task,
        frame=frame.iloc[held].reset_index(drop=True),
        y=labels[held],
        rows=rows[held],
        scores={name: by_score([t for t in done if t.name == name]) for name in models},
        seconds={n: float(np.mean([t.seconds for t in done if t.name == n])) for n in models},
        predicted=out_of_fold(ours, len(labels))[held],
        coverage=averaged(coverage),
        predict_seconds=seconds_per_row(model, X),
        n_bytes=saved_bytes(model),
        folds=own.words(),
    )


def unfitted(model: Any, cv: Any) -> Any:
    """The model with its settings, but not its fit; ``cv`` says how many members it has."""
    own = clone(model)
    if cv is not None and getattr(own, "n_layers", None) == "auto":
        own.set_params(n_bags=type(model)().n_bags)
    return own


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
    model: Any, frame: pd.DataFrame, y: np.ndarray, task: str, w: np.ndarray
) -> dict[float, tuple[float, float]]:
    """Coverage and mean width (or size) of intervals (or sets) at each level, if there are any.

    Means are weighted by ``w`` (n,).
    """
    found: dict[float, tuple[float, float]] = {}
    if not w.any():
        return found
    for level in LEVELS:
        try:
            if task == "regression":
                low, high = model.predict_interval(frame, coverage=level).T
                inside = (low <= y) & (y <= high)
                found[level] = (
                    float(np.average(inside, weights=w)),
                    float(np.average(high - low, weights=w)),
                )
            else:
                sets = model.predict_set(frame, coverage=level)
                right = (sets & (y[:, None] == model.classes_)).any(axis=1)
                sizes = sets.sum(axis=1)
                found[level] = (
                    float(np.average(right, weights=w)),
                    float(np.average(sizes, weights=w)),
                )
        except (AttributeError, ValueError):
            # Single networks and fits of few rows have no held-out errors to make intervals of.
            return {}
    return found


def averaged(
    by_fold: list[tuple[float, dict[float, tuple[float, float]]]],
) -> dict[float, tuple[float, float]]:
    """Means over folds, weighted by the weight of their rows; empty if a fold has no intervals."""
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
