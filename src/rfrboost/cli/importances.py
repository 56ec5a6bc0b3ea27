"""How much every column of a table matters to what a model predicts for it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier


def outputs(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """Predicted numbers or probabilities, (n, d)."""
    values = model.predict_proba(frame) if is_classifier(model) else model.predict(frame)
    return np.asarray(values, dtype=float).reshape(len(frame), -1)


def total_effects(
    model: Any, frame: pd.DataFrame, seed: int, advance: Callable[[int], None]
) -> np.ndarray:
    """The share of the predictions' variance that goes when a column is shuffled, for each column.

    With f the predictions and f_j those after column j was shuffled, E‖f − f_j‖² / (2·Var f):
    Jansen's estimate of the total effect, which counts what a column does alone and together with
    others, so that the effects may add up to more than 1. Columns that tell the same share theirs.
    """
    rng = np.random.default_rng(seed)
    predicted = outputs(model, frame)
    variance = predicted.var(axis=0).sum()
    effects = np.zeros(frame.shape[1])
    for j, name in enumerate(frame.columns):
        shuffled = frame.copy(deep=False)
        shuffled[name] = frame[name].to_numpy()[rng.permutation(len(frame))]
        if variance > 0:
            change = ((outputs(model, shuffled) - predicted) ** 2).sum(axis=1).mean()
            effects[j] = change / (2 * variance)
        advance(1)
    return effects
