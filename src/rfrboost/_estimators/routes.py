"""The three routes of a fit: a single network of a given number of layers; the ensemble; and, for
many rows outside memory, one network stopped by held-out rows.

``fit`` of every estimator calls :func:`fit_arrays`, :func:`fit_blocks` or
:func:`fit_outside_memory`, which choose a route (:func:`fit_single`, :func:`fit_ensemble`,
:func:`fit_large`). A route takes a :class:`~rfrboost._estimators.problem.Request` and its
:class:`~rfrboost._estimators.problem.Problem`, and returns a
:class:`~rfrboost._estimators.fitted.Fitted`. It changes nothing else, so that a fit that fails
leaves the estimator as it was.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, fields, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.random import default_rng
from sklearn.utils import check_random_state

from rfrboost._auto.fit import Score, fit_auto, phases
from rfrboost._auto.importances import importances
from rfrboost._blocks.held_out import HeldOutRows, HeldOutStopping
from rfrboost._blocks.open import open_blocks
from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._blocks.sample import BlockSample
from rfrboost._estimators.fitted import Fitted, fitted_ensemble
from rfrboost._estimators.parameters import (
    BUMPS,
    ENSEMBLE,
    FEWEST_ROWS,
    LARGE,
    SINGLE,
    Parameters,
    check_effects,
    families_of,
    feature_counts,
    plan_for,
    recipe_for,
    resolved,
)
from rfrboost._estimators.problem import (
    ENCODING_SEED,
    Arrays,
    Problem,
    Request,
    problem_of_arrays,
    problem_of_chunks,
)
from rfrboost._estimators.progress import IMPORTANCES, READING
from rfrboost._model.history import LayerRecord
from rfrboost._numerics.blas import gram
from rfrboost._numerics.threads import OutOfTimeError
from rfrboost._paper.boost import boost
from rfrboost._paper.stopping import FEWEST_LAYERS
from rfrboost._rows.chunks import Chunks
from rfrboost._tables.affordable import warn_of_sample
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder


def fit_arrays(
    request: Request, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any
) -> Fitted:
    """Fit rows in memory, by the ensemble or by a single network.

    It is the ensemble if the fit is automatic and there are at least ``FEWEST_ROWS`` rows of
    non-negligible weight, else a single network.
    """
    asked = ENSEMBLE if request.parameters.automatic else SINGLE
    check_effects(request.parameters, asked)
    problem = problem_of_arrays(request, X, y, sample_weight, X_val, y_val, FEWEST_ROWS)
    if asked == ENSEMBLE and problem.chunks.facts.n_rows >= FEWEST_ROWS:
        return fit_ensemble(request, problem)
    return fit_single(request, problem)


# The share of the time in which all blocks must have been read once; after that, those that were
# read are fitted.
LOOK_SHARE = 0.3

# How many times as long as the Gram matrix of its features a layer of a large fit takes.
LAYER_COST = 1.5


class Look(Protocol):
    """A first look at rows that are not in memory."""

    #: how many rows there are
    n_rows: int
    #: whether all rows have been seen; if not, there was no time for that
    complete: bool
    #: how many processes work on the rows
    n_workers: int

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of all rows if there are at most ``Sizes.sampled_rows``.

        Otherwise of evenly spaced rows, at most that many.
        """


def fit_blocks(request: Request, blocks: RowBlocks) -> Fitted:
    """Fit rows that are read block by block."""
    reader = BlockArrays if request.task == "regression" else ClassBlockArrays
    return fit_outside_memory(
        request,
        lambda: BlockSample(reader(blocks), request.sizes, part_of_time(LOOK_SHARE, request)),
        lambda encoder, held: reader(blocks, encoder, held),
        lambda source: open_blocks(source, request.sizes),
    )


def fit_outside_memory(
    request: Request,
    look: Callable[[], Look],
    reader: Callable[[Encoder | None, HeldOutRows | None], BlockArrays],
    opened_chunks: Callable[[BlockArrays], AbstractContextManager[Chunks]],
) -> Fitted:
    """Fit rows on disk or on Dask workers.

    If ``n_layers`` is a number, rows are fitted in chunks however few they are. In an automatic
    fit, up to ``Sizes.gathered_rows`` rows are gathered and fitted in memory; more are fitted by
    :func:`fit_large`. ``look`` takes a first look at the rows, ``reader`` says how blocks become
    arrays, and ``opened_chunks`` gives these in chunks.
    """
    parameters = request.parameters
    check_effects(parameters, ENSEMBLE if parameters.automatic else SINGLE)
    if parameters.sample_splitting:
        raise ValueError(
            "sample_splitting shuffles all rows, which must be in memory for that: pass arrays, or "
            "set sample_splitting=False."
        )
    if not parameters.automatic:
        source = reader(None, None)
        with opened_chunks(source) as chunks:
            return fit_single(request, problem_of_chunks(request, chunks, source))
    first_look = look()
    X, y, w = first_look.sample()
    if first_look.n_rows <= request.sizes.gathered_rows:
        return fit_arrays(request, X, y, w, None, None)
    check_effects(parameters, LARGE)
    if not has_time_for_all(request, first_look):
        if len(y) < first_look.n_rows:
            warn_of_sample(len(y), first_look.n_rows)
        return fit_arrays(request, X, y, w, None, None)
    encoder: Encoder | None = None
    if parameters.prepares:
        rng = default_rng(ENCODING_SEED)
        categorical = parameters.categorical_features
        encoder = fit_encoder(X, y, w, request.task, rng, None, categorical)[0]
    source = reader(encoder, HeldOutRows(first_look.n_rows))
    with opened_chunks(source) as chunks:
        return fit_large(request, problem_of_chunks(request, chunks, source))


def part_of_time(share: float, request: Request) -> float:
    """When this share of the time until the deadline will have passed."""
    now = perf_counter()
    return now + share * (request.deadline - now)


def has_time_for_all(request: Request, look: Look) -> bool:
    """Whether a large fit can have some layers of all rows before the deadline.

    A layer takes about LAYER_COST times as long as the Gram matrix of its features, which a batch
    of rows shows.
    """
    if np.isinf(request.deadline) or not look.complete:
        return look.complete
    p = sum(feature_counts(resolved(request.parameters, LARGE, request.task).n_features))
    batch = np.ones((request.sizes.batch_rows, p))
    began = perf_counter()
    gram(batch)
    ended = perf_counter()
    seconds = (ended - began) * look.n_rows / len(batch) / look.n_workers
    return FEWEST_LAYERS * LAYER_COST * seconds < request.deadline - ended


def fit_single(request: Request, problem: Problem) -> Fitted:
    """One network by the paper's algorithms: new, or (warm_start) the former with more layers."""
    parameters = resolved(request.parameters, SINGLE, request.task)
    seed = seed_for(request, problem)
    facts = problem.chunks.facts
    scale = problem.targets.scale.unit
    recipe = recipe_for(parameters, problem.loss, scale, facts.n_rows, len(facts.x_low), seed)
    history = [] if problem.resumed is None else former_history(request)
    watch = Watcher(request, problem, history, recipe.n_layers)
    network = boost(problem.chunks, recipe, problem.resumed, watch)
    return Fitted(network, problem.loss, problem.targets, problem.inputs, history, seed)


def fit_large(request: Request, problem: Problem) -> Fitted:
    """One network whose random features are drawn in a learned distance metric.

    It grows until held-out rows, the time limit or ``n_layers`` stop it.
    """
    parameters = one_family(resolved(request.parameters, LARGE, request.task))
    seed = seed_for(request, problem)
    facts = problem.chunks.facts
    scale = problem.targets.scale.unit
    recipe = recipe_for(parameters, problem.loss, scale, facts.n_rows, len(facts.x_low), seed)
    history: list[dict[str, float]] = []
    watch = Watcher(request, problem, history)
    stopping = HeldOutStopping(problem.held_out, problem.loss, request.deadline)
    network = stopping.kept(boost(problem.chunks, recipe, None, watch, stopping))
    history = history[: len(network.layers)]
    return Fitted(network, problem.loss, problem.targets, problem.inputs, history, seed)


def one_family(parameters: Parameters) -> Parameters:
    """The parameters of a large fit, which has features of one kind."""
    families = families_of(parameters.features)
    if len(families) > 1 or BUMPS in families:
        raise ValueError(
            f"features={parameters.features!r} has no effect in an automatic fit of more than "
            "50,000 rows in blocks or partitions, which has one family of features and no bumps "
            "(a bump around every row needs all rows in memory). Pass arrays in memory, or one of "
            "'swim' and 'sparse'."
        )
    return replace(parameters, features=families[0])


def fit_ensemble(request: Request, problem: Problem) -> Fitted:
    """Members of several families, stopped, weighted and calibrated by the rows they hold out."""
    arrays = problem.arrays
    assert arrays is not None  # the ensemble is fitted to rows in memory
    parameters = resolved(request.parameters, ENSEMBLE, request.task)
    seed = seed_for(request, problem)
    loss = problem.loss
    scale = problem.targets.scale.unit
    n_rows = len(arrays.y) + (0 if arrays.validation is None else len(arrays.validation[1]))
    strata = request.task == "classification"
    plan = plan_for(parameters, loss, scale, strata, n_rows, seed, request.sizes)
    if parameters.scoring is not None:
        plan = replace(plan, score=score_of_rows(parameters.scoring, problem, arrays))
    snapshot = None if parameters.snapshot is None else snapshot_of(parameters, arrays, seed)
    watch = Watcher(request, problem, [], ensemble=True)
    if request.progress is not None:
        request.progress.plan({READING: 0.02, **phases(plan), IMPORTANCES: 0.15})
    fit = fit_auto(
        arrays.X,
        arrays.y,
        arrays.w,
        arrays.validation,
        arrays.splits,
        plan,
        watch,
        request.deadline,
        snapshot,
    )
    # The layers kept under the best penalty of each boosted family; layers tried later are left
    # out.
    history = [asdict(in_units_of_y(record, problem, ensemble=True)) for record in fit.rounds]
    fitted = fitted_ensemble(
        fit,
        loss,
        problem.targets,
        problem.inputs,
        history,
        seed,
        arrays.y,
        arrays.w,
        arrays.present,
    )
    if plan.score is not None and fit.out_of_fold is not None:
        known = np.flatnonzero(np.isfinite(fit.out_of_fold).all(axis=1))
        fitted = replace(fitted, oof_score=plan.score(fit.out_of_fold[known], known))
    watch.begin(IMPORTANCES)
    fitted = with_importances(fitted, arrays, strata, request.deadline)
    if snapshot is not None:
        snapshot.remove()
    return fitted


def with_importances(fitted: Fitted, arrays: Arrays, strata: bool, deadline: float) -> Fitted:
    """The model with the shares of its columns, if there is time for them."""
    sources = fitted.inputs.sources(arrays.X.shape[1])
    try:
        shares = importances(
            fitted.network, fitted.loss.predict, arrays.X, arrays.w, sources, strata, deadline
        )
    except OutOfTimeError:
        return fitted
    unused = fitted.inputs.n_columns - len(shares)
    return replace(fitted, importances=np.pad(shares, (0, unused)))


# Parameters that do not change the model; callbacks may, and are taken to be the same.
WITHOUT_EFFECT = ("snapshot", "callbacks", "verbose", "n_jobs")
# Parameters that are known in other ways: by weights, by splits, and by a name.
KNOWN_OTHERWISE = ("class_weight", "cv", "scoring")


def snapshot_of(parameters: Parameters, arrays: Arrays, seed: int) -> Any:
    """The file that families are kept in, if its snapshot is one of this fit."""
    from rfrboost._files.snapshot import SnapshotFile, key_of

    validation = (None,) if arrays.validation is None else arrays.validation
    splits = (None,) if arrays.splits is None else (arrays.splits.fitted, arrays.splits.held)
    names = {own.name for own in fields(parameters)} - {*WITHOUT_EFFECT, *KNOWN_OTHERWISE}
    settings = [f"{name}={getattr(parameters, name)!r}" for name in sorted(names)]
    # The address of a function, which its repr has, is another in every process.
    settings.append(f"scoring={getattr(parameters.scoring, '__qualname__', parameters.scoring)!r}")
    key = key_of((arrays.X, arrays.y, arrays.w, *validation, *splits), [*settings, str(seed)])
    return SnapshotFile(parameters.snapshot, key)


def score_of_rows(scoring: Any, problem: Problem, arrays: Arrays) -> Score:
    """What ``scoring`` says of raw predictions for some rows; validation rows come last."""
    from rfrboost._estimators.scoring import score_for

    Y, w = arrays.y, arrays.w
    if arrays.validation is not None:
        Y = np.vstack([Y, arrays.validation[1]])
        w = None if w is None else np.r_[w / w.mean(), np.ones(len(arrays.validation[1]))]
    return score_for(scoring, problem.loss, problem.targets, Y, w)


def seed_for(request: Request, problem: Problem) -> int:
    """A seed for a new model, or that of the one that layers are added to."""
    if problem.resumed is not None and request.former is not None:
        return request.former.seed
    return int(check_random_state(request.parameters.random_state).randint(2**31 - 1))


def former_history(request: Request) -> list[dict[str, float]]:
    """The records of the layers that more are added to."""
    return [] if request.former is None else list(request.former.history)


# What a callback returns to end the layers of the family at hand, and not the fit.
END_FAMILY = "family"


class Watcher:
    """Appends a layer's record to ``history``, shows it if ``verbose``, and asks the callbacks.

    A fit tells it of each layer; the ensemble tells it of each round, with the record of the best
    penalty's layer. ``n_layers`` is their number, if nothing but callbacks ends them earlier.
    """

    def __init__(
        self,
        request: Request,
        problem: Problem,
        history: list[dict[str, float]],
        n_layers: int | None = None,
        ensemble: bool = False,
    ) -> None:
        self.problem = problem
        self.history = history
        self.ensemble = ensemble
        self.callbacks = tuple(request.parameters.callbacks or ())
        self.progress = request.progress
        self.n_layers = n_layers
        self.ended = False

    def begin(self, phase: str) -> None:
        """Take note that a phase begins."""
        if self.progress is not None:
            self.progress.begin(phase)

    def layer(self, record: LayerRecord) -> bool:
        """Take the record of a layer; whether another one may follow."""
        record = in_units_of_y(record, self.problem, self.ensemble)
        self.history.append(asdict(record))
        if self.progress is not None:
            self.progress.layer(record, self.n_layers)
        # Each has a copy of its own, which it may change.
        answers = [callback(asdict(record)) for callback in self.callbacks]
        self.ended = any(isinstance(a, bool | np.bool_) and bool(a) for a in answers)
        return not self.ended and END_FAMILY not in [a for a in answers if isinstance(a, str)]


def in_units_of_y(record: LayerRecord, problem: Problem, ensemble: bool) -> LayerRecord:
    """The record with loss, gradient norm and step length in the units of y.

    If y is s times as large, a loss of degree k is s^k times as large and its derivative in the raw
    prediction s^(k−1) times. Φ of a single network has no unit, but its head W has that of y: the
    functional gradient W∇l is s^k times as large, and α_t, a distance in Φ, is the same. Φ of an
    ensemble is the prediction itself: its gradient is ∇l, and α_t times that is a change of the
    prediction, s times as large.

    If each output has a scale of its own there is no unit of y, and the units of the fit are kept.
    A number that overflows becomes the largest float.
    """
    scale = np.float64(problem.targets.scale.unit)
    degree = problem.loss.degree or 0

    def scaled(value: float, power: int) -> float:
        with np.errstate(all="ignore"):
            return float(np.nan_to_num(value * scale**power))

    return replace(
        record,
        loss=scaled(record.loss, degree),
        gradient_norm=scaled(record.gradient_norm, degree - 1 if ensemble else degree),
        step_length=scaled(record.step_length, 2 - degree if ensemble else 0),
    )
