"""The forms in which values are kept outside Python: arrays, and what JSON can say.

A form turns a value into a *state*, a nest of dicts and lists with arrays, numbers, strings, bools
and None as leaves, and back. ``read`` believes nothing: whatever it is given, it returns a value
that ``write`` could have come from or raises :class:`ModelFileError`. Neither looks anything up
by a name from outside: what may occur is what the forms were made with.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np

from rfrboost._numerics.arrays import frozen

State = Any


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be put into one."""


class Form(Protocol):
    """One form; ``where`` names the value in error messages."""

    def write(self, value: Any, where: str) -> State:
        """The value as a state."""

    def read(self, state: State, where: str) -> Any:
        """The value that a state stands for."""


@dataclass(frozen=True)
class Plain:
    """A value that JSON has, within limits: ``what`` it must be, and whether it ``is_one``."""

    what: str
    is_one: Callable[[Any], bool]

    def write(self, value: Any, where: str) -> State:
        return self.read(value.item() if isinstance(value, np.generic) else value, where)

    def read(self, state: State, where: str) -> Any:
        if not self.is_one(state):
            raise ModelFileError(f"{where} should be {self.what}")
        return state


def is_number(value: Any) -> bool:
    """Whether this is a finite number that a float can hold; bools are none."""
    if type(value) is int:
        return abs(value) <= 2**53
    return type(value) is float and isfinite(value)


FLAG = Plain("true or false", lambda v: type(v) is bool)


NUMBER = Plain("a finite number", is_number)


POSITIVE_NUMBER = Plain("a positive number", lambda v: is_number(v) and v > 0)


COUNT = Plain("a whole number above 0", lambda v: type(v) is int and 0 < v < 2**53)


OBJECT = Plain("a dict", lambda v: type(v) is dict)


TEXT = Plain("text", lambda v: type(v) is str)


def choice(options: Mapping[str, Any]) -> Plain:
    """One of a few names."""
    what = f"one of {', '.join(sorted(options))}"
    return Plain(what, lambda v: type(v) is str and v in options)


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers with ``ndim`` axes, in double (or, if allowed, single) precision.

    Precision and bits are kept as they are.
    """

    ndim: int
    single: bool = False

    def write(self, value: Any, where: str) -> State:
        self._check(value, where)
        return np.ascontiguousarray(value)

    def read(self, state: State, where: str) -> Any:
        self._check(state, where)
        return frozen(state)

    def _check(self, state: State, where: str) -> None:
        dtypes = (np.float64, np.float32) if self.single else (np.float64,)
        if not isinstance(state, np.ndarray) or state.ndim != self.ndim:
            raise ModelFileError(f"{where} should be an array with {self.ndim} axes")
        if state.dtype not in dtypes:
            raise ModelFileError(f"{where} should not hold numbers of type {state.dtype}")
        if not np.isfinite(state).all():
            raise ModelFileError(f"{where} holds numbers that are not finite")


class NumberOrVector:
    """A positive number, or several in an array with one axis."""

    def write(self, value: Any, where: str) -> State:
        return self._form(value).write(value, where)

    def read(self, state: State, where: str) -> Any:
        if isinstance(state, np.ndarray) and not (state > 0).all():
            raise ModelFileError(f"{where} should be positive")
        return self._form(state).read(state, where)

    def _form(self, value: Any) -> Form:
        return Numbers(1) if isinstance(value, np.ndarray) else POSITIVE_NUMBER


@dataclass(frozen=True)
class Maybe:
    """Something in a form of its own, or None."""

    form: Form

    def write(self, value: Any, where: str) -> State:
        return None if value is None else self.form.write(value, where)

    def read(self, state: State, where: str) -> Any:
        return None if state is None else self.form.read(state, where)


@dataclass(frozen=True)
class Many:
    """A tuple or a list (``sequence``) of things in the same form."""

    form: Form
    sequence: type = tuple

    def write(self, value: Any, where: str) -> State:
        return [self.form.write(v, f"{where}[{i}]") for i, v in enumerate(value)]

    def read(self, state: State, where: str) -> Any:
        if type(state) is not list:
            raise ModelFileError(f"{where} should be a list")
        return self.sequence(self.form.read(s, f"{where}[{i}]") for i, s in enumerate(state))


@dataclass(frozen=True)
class Record:
    """A dict with these keys, each in a form of its own."""

    fields: Mapping[str, Form]

    def write(self, value: Any, where: str) -> State:
        return {key: form.write(value[key], f"{where}.{key}") for key, form in self.fields.items()}

    def read(self, state: State, where: str) -> Any:
        if type(state) is not dict or set(state) != set(self.fields):
            raise ModelFileError(f"{where} should have the entries {', '.join(self.fields)}")
        return {key: form.read(state[key], f"{where}.{key}") for key, form in self.fields.items()}


@dataclass(frozen=True)
class Kind:
    """A class of immutable parts: the form of every field, and whether one ``fits`` its place.

    ``fits(part, …)`` is told the sizes that the part's surroundings have.
    """

    cls: type
    fields: Mapping[str, Form]
    fits: Callable[..., bool]


class Part:
    """A part of one of several kinds, which the state names. A new kind is a new argument."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = {kind.cls.__name__: kind for kind in kinds}

    def holds(self, value: Any) -> bool:
        """Whether the value is of one of the kinds (and not of a class derived from one)."""
        kind = self.kinds.get(type(value).__name__)
        return kind is not None and type(value) is kind.cls

    def fits(self, value: Any, *sizes: int) -> bool:
        """Whether the part fits among parts of these sizes."""
        return self.kinds[type(value).__name__].fits(value, *sizes)

    def write(self, value: Any, where: str) -> State:
        name = type(value).__name__
        if not self.holds(value):
            raise ModelFileError(f"{where} is a {name}, for which model files have no place")
        fields = {key: getattr(value, key) for key in self.kinds[name].fields}
        return {"kind": name, **Record(self.kinds[name].fields).write(fields, where)}

    def read(self, state: State, where: str) -> Any:
        name = state.get("kind") if type(state) is dict else None
        kind = self.kinds.get(name) if type(name) is str else None
        if kind is None:
            raise ModelFileError(f"{where} should be of the kind {' or '.join(self.kinds)}")
        fields = {key: entry for key, entry in state.items() if key != "kind"}
        return kind.cls(**Record(kind.fields).read(fields, where))
