"""How sure an ensemble is: standard deviations, intervals and sets of classes.

All come from the errors that members made on rows they held out (:mod:`rfrboost._auto.conformal`);
a single network holds none out, and is refused.
"""

from collections.abc import Iterator
from numbers import Real
from typing import Any, cast

import numpy as np

from rfrboost._auto.conformal import Calibration, conforming, intervals, variance
from rfrboost._estimators.fitted import Fitted, NumberTargets
from rfrboost._estimators.labels import LabelTargets
from rfrboost._model.network import PREDICT_ROWS, row_slices
from rfrboost._typing import Array


def with_deviation(fitted: Fitted, X: Array, automatic: bool) -> tuple[Array, Array]:
    """Predictions and their standard deviations, in the units of y."""
    calibration = calibration_of(fitted, automatic, "return_std")
    prediction = fitted.targets.predictions(fitted.loss, fitted.network.raw(X))
    between = np.vstack([predictions.var(axis=1) for _, predictions in members(fitted, X)])
    std = fitted.targets.scale.scale * np.sqrt(variance(calibration) + between)
    return prediction, std[:, 0] if fitted.targets.one_output else std


def intervals_of(fitted: Fitted, X: Array, coverage: float, automatic: bool) -> Array:
    """Lower and upper ends (n, 2) or (n, d, 2) of intervals with this coverage, by CV+."""
    calibration = calibration_of(fitted, automatic, "predict_interval")
    blocks = [intervals(calibration, centres, coverage) for _, centres in members(fitted, X)]
    targets = fitted.targets
    assert isinstance(targets, NumberTargets)  # intervals are of numbers
    scale = targets.scale
    ends = targets.bounded(np.concatenate(blocks)) * scale.scale[:, None] + scale.shift[:, None]
    return ends[:, 0] if targets.one_output else ends


def class_sets_of(fitted: Fitted, X: Array, coverage: float, automatic: bool) -> np.ndarray:
    """Which classes (n, classes) cannot be excluded; the most probable one is always among them."""
    if isinstance(fitted.targets, LabelTargets):
        raise ValueError(
            "predict_set gives sets of classes that exclude each other, and this model predicts "
            "several labels per row: use predict_proba(X), the probability of each of them."
        )
    calibration = calibration_of(fitted, automatic, "predict_set")
    sets = []
    for raw, probabilities in members(fitted, X):
        chosen = conforming(calibration, 1.0 - probabilities, coverage)
        best = np.argmax(fitted.loss.predict(raw.mean(axis=1)), axis=1)
        chosen[np.arange(len(raw)), best] = True
        sets.append(chosen)
    return np.vstack(sets)


def members(
    fitted: Fitted, X: Array, batch_rows: int = PREDICT_ROWS
) -> Iterator[tuple[Array, Array]]:
    """The members' raw predictions (rows, members, d) and predictions, a batch at a time."""
    d = fitted.n_outputs
    for rows in row_slices(len(X), batch_rows):
        phi = fitted.network.transform(X[rows])
        predictions = fitted.loss.predict(phi.reshape(-1, d))
        m = phi.shape[1] // d
        yield phi.reshape(len(phi), m, d), predictions.reshape(len(phi), m, predictions.shape[1])


def check_coverage(coverage: Any) -> None:
    """Refuse what is not a share."""
    if not (isinstance(coverage, Real) and 0 < cast(float, coverage) < 1):
        raise ValueError(
            "coverage is the share of rows to be covered, a number between 0 and 1, as in 0.9; "
            f"got {coverage!r}."
        )


def calibration_of(fitted: Fitted, automatic: bool, what: str) -> Calibration:
    """The held-out scores, or a ValueError that says why there are none."""
    if fitted.loss.several_levels:
        raise ValueError(
            f"{what} needs one prediction for each target, and this model predicts several "
            "quantile levels, which say how sure it is themselves: use predict(X)."
        )
    if fitted.calibration is not None:
        return fitted.calibration
    if automatic:
        raise ValueError(
            f"{what} needs the errors of an ensemble on held-out rows, which this model does not "
            "have: it was fitted to fewer than 50 rows, or trained in PyTorch since it was fitted, "
            "or its file was written before they were kept. Fit it again to at least 50 rows."
        )
    raise ValueError(
        f"{what} needs the errors on held-out rows, and a single network (n_layers a number) holds "
        "none out. Fit with n_layers='auto'."
    )
