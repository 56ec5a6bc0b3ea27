"""The forms of class labels and column names.

What a fitted estimator consists of: its parameters and its fitted attributes.

For every family of estimators a :class:`FittedState` lists the attributes that ``fit`` sets, with
their forms, and says whether they fit together. Everything else follows from these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rfrboost._estimators.parameters import is_auto
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

#: NumPy's types of labels, each with the Python types that its values have
LABEL_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    **{f"{sign}int{bits}": (int,) for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (float,) for bits in (16, 32, 64)},
    "str": (str,),
    "object": (bool, int, float, str),
}


# NumPy gives every string the room of the longest; more characters than this in all are refused.
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
            with np.errstate(over="ignore"):
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


@dataclass(frozen=True)
class FittedState:
    """Attributes by name, and whether those of an estimator fit together."""

    attributes: Mapping[str, Schema]
    fit_together: Callable[[Any], bool]

    def write(self, estimator: BaseEstimator) -> State:
        """The fitted attributes as a state; private and public ones look alike in it."""
        return {
            name.strip("_"): form.write(getattr(estimator, name, None), name.strip("_"))
            for name, form in self.attributes.items()
        }

    def read(self, state: State, estimator: BaseEstimator) -> None:
        """Set the fitted attributes; those that are None stay unset, as after a fit."""
        forms = {name.strip("_"): form for name, form in self.attributes.items()}
        # What may be None may also be absent: the file is then older than the attribute.
        absent = {name: None for name, form in forms.items() if type(form) is OrNone}
        values = Record(forms).read({**absent, **OBJECT.read(state, "its fitted state")}, "it")
        for name in self.attributes:
            if values[name.strip("_")] is not None:
                setattr(estimator, name, values[name.strip("_")])
        if not self.fit_together(estimator):
            raise ModelFileError("its arrays do not fit together")


def is_scalar(value: Any) -> bool:
    """Whether this is a parameter's value by itself."""
    return value is None or type(value) in (bool, int, str) or is_number(value)


class Parameter:
    """A constructor parameter: None, a bool, number or string, a tuple of them, or a loss.

    Other sequences are read again as tuples.
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
        if isinstance(state, list):
            return ListOf(JsonValue("a plain value", is_scalar)).read(state, where)
        return JsonValue("a plain value", is_scalar).read(state, where)


def write_parameters(estimator: BaseEstimator) -> State:
    """The constructor's parameters as a state."""
    values = estimator.get_params(deep=False)
    return {name: Parameter().write(v, f"the parameter {name}") for name, v in values.items()}


def read_parameters(cls: type[BaseEstimator], state: State) -> BaseEstimator:
    """An unfitted estimator with these parameters, checked as its ``fit`` checks them.

    A parameter may be absent: the file is then older than the parameter, and its default is what
    the older version did.
    """
    known = cls._get_param_names()
    for name in OBJECT.read(state, "the list of parameters"):
        if name not in known:
            raise ModelFileError(f"{cls.__name__} has no parameter {name[:80]!r}")
    values = {name: Parameter().read(v, f"the parameter {name}") for name, v in state.items()}
    estimator = cls(**values)
    try:
        estimator._validate_params()
    except ValueError as error:
        raise ModelFileError(f"its parameters are not valid: {error}") from error
    return estimator


INPUTS: dict[str, Schema] = {"n_features_in_": COUNT, "feature_names_in_": OrNone(Names())}


LAYER_RECORD = Record(
    {
        "layer": COUNT,
        "loss": NUMBER,
        "step_length": NUMBER,
        "gradient_norm": NUMBER,
        "seconds": NUMBER,
    }
)


NETWORK_ATTRIBUTES: dict[str, Schema] = {
    **INPUTS,
    "_encoder": OrNone(ENCODER),
    "network_": NETWORK,
    "feature_importances_": OrNone(Numbers(1)),
    "_calibration": OrNone(CALIBRATION),
    "history_": ListOf(LAYER_RECORD, list),
    "_seed": JsonValue("a seed", lambda v: type(v) is int and 0 <= v < 2**31),
}


def inputs_fit(estimator: Any) -> bool:
    """As many names as columns, if there are names."""
    names = getattr(estimator, "feature_names_in_", None)
    return names is None or len(names) == estimator.n_features_in_


def network_columns(estimator: Any) -> int:
    """How many columns the network sees: those of X, or what their encoder makes of them."""
    encoder = estimator._encoder
    if encoder is None:
        return estimator.n_features_in_
    fits = ENCODER.fits(encoder, encoder.width) and encoder.n_columns == estimator.n_features_in_
    return encoder.width if fits else -1


def network_fits(estimator: Any, outputs: int) -> bool:
    """A network for these inputs and outputs; a single one has a record of every layer."""
    return (
        inputs_fit(estimator)
        and NETWORK.fits(estimator.network_, network_columns(estimator), outputs)
        and (
            is_auto(getattr(estimator, "n_layers", 0))
            or len(estimator.history_) == len(estimator.network_.layers)
        )
    )


def calibration_fits(estimator: Any, outputs: int, scores: int) -> bool:
    """Scores, if there are any, of as many members as make up Φ, each with these outputs."""
    calibration = estimator._calibration
    if calibration is None:
        return True
    width = len(estimator.network_.heads[-1].W)
    return width % outputs == 0 and CALIBRATION.fits(calibration, width // outputs, scores)


def regressor_fits(estimator: Any) -> bool:
    outputs = estimator.network_.heads[-1].matrix.shape[1] if estimator.network_.heads else 0
    return (
        outputs > 0
        and network_fits(estimator, outputs)
        and REGRESSION_LOSS.fits(estimator._loss, outputs)
        and TARGET_SCALE.fits(estimator._target_scale, outputs)
        and (outputs == 1 or not estimator._y_is_1d)
        and calibration_fits(estimator, outputs, outputs)
    )


def classifier_fits(estimator: Any) -> bool:
    outputs = 1 if len(estimator.classes_) == 2 else len(estimator.classes_)
    return (
        network_fits(estimator, outputs)
        and LOG_LOSS.fits(estimator._loss, outputs)
        and calibration_fits(estimator, outputs, 1)
    )


def features_fit(estimator: Any) -> bool:
    columns = estimator.n_features_in_
    fits = len(estimator.mean_) == columns and FEATURE_MAP.fits(estimator.features_, columns)
    return inputs_fit(estimator) and fits


REGRESSOR = FittedState(
    {
        **NETWORK_ATTRIBUTES,
        "_loss": REGRESSION_LOSS,
        "_target_scale": TARGET_SCALE,
        "_y_is_1d": FLAG,
    },
    regressor_fits,
)


CLASSIFIER = FittedState(
    {**NETWORK_ATTRIBUTES, "_loss": LOG_LOSS, "classes_": Labels()}, classifier_fits
)


FEATURES = FittedState({**INPUTS, "mean_": Numbers(1), "features_": FEATURE_MAP}, features_fit)
