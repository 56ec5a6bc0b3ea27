"""What a file holds of an estimator: its parameters, and the result of its fit.

Every entry has a schema (:mod:`rfrboost._files.schema`) that says what it may be; whatever is read
is checked by its schema, and then the parts are checked against each other. Only estimators of
rfrboost's own classes can be written.
"""

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rfrboost._estimators.fitted import (
    ClassTargets,
    Compression,
    Fitted,
    Inputs,
    NumberTargets,
    Targets,
)
from rfrboost._estimators.labels import ABSENT_PRESENT, LabelTargets
from rfrboost._files.network import (
    CALIBRATION,
    FEATURE_MAP,
    LOG_LOSS,
    NETWORK,
    REGRESSION_LOSS,
    TARGET_SCALE,
)
from rfrboost._files.schema import (
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    JsonValue,
    ListOf,
    ModelFileError,
    Numbers,
    OrNone,
    Record,
    Schema,
    State,
    choice,
    is_number,
)
from rfrboost._files.tables import ENCODER
from rfrboost._model.losses import LabelsLogLoss, Loss
from rfrboost._model.network import Network

#: NumPy's types of labels, each with the Python types that its values have
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (float,) for bits in (16, 32, 64)},
    "str": (str,),
    "object": (bool, int, float, str),
}


# The most characters of all labels together, 256 MB: NumPy gives every string the room of the
# longest, so that one long label in a forged file could fill the memory.
MOST_CHARACTERS = 2**26


LABEL = JsonValue(
    "a string, a number or a bool", lambda v: type(v) in (bool, int, str) or is_number(v)
)


class Labels:
    """At least two different class labels: strings, whole numbers, floats or bools."""

    def write(self, value: Any, where: str) -> State:
        name = "str" if value.dtype.kind == "U" else value.dtype.name
        values = [v.item() if isinstance(v, np.generic) else v for v in value.tolist()]
        state = {"type": name, "values": values}
        self.read(state, where)
        return state

    def read(self, state: State, where: str) -> Any:
        fields: dict[str, Schema] = {"type": choice(LABEL_TYPES), "values": ListOf(LABEL, list)}
        entries = Record(fields).read(state, where)
        name, values = entries["type"], entries["values"]
        right_types = all(type(v) in LABEL_TYPES[name] for v in values)
        if not right_types or len(values) < 2 or len(set(values)) < len(values):
            raise ModelFileError(f"{where} should be two or more different labels of type {name}")
        if name == "str" and len(values) * max(map(len, values)) > MOST_CHARACTERS:
            raise ModelFileError(f"{where} holds labels that are too long")
        try:
            with np.errstate(over="ignore"), warnings.catch_warnings():
                # NumPy before 2.0 wraps integers that a type cannot hold, with this warning.
                warnings.simplefilter("ignore", DeprecationWarning)
                labels = np.array(values, dtype=name)
        except OverflowError:
            labels = None
        if labels is None or labels.tolist() != values:
            raise ModelFileError(f"{where} holds labels that the type {name} cannot")
        return labels


class Names:
    """Column names, in an array of objects as scikit-learn keeps them."""

    def write(self, value: Any, where: str) -> State:
        return ListOf(TEXT).write(value, where)

    def read(self, state: State, where: str) -> Any:
        names = ListOf(TEXT, list).read(state, where)
        return np.array(names, dtype=object)


def is_scalar(value: Any) -> bool:
    """Whether this is None, a bool, a number or a string."""
    return value is None or type(value) in (bool, int, str) or is_number(value)


class Parameter:
    """A constructor parameter: None, a bool, number or string, a tuple of them, or a loss.

    Other sequences become tuples when they are read.
    """

    def write(self, value: Any, where: str) -> State:
        if REGRESSION_LOSS.holds(value):
            return REGRESSION_LOSS.write(value, where)
        several = isinstance(value, tuple | list | np.ndarray)
        values = value if several else (value,)
        plain = [v.item() if isinstance(v, np.generic) else v for v in values]
        if not all(is_scalar(v) for v in plain):
            raise ModelFileError(
                f"{where} is an object of the class {type(value).__name__}, and a model file holds "
                "numbers, strings and the losses of rfrboost only"
            )
        return plain if several else plain[0]

    def read(self, state: State, where: str) -> Any:
        if isinstance(state, dict):
            return REGRESSION_LOSS.read(state, where)
        if isinstance(state, list) and len(state) > MOST_VALUES:
            raise ModelFileError(f"{where} has more values than any parameter has")
        if isinstance(state, list):
            return ListOf(JsonValue("a plain value", is_scalar)).read(state, where)
        return JsonValue("a plain value", is_scalar).read(state, where)


# The most values of a parameter. Parameters that list columns may be long.
MOST_VALUES = 100_000

#: parameters that only fits use, and that may be objects of any kind: files have None instead
FIT_ONLY = ("class_weight", "callbacks", "scoring")

#: a path of the machine that fitted a model, which files never hold
NEVER_KEPT = "snapshot"


def write_parameters(estimator: BaseEstimator) -> State:
    """The constructor's parameters as a state."""
    values = estimator.get_params(deep=False)
    for name in FIT_ONLY:
        if name in values and not is_scalar(values[name]):
            values[name] = None
    if NEVER_KEPT in values:
        values[NEVER_KEPT] = None
    return {name: Parameter().write(v, f"the parameter {name}") for name, v in values.items()}


def read_parameters(cls: type[BaseEstimator], state: State) -> BaseEstimator:
    """An unfitted estimator with these parameters, checked as its ``fit`` checks them.

    A parameter may be absent: the file is then older than the parameter, and its default is what
    the older version did.
    """
    known = cls._get_param_names()
    removed = REMOVED.get(cls.__name__, {})
    values = {}
    for name, written in OBJECT.read(state, "the list of parameters").items():
        value = Parameter().read(written, f"the parameter {name[:80]}")
        if name in known:
            values[name] = value
        elif name not in removed or value != removed[name]:
            raise ModelFileError(f"{cls.__name__} has no parameter {name[:80]!r}")
    estimator = cls(**values)
    try:
        estimator._validate_params()
    except ValueError as error:
        raise ModelFileError(f"its parameters are not valid: {str(error)[:300]}") from error
    return estimator


#: parameters that a class had in older versions, each with the only value it could have
REMOVED: dict[str, dict[str, Any]] = {
    "RFRBoostClassifier": {"strategy": "gradient", "step_matrix": "dense", "loss": "log_loss"},
}

COLUMNS: dict[str, Schema] = {"n_features_in": COUNT, "feature_names_in": OrNone(Names())}


class Unkept:
    """A number that differs between two equal fits: written as 0, so that their files are equal."""

    def write(self, value: Any, where: str) -> State:
        return 0.0

    def read(self, state: State, where: str) -> Any:
        return NUMBER.read(state, where)


LAYER_RECORD = Record(
    {
        "layer": COUNT,
        "loss": NUMBER,
        "step_length": NUMBER,
        "gradient_norm": NUMBER,
        "seconds": Unkept(),
    }
)

NATURAL = JsonValue("a whole number of 0 or more", lambda v: type(v) is int and v >= 0)

COMPRESSION = Record(
    {
        "features": NATURAL,
        "features_before": NATURAL,
        "metric": TEXT,
        "error_before": NUMBER,
        "error": NUMBER,
        "measured": FLAG,
    }
)

MODEL: dict[str, Schema] = {
    **COLUMNS,
    "encoder": OrNone(ENCODER),
    "network": NETWORK,
    "feature_importances": OrNone(Numbers(1)),
    "calibration": OrNone(CALIBRATION),
    "compression": OrNone(COMPRESSION),
    "history": ListOf(LAYER_RECORD, list),
    "seed": JsonValue("a seed", lambda v: type(v) is int and 0 <= v < 2**31),
}
REGRESSOR: dict[str, Schema] = {
    **MODEL,
    "loss": REGRESSION_LOSS,
    "target_scale": TARGET_SCALE,
    "y_is_1d": FLAG,
    "prediction_bounds": OrNone(Numbers(2)),
}
CLASSIFIER: dict[str, Schema] = {**MODEL, "loss": LOG_LOSS, "classes": Labels()}
FEATURES: dict[str, Schema] = {**COLUMNS, "mean": Numbers(1), "features": FEATURE_MAP}


#: entries that are left out where they are None, so that earlier versions read the file too
LATER = ("compression",)


def written(schemas: Mapping[str, Schema], values: Mapping[str, Any]) -> State:
    """The values of all entries as a state."""
    return {
        name: schema.write(values[name], name)
        for name, schema in schemas.items()
        if name not in LATER or values[name] is not None
    }


def entries(schemas: Mapping[str, Schema], state: State) -> dict[str, Any]:
    """The values of all entries of a state.

    An entry that may be None may also be absent: the file is then older than the entry.
    """
    absent = {name: None for name, schema in schemas.items() if type(schema) is OrNone}
    found: dict[str, Any] = Record(schemas).read(
        {**absent, **OBJECT.read(state, "its fitted state")}, "it"
    )
    return found


def write_model(fitted: Fitted) -> State:
    """A fitted regressor or classifier as a state. Out-of-fold predictions are left out."""
    values = {
        "n_features_in": fitted.inputs.n_columns,
        "feature_names_in": fitted.inputs.names,
        "encoder": fitted.inputs.encoder,
        "network": fitted.network,
        "feature_importances": fitted.importances,
        "calibration": fitted.calibration,
        "compression": None if fitted.compression is None else asdict(fitted.compression),
        "history": fitted.history,
        "seed": fitted.seed,
        "loss": fitted.loss,
    }
    targets = fitted.targets
    if isinstance(targets, ClassTargets):
        return written(CLASSIFIER, {**values, "classes": targets.classes})
    units = {
        "target_scale": targets.scale,
        "y_is_1d": targets.one_output,
        "prediction_bounds": targets.bounds,
    }
    return written(REGRESSOR, {**values, **units})


def read_model(state: State, task: str, automatic: bool) -> Fitted:
    """The fitted regressor or classifier that a state describes, if its parts fit together."""
    values = entries(REGRESSOR if task == "regression" else CLASSIFIER, state)
    targets: Targets
    if task == "regression":
        targets = NumberTargets(
            values["target_scale"], values["y_is_1d"], values["prediction_bounds"]
        )
    else:
        targets = read_classes(values["classes"], values["loss"], values["network"])
    fitted = Fitted(
        network=values["network"],
        loss=values["loss"],
        targets=targets,
        inputs=Inputs(values["n_features_in"], values["feature_names_in"], values["encoder"]),
        history=values["history"],
        seed=values["seed"],
        calibration=values["calibration"],
        shares=values["feature_importances"],
        compression=read_compression(values["compression"]),
    )
    if not model_fits(fitted, automatic):
        raise ModelFileError("its arrays do not fit together")
    return fitted


def read_classes(classes: np.ndarray, loss: Loss, network: Network) -> ClassTargets:
    """The codec of these classes; the loss says whether a row has several labels."""
    if not isinstance(loss, LabelsLogLoss):
        return ClassTargets(classes)
    if not np.array_equal(classes, ABSENT_PRESENT):
        raise ModelFileError("its labels should be 0 and 1")
    return LabelTargets(ABSENT_PRESENT, n_outputs(network))


def n_outputs(network: Network) -> int:
    """The number of raw predictions per row; 0 if there is no head."""
    return network.heads[-1].matrix.shape[1] if network.heads else 0


def read_compression(values: dict[str, Any] | None) -> Compression | None:
    """What a file says about the compression of its model, if it was compressed."""
    return None if values is None else Compression(**values)


def model_fits(fitted: Fitted, automatic: bool) -> bool:
    """Whether the sizes of all parts of a model agree."""
    targets = fitted.targets
    if isinstance(targets, ClassTargets):
        outputs = targets.n_outputs
        scores = 1
        known = LOG_LOSS.fits(fitted.loss, outputs)
    else:
        outputs = scores = n_outputs(fitted.network)
        known = (
            outputs > 0
            and REGRESSION_LOSS.fits(fitted.loss, outputs)
            and TARGET_SCALE.fits(targets.scale, outputs)
            and (outputs == 1 or not targets.one_output)
            and bounds_fit(targets.bounds, outputs)
        )
    return (
        known
        and columns_fit(fitted.inputs.n_columns, fitted.inputs.names)
        and NETWORK.fits(fitted.network, network_columns(fitted.inputs), outputs)
        # A single network has a record of every layer.
        and (automatic or len(fitted.history) == len(fitted.network.layers))
        and calibration_fits(fitted, outputs, scores)
    )


def bounds_fit(bounds: Any, outputs: int) -> bool:
    """Whether bounds, if there are any, are a least and a largest prediction: one pair for all
    outputs, or one for each."""
    if bounds is None:
        return True
    right_shape = bounds.shape in ((2, 1), (2, outputs))
    return right_shape and bool((bounds[0] <= bounds[1]).all())


def columns_fit(n_columns: int, names: np.ndarray | None) -> bool:
    """Whether there are as many names as columns, if there are names."""
    return names is None or len(names) == n_columns


def network_columns(inputs: Inputs) -> int:
    """How many columns the network sees: those of X, or those that their encoder writes."""
    encoder = inputs.encoder
    if encoder is None:
        return inputs.n_columns
    fits = ENCODER.fits(encoder, encoder.width) and encoder.n_columns == inputs.n_columns
    return encoder.width if fits else -1


def calibration_fits(fitted: Fitted, outputs: int, scores: int) -> bool:
    """Whether scores, if there are any, are those of every member that Φ is made of."""
    if fitted.calibration is None:
        return True
    width = fitted.width
    members = width // outputs
    return width % outputs == 0 and CALIBRATION.fits(fitted.calibration, members, scores)


def write_features(transformer: Any) -> State:
    """A fitted transformer of random features as a state."""
    values = {
        "n_features_in": transformer.n_features_in_,
        "feature_names_in": getattr(transformer, "feature_names_in_", None),
        "mean": transformer.mean_,
        "features": transformer.features_,
    }
    return written(FEATURES, values)


def read_features(state: State, transformer: Any) -> None:
    """Give a transformer the fitted attributes that a state describes."""
    values = entries(FEATURES, state)
    n_columns = values["n_features_in"]
    fits = len(values["mean"]) == n_columns and FEATURE_MAP.fits(values["features"], n_columns)
    if not fits or not columns_fit(n_columns, values["feature_names_in"]):
        raise ModelFileError("its arrays do not fit together")
    transformer.n_features_in_ = n_columns
    transformer.mean_ = values["mean"]
    transformer.features_ = values["features"]
    if values["feature_names_in"] is not None:
        transformer.feature_names_in_ = values["feature_names_in"]
