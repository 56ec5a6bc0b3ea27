"""What a user passes to ``fit``, as a problem that the fitting loops can solve.

X, y and weights are checked, tables encoded, targets put into the units of the fit. After this
there are finite float arrays. :func:`problem_of_arrays` takes rows in memory. Rows that are read
block by block or lie on Dask workers are read by :mod:`rfrboost._estimators.outside` instead.
"""

from copy import copy
from dataclasses import dataclass, replace
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

from rfrboost._auto.bags import Splits
from rfrboost._auto.members import Workers
from rfrboost._estimators.fitted import (
    BEYOND,
    DATES_IN_Y,
    DTYPES,
    NO_SCALE,
    ClassTargets,
    Fitted,
    Inputs,
    NumberTargets,
    Targets,
    TargetScale,
    advise,
    as_frame,
    check_columns,
    class_columns,
    has_no_rows,
    is_table,
)
from rfrboost._estimators.folds import encodings, refuse_both, refuse_folds, splits_of
from rfrboost._estimators.labels import (
    ABSENT_PRESENT,
    LabelTargets,
    class_weighted,
    labels_to_fit,
    n_columns_of,
)
from rfrboost._estimators.options.progress import Progress
from rfrboost._estimators.parameters import Parameters
from rfrboost._model.loss import Loss
from rfrboost._model.losses import LabelsLogLoss, fitted_loss, log_loss, named_loss
from rfrboost._model.network import Network
from rfrboost._numerics.arrays import coarse, frozen
from rfrboost._numerics.sizes import Sizes
from rfrboost._rows.chunks import (
    NEGLIGIBLE_WEIGHT,
    Chunks,
    Facts,
    InMemory,
    own_rows,
    target_powers,
    thinned_targets,
)
from rfrboost._tables.affordable import affordable_part
from rfrboost._tables.encoder import Encoder
from rfrboost._tables.fit import fit_encoder
from rfrboost._tables.table import UNREADABLE, WIDE_INTEGERS, unreadable
from rfrboost._typing import Array, Mask

# The largest target of a loss that can only be computed in the units of y (loss.degree is None): as
# for inputs (LARGEST_INPUT), products of two squares stay finite.
LARGEST_TARGET = 1e60
# The range of exponents of a scale: from the smallest to the largest float, so that targets of any
# size are of size one in the fit.
EXPONENTS = (-1074, 1023)
# If several outputs have scales of their own, their base-2 logarithms are rounded to multiples of
# one over this number: one part in a million, more than the order of rows changes by rounding.
EXPONENT_STEPS = 2.0**20
# Seed by which rows are dealt out, according to their content, to the folds of target encodings.
ENCODING_SEED = 0
# The pinball loss has its kink rounded off over this share of y's robust standard deviation: little
# in a single network, whose head is solved for exactly, and much in an ensemble, whose layers
# follow the gradient, which away from the kink only says the sign of the error.
SINGLE_ROUNDING = 1e-3
ENSEMBLE_ROUNDING = 0.32


@dataclass(frozen=True)
class Request:
    """A call of ``fit``; ``task`` is "regression" or "classification", ``former`` the last fit."""

    estimator: Any
    task: str
    parameters: Parameters
    sizes: Sizes
    former: Fitted | None
    #: when the fit has to end, a reading of ``time.perf_counter``; infinite without a time limit
    deadline: float
    groups: Any = None
    progress: Progress | None = None
    #: what the leaves of kernel members are fitted by; None stands for threads of this process
    workers: Workers | None = None

    @property
    def resumes(self) -> Fitted | None:
        """The last fit if ``warm_start`` adds layers to it."""
        return self.former if self.parameters.warm_start else None

    def columns_of(self, X: Any) -> Any:
        """X, with the columns of the fit that layers are added to, found by name."""
        return as_frame(X) if self.resumes is None else self.resumes.inputs.matched(X)


@dataclass(frozen=True)
class Arrays:
    """Rows in memory of positive weight: X (n, D), y (n, k) in the units of the fit, w (n,).

    ``present`` is a mask of these rows among all that were passed to ``fit``; ``validation`` are X
    and y of the validation rows; ``splits`` are the user's own folds. ``table`` (n, D+1) is X with
    a last column of ones, if X is part of such an array, which the fit may then change.
    """

    X: Array
    y: Array
    w: Array | None
    present: Mask
    validation: tuple[Array, Array] | None
    splits: Splits | None = None
    table: Array | None = None


@dataclass(frozen=True)
class Problem:
    """Rows to fit, wherever they are, with targets in the units of the fit.

    ``resumed`` is the network that ``warm_start`` adds layers to. Rows in memory are in ``arrays``
    too.
    """

    chunks: Chunks
    loss: Loss
    targets: Targets
    inputs: Inputs
    resumed: Network | None
    arrays: Arrays | None = None


@dataclass(frozen=True)
class Unfitted:
    """Stands for a fitted model whose columns alone are known, to read validation rows with."""

    inputs: Inputs


def problem_of_arrays(
    request: Request, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, ensemble_rows: int
) -> Problem:
    """The problem of rows in memory; an automatic fit of fewer than ``ensemble_rows`` rows is not
    an ensemble but a single network."""
    parameters = request.parameters
    has_validation = check_validation_pair(X_val, y_val)
    own_folds = request.groups is not None or parameters.splits_rows
    if own_folds and has_validation:
        refuse_both()
    inputs, X, y, w, splits, present = read(request, X, y, sample_weight, own_folds)
    counted = present_rows(w, len(y))
    present[present] = counted
    if w is not None:
        w = scaled_weights(w)
        if not counted.all():
            X, y, w = X[counted], y[counted], w[counted]
    if inputs.encoder is None:
        # Columns are not too large after an encoder: it makes them of size one.
        check_columns(X, inputs.names)
    automatic = parameters.automatic and len(y) >= ensemble_rows
    if not automatic:
        refuse_validation(has_validation)
        if own_folds:
            refuse_folds()
    one_axis = y.ndim == 1
    classes: np.ndarray | None = None
    if request.task == "classification":
        classes, y = np.unique(y, return_inverse=True) if one_axis else (ABSENT_PRESENT, y)
    problem, Y = problem_of_rows(request, inputs, X, y, w, classes, one_axis, automatic)
    validation = None
    if has_validation:
        # Validation rows are read as rows to predict are, by an estimator that knows its columns.
        knowing = copy(request.estimator)
        knowing._fitted = Unfitted(inputs)
        X_val = inputs.read(knowing, X_val)
        validation = (X_val, problem.targets.encode_validation(y_val, Y))
    splits = None if splits is None else splits.at(present)
    return replace(problem, arrays=Arrays(X, Y, w, present, validation, splits))


def problem_of_rows(
    request: Request,
    inputs: Inputs,
    X: Array,
    y: np.ndarray,
    w: Array | None,
    classes: np.ndarray | None,
    one_axis: bool,
    automatic: bool,
) -> tuple[Problem, Array]:
    """The problem of rows X (n, D) of numbers, and its targets (n, k) in the units of the fit.

    In classification y (n,) are indices into ``classes``, or (n, L) those of several labels. In
    regression y are numbers (n, k), or (n,) if the user's y had ``one_axis``. ``automatic`` says
    that an ensemble is fitted.
    """
    parameters = request.parameters
    if classes is not None:
        of_classes, loss, Y = class_problem(request, classes, y)
        chunks = InMemory(X, Y, w, parameters.parts, request.sizes)
        resumed = resumed_network(request, inputs, Y.shape[1], classes)
        return Problem(chunks, loss, of_classes, inputs, resumed), Y
    Y = np.asarray(y, dtype=float).reshape(len(y), -1)
    named = named_loss(parameters.loss, parameters.quantile)
    check_targets(Y, named)
    chunks = InMemory(X, Y, w, parameters.parts, request.sizes)
    resumed = resumed_network(request, inputs, named.n_outputs(Y))
    scale = target_scale_for(request, chunks, named, resumed)
    Y = scale.shrink(Y)
    chunks.set("y", own_rows, Y)
    rounding = ENSEMBLE_ROUNDING if automatic else SINGLE_ROUNDING
    seen = (Y, w) if automatic else thinned_targets(chunks)
    loss = fitted_loss(parameters.loss, parameters.quantile, rounding, scale.scale, *seen)
    targets = number_targets(request, chunks.facts, scale, loss, one_axis)
    return Problem(chunks, loss, targets, inputs, resumed), Y


def class_problem(
    request: Request, classes: np.ndarray, y: np.ndarray
) -> tuple[ClassTargets, Loss, Array]:
    """Codec, loss and targets (n, k) of labels, given by their indices among the classes.

    y is (n,) for one label per row, (n, L) for several.
    """
    if y.ndim == 2:
        return LabelTargets(classes, y.shape[1]), LabelsLogLoss(), y
    k = len(classes)
    return checked_classes(request, classes), log_loss(k), class_columns(y, k)


def number_targets(
    request: Request, facts: Facts, scale: TargetScale, loss: Loss, one_axis: bool
) -> NumberTargets:
    """The codec of regression targets, with the bounds that an automatic fit's predictions have."""
    # facts has the least and the largest y in the user's units.
    ends = scale.shrink(np.vstack([facts.y_low, facts.y_high]))
    margin = BEYOND * (ends[1] - ends[0])
    bounds = frozen(ends + np.outer([-1.0, 1.0], margin))
    # Without one output for each target (or one target only) it is not known which range is whose.
    known = request.parameters.automatic and len(margin) in (1, loss.n_outputs(ends))
    return NumberTargets(scale, one_axis and not loss.several_levels, bounds if known else None)


def read(
    request: Request, X: Any, y: Any, sample_weight: Any, own_folds: bool
) -> tuple[Inputs, Array, np.ndarray, Array | None, Splits | None, Mask]:
    """The columns of X, X as an array of numbers, y as an array, weights, the user's folds, and a
    mask (n,) of the rows that were read: all, or as many as a time limit allows."""
    numbers = request.task == "regression"
    prepares = request.parameters.prepares
    X = request.columns_of(X)
    y = as_column(y, "y")
    several = not numbers and n_columns_of(y) > 1
    if several:
        y = labels_to_fit(y, request.parameters.class_weight)
    two_axes = numbers or several
    names = _get_feature_names(X)
    try:
        if prepares and is_table(X):
            y = _check_y(y, multi_output=two_axes, y_numeric=numbers, estimator=request.estimator)
            check_consistent_length(X, y)
        else:
            X, y = check_X_y(
                X,
                y,
                dtype=DTYPES,
                accept_sparse=prepares,
                ensure_all_finite=not prepares,
                multi_output=two_axes,
                y_numeric=numbers,
                estimator=request.estimator,
            )
    except UNREADABLE as error:
        raise unreadable("X or y") from error
    except (TypeError, ValueError) as error:
        advise(error, y)
        raise
    if y.dtype.kind == "M":
        raise ValueError(DATES_IN_Y)
    w = checked_weights(sample_weight, y)
    if not two_axes:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        if request.parameters.class_weight is not None:
            w = class_weighted(w, y, request.parameters.class_weight)
    n_columns = np.shape(X)[1]
    splits: Splits | None = None
    if own_folds:
        present = present_rows(w, len(y))
        splits = splits_of(request.parameters, request.task, X, y, request.groups, present)
    seen = np.ones(len(y), bool)
    encoder: Encoder | None = None
    most_rows = request.sizes.sampled_rows
    if prepares and not (own_folds or np.isinf(request.deadline)):
        X, y, w, seen, fitted = affordable_part(X, y, w, request.task, request.deadline)
        most_rows = min(most_rows, fitted)
    if prepares:
        parts = None if splits is None else encodings(splits)
        rng = default_rng(ENCODING_SEED)
        categorical = request.parameters.categorical_features
        encoder, X = fit_encoder(X, y, w, request.task, rng, parts, categorical, most_rows)
    return Inputs(n_columns, names, encoder), X, y, w, splits, seen


def as_column(values: Any, name: str) -> Any:
    """Targets or weights unchanged, but polars' widest whole numbers as Python's, and long doubles
    as floats. What has no rows, such as a dict, is refused.
    """
    if has_no_rows(values):
        raise ValueError(f"{name} is a {type(values).__name__}, which has no rows: pass an array.")
    dtype = getattr(values, "dtype", None)
    if str(dtype).lower() in WIDE_INTEGERS:
        return np.array([np.nan if value is None else value for value in values.to_list()])
    if isinstance(dtype, np.dtype) and dtype == np.longdouble:
        with np.errstate(over="ignore"):  # scikit-learn refuses infinity
            return values.astype(float)
    return values


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights (n,) as finite numbers, none of them negative, if there are any."""
    if sample_weight is None:
        return None
    try:
        sample_weight = as_column(sample_weight, "sample_weight")
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
    """Weights divided by a power of two near the largest, so that multiplying all weights by a
    power of two changes no bit of the fit."""
    scaled: Array = np.ldexp(w, -np.frexp(w.max())[1])
    return scaled


def present_rows(w: Array | None, n_rows: int) -> Mask:
    """A mask (n,) of the rows whose weight is more than NEGLIGIBLE_WEIGHT of about the largest."""
    if w is None:
        return np.ones(n_rows, bool)
    return scaled_weights(w) > NEGLIGIBLE_WEIGHT


def check_validation_pair(X_val: Any, y_val: Any) -> bool:
    """Whether there are validation rows; refuses X_val without y_val, or of another length."""
    if (X_val is None) != (y_val is None):
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was passed without {missing}; pass both, or neither.")
    if X_val is not None and _num_samples(X_val) != _num_samples(y_val):
        raise ValueError(
            f"X_val has {_num_samples(X_val)} rows, but y_val has {_num_samples(y_val)}."
        )
    return X_val is not None


def refuse_validation(given: bool) -> None:
    """Refuse validation rows in a fit in which held-out rows decide nothing."""
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


def checked_classes(request: Request, classes: np.ndarray) -> ClassTargets:
    """Classes as targets; refuses a single one."""
    if len(classes) < 2:
        raise ValueError(
            f"{type(request.estimator).__name__} needs at least two classes to tell apart, but y "
            f"holds one class only, {str(classes[0])!r} (rows of weight zero do not count)."
        )
    return ClassTargets(classes)


def target_scale_for(
    request: Request, chunks: Chunks, loss: Loss, resumed: Network | None
) -> TargetScale:
    """The units of the fit: those of the fit that layers are added to, or new ones."""
    if resumed is not None and request.former is not None:
        return request.former.targets.scale
    return target_scale(chunks, request.parameters.automatic) if loss.degree else NO_SCALE


def target_scale(chunks: Chunks, apart: bool) -> TargetScale:
    """Mean and standard deviation of the outputs, the latter by :func:`rounded_power`.

    If ``apart``, each output is divided by its own deviation. Otherwise all are divided by that of
    all together, and the loss stays the sum over outputs in the units of y, as in the paper.
    """

    def largest_of(values: Array) -> Array:
        return np.array(values if apart else [values.max()])

    facts: Facts = chunks.facts
    largest = largest_of(np.maximum(facts.y_high, -facts.y_low))
    largest[largest == 0] = 1.0
    total, weight = chunks.total(target_powers, 0.0, largest, 1).values
    with np.errstate(over="ignore"):
        shift = coarse(largest * (total / weight), facts.y_high - facts.y_low)
    spread = largest_of(np.maximum(facts.y_high - shift, shift - facts.y_low))
    varies = spread > 0
    if not varies.any():
        return TargetScale(shift, rounded_power(np.log2(largest)))
    spread = np.where(varies, spread, 1.0)
    total, weight = chunks.total(target_powers, shift, spread, 2).values
    variance = total / weight
    relative = np.sqrt(variance if apart else variance.mean(keepdims=True))
    exponent = np.log2(spread) + np.log2(np.maximum(relative, 1e-6))
    return TargetScale(shift, rounded_power(np.where(varies, exponent, np.log2(largest))))


def rounded_power(exponents: Array) -> Array:
    """2 to the rounded exponents, within the range of floats.

    A lone exponent is rounded to a whole number, so that multiplying by the power rounds nothing.
    Several exponents decide how much each output counts beside the others. They are rounded finely:
    only so far that the order of rows, which changes their last bits, does not change them.
    """
    steps = 1 if len(exponents) == 1 else EXPONENT_STEPS
    return frozen(2.0 ** np.clip(np.round(exponents * steps) / steps, *EXPONENTS))


def resumed_network(
    request: Request, inputs: Inputs, n_outputs: int, classes: np.ndarray | None = None
) -> Network | None:
    """The network that ``warm_start`` adds layers to, or None; refuses data that do not fit it."""
    former = request.resumes
    if former is None:
        return None
    parameters = request.parameters
    former.inputs.check_same(inputs)
    if parameters.sample_splitting:
        raise ValueError(
            "warm_start cannot add layers under sample_splitting, which shares the rows out among "
            "a number of layers fixed beforehand. Set one of the two to False."
        )
    if int(parameters.n_layers) < (n_layers := len(former.network.layers)):
        raise ValueError(
            f"n_layers={parameters.n_layers} is less than the {n_layers} layers already "
            "fitted, and warm_start only adds layers. Raise n_layers, or set warm_start=False."
        )
    if former.n_outputs != n_outputs:
        raise ValueError(
            "y has another number of outputs or classes than in the last fit, so warm_start cannot "
            "add layers to it. Set warm_start=False to start afresh."
        )
    known = former.targets.classes if isinstance(former.targets, ClassTargets) else None
    if not np.array_equal(np.asarray(classes), np.asarray(known)):
        raise ValueError(
            "y holds other classes than in the last fit, so warm_start cannot add layers to it. "
            "Set warm_start=False to start afresh."
        )
    return former.network
