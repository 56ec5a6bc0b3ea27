"""The forms of class labels and column names."""

from typing import Any

import numpy as np

from rfrboost._forms import (
    TEXT,
    Form,
    Many,
    ModelFileError,
    Plain,
    Record,
    State,
    choice,
    is_number,
)

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
LABEL = Plain("a string, a number or a bool", lambda v: type(v) in (bool, int, str) or is_number(v))


class Labels:
    """At least two different class labels: strings, whole numbers, floats or bools."""

    def write(self, value: Any, where: str) -> State:
        name = "str" if value.dtype.kind == "U" else value.dtype.name
        values = [v.item() if isinstance(v, np.generic) else v for v in value.tolist()]
        state = {"type": name, "values": values}
        self.read(state, where)
        return state

    def read(self, state: State, where: str) -> Any:
        fields: dict[str, Form] = {"type": choice(LABEL_TYPES), "values": Many(LABEL, list)}
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
        return Many(TEXT).write(value, where)

    def read(self, state: State, where: str) -> Any:
        names = Many(TEXT, list).read(state, where)
        return np.array(names, dtype=object)
