"""What a user passes to ``fit``, as a problem that the fitting loops can solve.

X, y and weights are checked, tables encoded, targets put into the units of the fit. After this
there are finite float arrays, wherever the rows are: :func:`problem_of_arrays` takes rows in
memory, :func:`problem_of_chunks` rows that are read block by block or lie on Dask workers.
"""

from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
from numpy.random import default_rng
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    _get_feature_names,
    _num_samples,
    check_consistent_length,
    check_X_y,
    column_or_1d,
)

from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._estimators.fitted import (
    DTYPES,
    NO_SCALE,
    UNREADABLE,
    ClassTargets,
    Fitted,
    Inputs,
    NumberTargets,
    Targets,
    TargetScale,
    as_frame,
    check_columns,
    check_container,
    check_extent,
    class_columns,
    is_table,
    refuse_missing,
    unreadable,
)
from rfrboost._estimators.parameters import Parameters
from rfrboost._model.loss import Loss
from rfrboost._model.losses import BinaryLogLoss, SoftmaxLogLoss, fitted_loss, named_loss
from rfrboost._model.network import Network
from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.chunks import (
    NEGLIGIBLE_WEIGHT,
    Chunk,
    Chunks,
    Facts,
    InMemory,
    Sums,
    thinned_targets,
    weighted_sums,
)
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder
from rfrboost._typing import Array, Mask

# Targets beyond this overflow in a loss that cannot be computed in other units than those of y.
LARGEST_TARGET = 1e60
# Deals rows out to the folds of target encodings, by their content.
ENCODING_SEED = 0
# Over which share of y's robust spread the kink of the pinball loss is rounded. In a single
# network, whose head is solved for, a small part. In an ensemble, whose layers follow the slope, a
# large one, because beyond the kink the slope says little.
SINGLE_ROUNDING = 1e-3
ENSEMBLE_ROUNDING = 0.32
DATES_IN_Y = (
    "y holds dates: pass numbers, for example days since the first date, or text as classes."
)


@dataclass(frozen=True)
class Request:
    """A call of ``fit``: the estimator, its task and parameters, and its former fit, if any."""

    estimator: Any
    task: str
    parameters: Parameters
    sizes: Sizes
    former: Fitted | None


@dataclass(frozen=True)
class Arrays:
    """Rows in memory that weigh anything: X (n, D), y (n, k) in the units of the fit, weights.

    ``present`` says which of all rows they are; ``validation`` are X and y of the rows to stop by.
    """

    X: Array
    y: Array
    w: Array | None
    present: Mask
    validation: tuple[Array, Array] | None


@dataclass(frozen=True)
class Problem:
    """Rows to fit, wherever they are, with targets in the units of the fit.

    ``resumed`` is the network that ``warm_start`` adds layers to. Rows in memory are in ``arrays``
    too; ``held_out`` are the rows that stop a large fit.
    """

    chunks: Chunks
    loss: Loss
    targets: Targets
    inputs: Inputs
    resumed: Network | None
    arrays: Arrays | None = None
    held_out: Any = None


@dataclass(frozen=True)
class Unfitted:
    """The columns of a model that is still to be fitted."""

    inputs: Inputs


def problem_of_arrays(
    request: Request, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, ensemble_rows: int
) -> Problem:
    """The problem of rows in memory; an ensemble is fitted from ``ensemble_rows`` rows on."""
    parameters = request.parameters
    has_validation = check_validation_pair(X_val, y_val)
    inputs, X, y, w = read(request, X, y, sample_weight)
    present = present_rows(w, len(y))
    if w is not None:
        w = scaled_weights(w)
        if not present.all():
            X, y, w = X[present], y[present], w[present]
    if inputs.encoder is None:
        # What an encoder writes is of size one already.
        check_columns(X, inputs.names)
    automatic = parameters.automatic and len(y) >= ensemble_rows
    if not automatic:
        refuse_validation(has_validation)
    if request.task == "regression":
        Y = np.asarray(y, dtype=float).reshape(len(y), -1)
        named = named_loss(parameters.loss, parameters.quantile)
        check_targets(Y, named)
        chunks = InMemory(X, Y, w, parameters.parts, request.sizes)
        resumed = resumed_network(request, X.shape[1], named.n_outputs(Y))
        scale = target_scale_for(request, chunks, named, resumed)
        Y = scale.shrink(Y)
        chunks.set("y", shrunk_targets, scale)
        rounding = ENSEMBLE_ROUNDING if automatic else SINGLE_ROUNDING
        seen = (Y, w) if automatic else thinned_targets(chunks)
        loss = fitted_loss(parameters.loss, parameters.quantile, rounding, scale.scale, *seen)
        targets: Targets = NumberTargets(scale, y.ndim == 1 and not loss.several_levels)
    else:
        classes, codes = np.unique(y, return_inverse=True)
        targets = checked_classes(request, classes)
        loss = log_loss(len(classes))
        Y = class_columns(codes, len(classes))
        chunks = InMemory(X, Y, w, parameters.parts, request.sizes)
        resumed = resumed_network(request, X.shape[1], Y.shape[1], classes)
    validation = None
    if has_validation:
        # Validation rows are read as rows to predict are, by an estimator that knows its columns.
        knowing = copy(request.estimator)
        knowing._fitted = Unfitted(inputs)
        X_val = inputs.read(knowing, X_val)
        validation = (X_val, targets.encode_validation(y_val, Y.shape[1]))
    arrays = Arrays(X, Y, w, present, validation)
    return Problem(chunks, loss, targets, inputs, resumed, arrays)


def problem_of_chunks(request: Request, chunks: Chunks, source: BlockArrays) -> Problem:
    """The problem of rows that are not in memory; ``source`` says what was read of them."""
    parameters = request.parameters
    facts = chunks.facts
    n_columns = len(facts.x_low)
    names = None if source.names is None else np.array(source.names, dtype=object)
    inputs = Inputs(source.n_columns or 0, names, source.encoder)
    if inputs.encoder is None:
        check_extent(np.maximum(facts.x_high, -facts.x_low), names)
    if isinstance(source, ClassBlockArrays):
        labels = set_classes(request, chunks, source)
        loss = log_loss(len(labels.classes))
        resumed = resumed_network(request, n_columns, len(chunks.facts.y_low), labels.classes)
        return Problem(chunks, loss, labels, inputs, resumed, held_out=source.held)
    named = named_loss(parameters.loss, parameters.quantile)
    ends = np.vstack([facts.y_low, facts.y_high])
    check_targets(ends, named)
    resumed = resumed_network(request, n_columns, named.n_outputs(ends))
    scale = target_scale_for(request, chunks, named, resumed)
    chunks.set("y", shrunk_targets, scale)
    if source.held is not None:
        source.held.y = scale.shrink(source.held.y)
    loss = fitted_loss(
        parameters.loss,
        parameters.quantile,
        SINGLE_ROUNDING,
        scale.scale,
        *thinned_targets(chunks),
    )
    targets = NumberTargets(scale, source.y_is_1d and not loss.several_levels)
    return Problem(chunks, loss, targets, inputs, resumed, held_out=source.held)


def read(
    request: Request, X: Any, y: Any, sample_weight: Any
) -> tuple[Inputs, Array, np.ndarray, Array | None]:
    """The columns of X, X as an array of numbers, y as it came, and weights."""
    numbers = request.task == "regression"
    prepares = request.parameters.prepares
    check_container(X)
    if prepares:
        X = as_frame(X)
    names = _get_feature_names(X)
    try:
        if prepares and is_table(X):
            y = _check_y(y, multi_output=numbers, y_numeric=numbers, estimator=request.estimator)
            check_consistent_length(X, y)
        else:
            X, y = check_X_y(
                X,
                y,
                dtype=DTYPES,
                accept_sparse=prepares,
                ensure_all_finite=not prepares,
                multi_output=numbers,
                y_numeric=numbers,
                estimator=request.estimator,
            )
    except UNREADABLE as error:
        raise unreadable("X or y") from error
    except TypeError as error:
        check_dates(y, error)
        raise
    except ValueError as error:
        refuse_missing(error)
        raise
    if y.dtype.kind == "M":
        raise ValueError(DATES_IN_Y)
    w = checked_weights(sample_weight, y)
    if not numbers:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
    n_columns = np.shape(X)[1]
    encoder: Encoder | None = None
    if prepares:
        encoder, X = fit_encoder(X, y, w, request.task, default_rng(ENCODING_SEED))
    return Inputs(n_columns, names, encoder), X, y, w


def check_dates(y: Any, error: TypeError) -> None:
    """Refuse dates in y, which scikit-learn refuses with this error, and say what to do."""
    if any(isinstance(value, date) for value in np.ravel(np.asarray(y, dtype=object))):
        raise ValueError(DATES_IN_Y) from error


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights (n,) as finite numbers, none of them negative, if there are any."""
    if sample_weight is None:
        return None
    try:
        w: Array = _check_sample_weight(sample_weight, X, dtype=np.float64)
    except UNREADABLE as error:
        raise unreadable("sample_weight") from error
    if (w < 0).any():
        raise ValueError("sample_weight has negative entries; weights must be zero or positive.")
    if not w.max(initial=0.0) > 0:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
    with np.errstate(over="ignore"):
        overflows = not np.isfinite(w.sum())
    return scaled_weights(w) if overflows else w


def scaled_weights(w: Array) -> Array:
    """Weights divided by a power of two near the largest: equal weights of any size give the
    same bits."""
    scaled: Array = np.ldexp(w, -np.frexp(w.max())[1])
    return scaled


def present_rows(w: Array | None, n_rows: int) -> Mask:
    """Which rows weigh anything beside the heaviest one, as a mask (n,)."""
    if w is None:
        return np.ones(n_rows, bool)
    return scaled_weights(w) > NEGLIGIBLE_WEIGHT


def check_validation_pair(X_val: Any, y_val: Any) -> bool:
    """Whether there are rows to stop by; refuses one without the other, or of another length."""
    if (X_val is None) != (y_val is None):
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was passed without {missing}; pass both, or neither.")
    if X_val is not None and _num_samples(X_val) != _num_samples(y_val):
        raise ValueError(
            f"X_val has {_num_samples(X_val)} rows, but y_val has {_num_samples(y_val)}."
        )
    return X_val is not None


def refuse_validation(given: bool) -> None:
    """Rows to stop by are of use only where held-out rows decide."""
    if given:
        raise ValueError(
            "X_val and y_val say when to stop adding layers, but this fit has a fixed number of "
            "them: n_layers is a number, or there are fewer than 50 rows. Leave them out."
        )


def check_targets(y: Array, loss: Loss) -> None:
    """Refuse targets outside the loss's range, or too large for a loss that cannot rescale them."""
    loss.check(y)
    largest = np.abs(y).max()
    if loss.degree is None and largest > LARGEST_TARGET:
        raise ValueError(
            f"y holds values as large as {largest:.3g}; this loss works in the units of y and "
            f"overflows beyond {LARGEST_TARGET:g}. Rescale y, or use loss='squared_error'."
        )


def log_loss(n_classes: int) -> Loss:
    """One logit for two classes, softmax for more."""
    return BinaryLogLoss() if n_classes == 2 else SoftmaxLogLoss()


def checked_classes(request: Request, classes: np.ndarray) -> ClassTargets:
    """Classes as targets; refuses a single one."""
    if len(classes) < 2:
        raise ValueError(
            f"{type(request.estimator).__name__} needs at least two classes to tell apart, but y "
            f"holds one class only, {str(classes[0])!r} (rows of weight zero do not count)."
        )
    return ClassTargets(classes)


def set_classes(request: Request, chunks: Chunks, source: ClassBlockArrays) -> ClassTargets:
    """Turn the numbers of labels, as they turned up in the blocks, into columns by class."""
    classes, places = source.classes()
    targets = checked_classes(request, classes)
    k = 1 if len(classes) == 2 else len(classes)
    chunks.set("y", sorted_classes, places, len(classes))
    chunks.facts = replace(chunks.facts, y_low=np.zeros(k), y_high=np.ones(k))
    if source.held is not None:
        codes = places[source.held.y[:, 0].astype(np.intp)]
        source.held.y = class_columns(codes, len(classes))
    return targets


def sorted_classes(chunk: Chunk, places: np.ndarray, n_classes: int) -> Array:
    """A chunk's labels as columns; ``places`` are those of the labels among the sorted classes."""
    return class_columns(places[chunk.y[:, 0].astype(np.intp)], n_classes)


def shrunk_targets(chunk: Chunk, scale: TargetScale) -> Array:
    """A chunk's targets in the units of the fit."""
    return scale.shrink(chunk.y)


def target_scale_for(
    request: Request, chunks: Chunks, loss: Loss, resumed: Network | None
) -> TargetScale:
    """The units of the fit: those of the fit that layers are added to, or new ones."""
    if resumed is not None and request.former is not None:
        return request.former.targets.scale
    return target_scale(chunks) if loss.degree else NO_SCALE


def target_scale(chunks: Chunks) -> TargetScale:
    """Mean of every output and, as a power of two, the standard deviation of all together."""
    facts: Facts = chunks.facts
    largest = max(float(facts.y_high.max()), -float(facts.y_low.min())) or 1.0
    total, weight = chunks.total(power_sums, 0.0, largest, 1).values
    shift = largest * (total / weight)
    spread = float(np.maximum(facts.y_high - shift, shift - facts.y_low).max())
    if not spread > 0:
        return TargetScale(shift, power_of_two(float(np.log2(largest))))
    total, weight = chunks.total(power_sums, shift, spread, 2).values
    relative = np.sqrt((total / weight).mean())
    exponent = np.log2(spread) + np.log2(max(relative, 1e-6))
    return TargetScale(shift, power_of_two(exponent))


def power_sums(chunk: Chunk, shift: Array, scale: float, power: int) -> Sums:
    """Σw·((y − shift)/scale)^power of every output, and Σw."""
    return weighted_sums(((chunk.y - shift) / scale) ** power, chunk.w)


def power_of_two(exponent: float) -> float:
    """The power of two with the nearest whole exponent, within the range of floats."""
    return float(2.0 ** np.clip(np.round(exponent), -1000, 1000))


def resumed_network(
    request: Request, n_columns: int, n_outputs: int, classes: np.ndarray | None = None
) -> Network | None:
    """The network that ``warm_start`` adds layers to, if there is one; refuses other data."""
    former = request.former
    parameters = request.parameters
    if former is None or not parameters.warm_start:
        return None
    fitted = former.network
    if len(fitted.mean) != n_columns:
        raise ValueError(
            f"X has {n_columns} features but the last fit had {len(fitted.mean)}, so warm_start "
            "cannot add layers to it. Set warm_start=False to start afresh."
        )
    if parameters.sample_splitting:
        raise ValueError(
            "warm_start cannot add layers under sample_splitting, which shares the rows out among "
            "a number of layers fixed beforehand. Set one of the two to False."
        )
    if int(parameters.n_layers) < len(fitted.layers):
        raise ValueError(
            f"n_layers={parameters.n_layers} is less than the {len(fitted.layers)} layers already "
            "fitted, and warm_start only adds layers. Raise n_layers, or set warm_start=False."
        )
    if former.n_outputs != n_outputs:
        raise ValueError(
            "y has another number of outputs or classes than in the last fit, so warm_start cannot "
            "add layers to it. Set warm_start=False to start afresh."
        )
    known = former.targets
    if isinstance(known, ClassTargets) and not same_classes(classes, known.classes):
        raise ValueError(
            "y holds other classes than in the last fit, so warm_start cannot add layers to it. "
            "Set warm_start=False to start afresh."
        )
    return fitted


def same_classes(classes: np.ndarray | None, others: np.ndarray) -> bool:
    """Whether two fits tell the same classes apart."""
    return classes is not None and np.array_equal(classes, others)
