"""The two routes of a fit: a single network of a given number of layers, and the ensemble.

``fit`` of every estimator calls :func:`fit_arrays`, :func:`fit_blocks` or
:func:`fit_outside_memory`, which choose a route (:func:`fit_single`, :func:`fit_ensemble`) and
bring the rows to it. A route takes a :class:`~rfrboost._estimators.problem.Request` and its
:class:`~rfrboost._estimators.problem.Problem`, and returns a
:class:`~rfrboost._estimators.fitted.Fitted`. It changes nothing else, so that a fit that fails
leaves the estimator as it was.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.random import default_rng
from sklearn.utils import check_random_state

from rfrboost._auto.fit import Score, fit_auto, part_of_time, phases
from rfrboost._auto.importances import shuffled_rows
from rfrboost._blocks.open import least_weight, open_blocks
from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._blocks.sample import BlockSample
from rfrboost._blocks.table import Part, encoded_table
from rfrboost._estimators.fitted import Fitted, fitted_ensemble
from rfrboost._estimators.options.progress import READING
from rfrboost._estimators.outside import (
    problem_of_chunks,
    problem_of_table,
    refuse_class_weight,
)
from rfrboost._estimators.parameters import (
    ENSEMBLE,
    FEWEST_ROWS,
    SINGLE,
    check_effects,
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
)
from rfrboost._model.history import LayerRecord
from rfrboost._numerics.arrays import spacing
from rfrboost._paper.boost import boost
from rfrboost._rows.chunks import Chunks
from rfrboost._rows.spill import Spill
from rfrboost._tables.affordable import warn_of_sample
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder
from rfrboost._typing import Array


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
    few = problem.chunks.facts.n_rows < FEWEST_ROWS
    return (
        fit_single(request, problem) if asked == SINGLE or few else fit_ensemble(request, problem)
    )


# The share of the time in which all blocks must have been read once; after that, those that were
# read are fitted.
LOOK_SHARE = 0.3

# The share of the time that is left after the first look in which all rows must have been encoded.
ENCODING_SHARE = 0.4


class Look(Protocol):
    """A first look at rows that are not in memory."""

    #: how many rows there are
    n_rows: int
    #: whether all rows have been seen; if not, there was no time for that
    complete: bool
    #: how many processes work on the rows
    n_workers: int
    #: the largest weight of all rows; 0 if there are no weights
    largest_weight: float

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of all rows if there are at most ``Sizes.sampled_rows``.

        Otherwise of evenly spaced rows, at most that many.
        """


@dataclass(frozen=True)
class Outside:
    """Rows outside memory: how they are looked at, read, streamed, and given in chunks.

    ``reader`` says how blocks become arrays, ``parts`` gives those of all blocks in turn, and
    ``chunks`` the same rows in chunks. Temporary files are in ``spill``.
    """

    look: Callable[[], Look]
    reader: Callable[[Encoder | None], BlockArrays]
    parts: Callable[[BlockArrays], Iterable[Part]]
    chunks: Callable[[BlockArrays], AbstractContextManager[Chunks]]
    spill: Spill


def fit_blocks(request: Request, blocks: RowBlocks) -> Fitted:
    """Fit rows that are read block by block."""
    reader = BlockArrays if request.task == "regression" else ClassBlockArrays
    outside = Outside(
        look=lambda: BlockSample(
            reader(blocks), request.sizes, part_of_time(LOOK_SHARE, request.deadline)
        ),
        reader=lambda encoder: reader(blocks, encoder),
        parts=lambda source: map(source.to_fit, blocks.labelled()),
        chunks=lambda source: open_blocks(source, request.sizes),
        spill=Spill(blocks.spill_dir, blocks.disk_budget),
    )
    return fit_outside_memory(request, outside)


def fit_outside_memory(request: Request, outside: Outside) -> Fitted:
    """Fit rows on disk or on Dask workers.

    If ``n_layers`` is a number, rows are fitted in chunks however few they are. In an automatic
    fit, up to ``Sizes.sampled_rows`` rows are gathered as they are; more are encoded block by block
    and gathered in one table. Both are then fitted as rows in memory, with the same result.
    """
    parameters = request.parameters
    check_effects(parameters, ENSEMBLE if parameters.automatic else SINGLE)
    if parameters.sample_splitting:
        raise ValueError(
            "sample_splitting shuffles all rows, which must be in memory for that: pass arrays, or "
            "set sample_splitting=False."
        )
    if not parameters.automatic:
        source = outside.reader(None)
        if request.resumes is not None and request.resumes.inputs.names is not None:
            source.former_names = list(request.resumes.inputs.names)
        with outside.chunks(source) as chunks:
            return fit_single(request, problem_of_chunks(request, chunks, source))
    began = perf_counter()
    look = outside.look()
    looked = perf_counter()
    X, y, w = look.sample()
    if len(y) == look.n_rows:
        return fit_arrays(request, X, y, w, None, None)
    refuse_class_weight(parameters)
    if w is not None and not w.any():
        raise ValueError(
            f"Every row of the sample that columns are encoded by, {len(y):,} evenly spaced rows "
            f"of {look.n_rows:,}, is of weight zero: leave out such rows, or shuffle all rows."
        )
    encoder: Encoder | None = None
    encoded: Array | None = None
    if parameters.prepares:
        rng = default_rng(ENCODING_SEED)
        categorical = parameters.categorical_features
        encoder, encoded = fit_encoder(X, y, w, request.task, rng, None, categorical)
    encoding = (perf_counter() - looked) * look.n_rows / len(y) / look.n_workers
    seconds = looked - began + encoding
    if not look.complete or seconds > ENCODING_SHARE * (request.deadline - perf_counter()):
        warn_of_sample(len(y), look.n_rows)
        return fit_arrays(request, X, y, w, None, None)
    del X, y, w
    source = outside.reader(encoder)
    source.least_weight = least_weight(look.largest_weight)
    with outside.spill.open_files:
        parts = outside.parts(source)
        table = encoded_table(parts, look.n_rows, encoded, outside.spill, request.sizes)
        problem = problem_of_table(request, table, source, FEWEST_ROWS)
        few = len(table.y) < FEWEST_ROWS
        return fit_single(request, problem) if few else fit_ensemble(request, problem)


def fit_single(request: Request, problem: Problem) -> Fitted:
    """One network by the paper's algorithms: new, or (warm_start) the former with more layers."""
    seed = seed_for(request, problem)
    facts = problem.chunks.facts
    recipe = recipe_for(
        request.parameters,
        problem.loss,
        problem.targets.scale.unit,
        request.task,
        facts.n_rows,
        len(facts.x_low),
        seed,
    )
    watch = watcher(request, problem, ensemble=False, n_layers=recipe.n_layers)
    network, records = boost(problem.chunks, recipe, problem.resumed, watch)
    if records and not np.isfinite(records[-1].loss):
        raise ValueError(
            "The fit diverged: the squares of its predictions overflow. Larger penalties (l2_head, "
            "l2_step) or a larger feature_scale prevent that."
        )
    history = [] if problem.resumed is None else former_history(request)
    history += [asdict(in_units_of_y(record, problem, ensemble=False)) for record in records]
    inputs = problem.inputs
    if inputs.names is None and request.resumes is not None:
        # Rows without names have their columns in the order of the last fit.
        inputs = replace(inputs, names=request.resumes.inputs.names)
    return Fitted(network, problem.loss, problem.targets, inputs, history, seed)


def fit_ensemble(request: Request, problem: Problem) -> Fitted:
    """Members of several families, stopped, weighted and calibrated by the rows they hold out."""
    arrays = problem.arrays
    assert arrays is not None  # the ensemble is fitted to rows in memory
    parameters = request.parameters
    seed = seed_for(request, problem)
    unit = problem.targets.scale.unit
    n_rows = len(arrays.y) + (0 if arrays.validation is None else len(arrays.validation[1]))
    plan = plan_for(parameters, problem.loss, unit, request.task, n_rows, seed, request.sizes)
    if parameters.scoring is not None:
        plan = replace(plan, score=score_of_rows(parameters.scoring, problem, arrays))
    snapshot = None if parameters.snapshot is None else snapshot_of(request, arrays, seed)
    if request.progress is not None:
        request.progress.plan({READING: 0.02, **phases(plan)})
    # Before the fit, which changes the table that X is part of.
    sources = problem.inputs.sources(arrays.X.shape[1])
    some = slice(None)
    if len(arrays.y) > request.sizes.sampled_rows:
        some = slice(None, None, spacing(len(arrays.y), request.sizes.sampled_rows))
    weights = None if arrays.w is None else arrays.w[some]
    shuffled = shuffled_rows(arrays.X[some], weights, sources, plan.strata)
    fit = fit_auto(
        with_ones(arrays.X) if arrays.table is None else arrays.table,
        arrays.y,
        arrays.w,
        arrays.validation,
        arrays.splits,
        plan,
        watcher(request, problem, ensemble=True),
        request.deadline,
        snapshot,
        request.workers,
    )
    # The layers kept under the best penalty of each boosted family; layers tried later are left
    # out.
    history = [asdict(in_units_of_y(record, problem, ensemble=True)) for record in fit.rounds]
    fitted = fitted_ensemble(
        fit,
        problem.loss,
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
    if snapshot is not None:
        snapshot.remove()
    return replace(fitted, network=fitted.network.ready(), shuffled=shuffled)


def with_ones(X: Array) -> Array:
    """Rows (x, 1) in float64, a copy."""
    x = np.ones((len(X), X.shape[1] + 1))
    x[:, :-1] = X
    return x


# Parameters that do not change the model; callbacks may, and are taken to be the same.
WITHOUT_EFFECT = ("snapshot", "callbacks", "verbose", "n_jobs")
# Parameters that are known in other ways: by weights, by splits, and by a name.
KNOWN_OTHERWISE = ("class_weight", "cv", "scoring")


def snapshot_of(request: Request, arrays: Arrays, seed: int) -> Any:
    """The snapshot file of this fit; an existing file of another fit is refused."""
    from rfrboost._files.snapshot import SnapshotFile, key_of

    parameters = resolved(request.parameters, ENSEMBLE, request.task)
    validation = (None,) if arrays.validation is None else arrays.validation
    splits = (None,) if arrays.splits is None else (arrays.splits.fitted, arrays.splits.held)
    names = {own.name for own in fields(parameters)} - {*WITHOUT_EFFECT, *KNOWN_OTHERWISE}
    settings = [f"{name}={getattr(parameters, name)!r}" for name in sorted(names)]
    # A function's repr holds its address, which differs between processes.
    settings.append(f"scoring={getattr(parameters.scoring, '__qualname__', parameters.scoring)!r}")
    key = key_of((arrays.X, arrays.y, arrays.w, *validation, *splits), [*settings, str(seed)])
    return SnapshotFile(parameters.snapshot, key)


def score_of_rows(scoring: Any, problem: Problem, arrays: Arrays) -> Score:
    """The score, by ``scoring``, of raw predictions for some rows; validation rows come last."""
    from rfrboost._estimators.options.scoring import score_for

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


def watcher(
    request: Request, problem: Problem, ensemble: bool, n_layers: int | None = None
) -> "Watcher | None":
    """The observer of the layers; None if there are neither progress nor callbacks."""
    callbacks = tuple(request.parameters.callbacks or ())
    if request.progress is None and not callbacks:
        return None
    return Watcher(request, problem, callbacks, ensemble, n_layers)


class Watcher:
    """Shows the record of a layer if ``verbose``, and calls the callbacks.

    It gets the record of each layer of a single network; of an ensemble, in each round, that of the
    best penalty's layer. ``n_layers`` is their number, if nothing but callbacks ends them earlier.
    """

    def __init__(
        self,
        request: Request,
        problem: Problem,
        callbacks: tuple[Any, ...],
        ensemble: bool,
        n_layers: int | None,
    ) -> None:
        self.problem = problem
        self.ensemble = ensemble
        self.callbacks = callbacks
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
        if self.progress is not None:
            self.progress.layer(record, self.n_layers)
        # Each gets its own copy, which it may change.
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

    If each output has its own scale there is no unit of y, and the units of the fit are kept.
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
