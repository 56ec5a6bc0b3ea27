"""``compress``: a smaller model in place of an ensemble, and what it costs.

The mathematics is in :mod:`rfrboost._compress.imitation`. Here arguments are checked, and judges
compare the error of the model with that of a smaller model. A judge
either measures both on rows with targets that the model has not seen, or estimates them: the
model's error from the rows its members held out, and what is added to it from how far the two
models differ on made-up rows.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any, Protocol, cast

import numpy as np
from numpy.random import default_rng

from rfrboost._auto.conformal import Calibration, pooled
from rfrboost._compress.imitation import (
    Pool,
    Rung,
    imitated_rows,
    judged_and_imitated,
    judging_rows,
    network_of,
    normal_equations,
    pool_of,
    rungs,
)
from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.fitted import ClassTargets, Compression, Fitted, Targets
from rfrboost._estimators.problem import checked_weights, present_rows
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, centered
from rfrboost._numerics.blas import product
from rfrboost._typing import Array

# The tolerance where neither tolerance nor size is given.
TOLERANCE = 0.01

# The fewest rows that something can be learned from, as in a fit.
FEWEST_ROWS = 50

# Errors beyond this many times the tolerance end the search for smaller models.
HOPELESS = 3.0

# Rows whose probabilities are certain count this much beside rows of the mean uncertainty.
LEAST_WEIGHT = 0.05

# The least probability of which a logarithm is taken.
RAREST = 1e-12

# An error below this, in the units of the fit, is a rounding error.
TINIEST = 1e-12

NOT_AN_ENSEMBLE = (
    "compress is for ensembles, fitted with n_layers='auto' to at least 50 rows in memory. A "
    "single network is made smaller by fewer n_layers or n_features."
)


def compressed(
    model: NetworkEstimator,
    X: Any,
    sample_weight: Any,
    tolerance: Any,
    size: Any,
    training_rows: bool,
    validation: tuple[Any, Any],
) -> Fitted:
    """What a smaller model has in place of a model's fitted state; see ``compress``."""
    wanted = checked_budget(tolerance, size)
    fitted = model._model()
    if fitted.network.prediction is None:
        raise ValueError(NOT_AN_ENSEMBLE)
    rows = rows_to_imitate(model, X, sample_weight)
    measured = (
        None
        if validation[0] is None and validation[1] is None
        else rows_to_measure(model, *validation)
    )
    return smaller(fitted, *rows, wanted, training_rows, measured)


def rows_to_imitate(
    model: NetworkEstimator, X: Any, sample_weight: Any
) -> tuple[Array, Array | None]:
    """The rows as the network sees them and their weights, without rows of weight zero."""
    encoded = model.encode(X)
    w = checked_weights(sample_weight, encoded)
    present = present_rows(w, len(encoded))
    if present.sum() < FEWEST_ROWS:
        raise ValueError(
            f"X has {present.sum()} rows of positive weight, and compress needs at least "
            f"{FEWEST_ROWS}: pass the training rows."
        )
    return encoded[present], None if w is None else w[present]


def rows_to_measure(model: NetworkEstimator, X_val: Any, y_val: Any) -> tuple[Array, Array]:
    """Validation rows as the network sees them, and their targets as the loss does."""
    if X_val is None or y_val is None:
        raise ValueError("X_val and y_val go together: pass both or neither.")
    encoded = model.encode(X_val)
    Y = model._model().targets.encode(y_val, name="y_val")
    if len(Y) != len(encoded):
        raise ValueError(f"X_val has {len(encoded)} rows, but y_val has {len(Y)}.")
    return encoded, Y


@dataclass(frozen=True)
class Budget:
    """A tolerance, or the most features; the other is None."""

    tolerance: float | None
    size: int | None


def checked_budget(tolerance: Any, size: Any) -> Budget:
    """The tolerance or size that the user passed, or an error that says what may be passed."""
    if tolerance is not None and size is not None:
        raise ValueError("Pass a tolerance or a size, not both: each alone decides on the model.")
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            raise ValueError(
                "size is the most neurons, radial features and trees to keep, a whole number of "
                f"zero or more; got {size!r}."
            )
        return Budget(None, int(size))
    tolerance = TOLERANCE if tolerance is None else tolerance
    number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not number or not 0 < cast(float, tolerance) < np.inf:
        raise ValueError(
            "tolerance is the share by which the error may grow, a number above 0, as in 0.01; "
            f"got {tolerance!r}."
        )
    return Budget(float(tolerance), None)


# Judges


class Judge(Protocol):
    """Compares a smaller model with the model, by their raw predictions for ``rows`` (m, D)."""

    @property
    def rows(self) -> Array: ...

    @property
    def before(self) -> float:
        """The error of the model."""

    def after(self, raw: Array) -> float:
        """The error of a smaller model with these raw predictions (m, d)."""


@dataclass(frozen=True)
class Measured:
    """Both errors on rows that have targets Y, in the units of the fit."""

    rows: Array
    Y: Array
    loss: Loss
    targets: Targets
    before: float = np.nan

    def after(self, raw: Array) -> float:
        if self.loss.starts_at_mean and not isinstance(self.targets, ClassTargets):
            # A mean is predicted, of which the RMSE is a score whatever the loss.
            off = self.targets.bounded(self.loss.predict(raw)) - self.Y
            return float(np.sqrt(np.mean(off**2)))
        return float(np.mean(self.loss.value(raw, self.Y)))


@dataclass(frozen=True)
class Estimated:
    """A judge by made-up rows: it has the model's predictions for them, and the model's error."""

    rows: Array
    prediction: Array
    before: float
    loss: Loss
    targets: Targets


class EstimatedNumbers(Estimated):
    """RMSE: squared errors of held-out rows, plus squared differences between the two models.

    That is what the error of new rows is if the difference has nothing to do with their noise.
    """

    def after(self, raw: Array) -> float:
        off = predicted(self.targets, self.loss, raw) - self.prediction
        return float(np.sqrt(self.before**2 + np.mean(off**2)))


class EstimatedClasses(Estimated):
    """Log loss: that of held-out rows, plus the mean divergence KL(model ‖ smaller model).

    That is what the log loss of new rows is if the model's probabilities are right in the mean.
    """

    def after(self, raw: Array) -> float:
        ours, theirs = (np.maximum(p, RAREST) for p in (self.prediction, self.loss.predict(raw)))
        divergence = np.sum(self.prediction * (np.log(ours) - np.log(theirs)), axis=1)
        return self.before + float(np.mean(divergence))


def predicted(targets: Targets, loss: Loss, raw: Array) -> Array:
    """Predictions in the units of the fit: bounded numbers, or probabilities."""
    prediction = loss.predict(raw)
    return prediction if isinstance(targets, ClassTargets) else targets.bounded(prediction)


def judge_of(fitted: Fitted, rows: Array, measured: tuple[Array, Array] | None) -> Judge:
    """The judge by validation rows, or by made-up ``rows`` and the errors of held-out rows."""
    loss, targets = fitted.loss, fitted.targets
    if measured is not None:
        judge = Measured(*measured, loss, targets)
        return replace(judge, before=judge.after(fitted.network.raw(judge.rows)))
    if fitted.calibration is None:
        raise ValueError(
            "This model does not know how large its errors are on new rows (it predicts several "
            "quantile levels or labels, or was trained in PyTorch, or its file is old): pass X_val "
            "and y_val, rows that it has not seen."
        )
    prediction = predicted(targets, loss, fitted.network.raw(rows))
    own = EstimatedClasses if isinstance(targets, ClassTargets) else EstimatedNumbers
    before = held_out_error(fitted.calibration, isinstance(targets, ClassTargets))
    return own(rows, prediction, before, loss, targets)


def held_out_error(calibration: Calibration, classes: bool) -> float:
    """The RMSE or the log loss of the members on rows they held out."""
    scores, weights = (np.concatenate(a) for a in (calibration.scores, calibration.weights))
    if classes:
        losses = -np.log(np.maximum(1.0 - scores, RAREST))
        return float(np.average(losses, weights=weights))
    return float(np.sqrt(np.average(scores**2, weights=weights)))


# The search


def smaller(
    fitted: Fitted,
    X: Array,
    w: Array | None,
    budget: Budget,
    training_rows: bool,
    measured: tuple[Array, Array] | None,
) -> Fitted:
    """What a compressed estimator has in place of ``fitted``."""
    rng = default_rng(fitted.seed)
    network = fitted.network
    sources = fitted.inputs.sources(X.shape[1])
    if measured is None:
        held, rest = judged_and_imitated(len(X), rng)
        own = judging_rows(X[held], None if w is None else w[held], sources, rng)
        X, w = X[rest], None if w is None else w[rest]
    else:
        own = X
    judge = judge_of(fitted, own, measured)
    rows = imitated_rows(X, w, sources, rng)
    pool = candidates(fitted, rows, training_rows)
    if training_rows and budget.size is not None and budget.size >= pool.total:
        return with_record(fitted, network, judge, pool.total, pool.total, measured is not None)
    raw = network.raw(rows)
    x = centered(rows, network.mean)
    normal = normal_equations(pool, x, raw, row_weights(fitted, raw))
    steps = rungs(pool, normal, budget.size)
    chosen = search(pool, steps, judge, network.mean, budget, training_rows)
    if chosen is None:
        return with_record(fitted, network, judge, pool.total, pool.total, measured is not None)
    found = network_of(pool, chosen, network.mean)
    kept = int(chosen.kept.sum())
    return with_record(fitted, found, judge, pool.total, kept, measured is not None)


def candidates(fitted: Fitted, rows: Array, training_rows: bool) -> Pool:
    """The features that a smaller model may keep, or an error that says why there are none."""
    try:
        pool = pool_of(fitted.network, rows, training_rows)
    except TypeError as error:
        raise ValueError(
            f"compress handles neurons, radial features and trees only, and this model has "
            f"features of the class {error}. Fit it with features=('swim', 'trees') or other names."
        ) from error
    if not pool.parts and pool.total:
        raise ValueError(
            "All features of this model are radial features, each around a training row: without "
            "training rows nothing is left. Fit it with features=('swim', 'sparse', 'trees')."
        )
    return pool


def row_weights(fitted: Fitted, raw: Array) -> Array:
    """How much a row counts in the least squares (n,): the loss's curvature where it is known.

    A logit may be far off where a probability is certain, and matters where it is not.
    """
    mean = fitted.loss.predict(raw)
    Y = mean[:, 1:] if isinstance(fitted.targets, ClassTargets) and raw.shape[1] == 1 else mean
    curvature = fitted.loss.curvatures(np.zeros_like(raw), Y)
    if curvature is None:
        return np.ones(len(raw))
    total: Array = curvature.sum(axis=1)
    return total / (total.mean() or 1.0) + LEAST_WEIGHT


def search(
    pool: Pool,
    steps: Iterator[Rung],
    judge: Judge,
    mean: Array,
    budget: Budget,
    training_rows: bool,
) -> Rung | None:
    """The smallest model within the budget; None if the model itself has to stay."""
    x = centered(judge.rows, mean)
    F = pool.values(x)[:, pool.basis.shape[1] :]
    best = first = next(steps)
    if budget.tolerance is None:
        return first
    found = False
    for rung in chain([first], steps):
        raw = product(x, rung.linear) + product(F[:, rung.kept].astype(float), rung.W)
        growth = judge.after(raw) / max(judge.before, TINIEST) - 1.0
        if growth <= budget.tolerance:
            best, found = rung, True
        elif growth > HOPELESS * budget.tolerance:
            break
    if found:
        return best
    if training_rows:
        return None
    warnings.warn(
        f"No model without training rows keeps the tolerance of {budget.tolerance:g}; the largest "
        "one is returned, and its compression_ says by how much the error grows.",
        stacklevel=5,
    )
    return first


def with_record(
    fitted: Fitted, network: Network, judge: Judge, total: int, kept: int, measured: bool
) -> Fitted:
    """The fitted state around another network, or its own, with the record of the compression."""
    targets = fitted.targets
    is_rmse = not isinstance(targets, ClassTargets) and (fitted.loss.starts_at_mean or not measured)
    unit = targets.scale.unit if is_rmse else 1.0
    changed = network is not fitted.network
    after = judge.after(network.raw(judge.rows)) if changed else judge.before
    metric = "log loss" if isinstance(targets, ClassTargets) else "RMSE" if is_rmse else "loss"
    record = Compression(kept, total, metric, unit * judge.before, unit * after, measured)
    if not changed:
        return replace(fitted, compression=record)
    widened = 1.0 if isinstance(targets, ClassTargets) else 1.0 + max(record.cost, 0.0)
    old = fitted.calibration
    return replace(
        fitted,
        network=network,
        calibration=None if old is None else pooled(old, widened),
        shares=None,
        shuffled=None,
        oof_prediction=None,
        oof_score=None,
        compression=record,
    )
