"""The schema language of model files: which values may stand where, as JSON and arrays.

A schema turns a Python value into a *state* and back. A state is what a file can hold: dicts and
lists, nested, with arrays, numbers, strings, bools and None inside. ``read`` trusts nothing: it
returns a value that ``write`` accepts, or it raises :class:`ModelFileError`. Nothing is looked up
by a name from the file, except among the alternatives that a schema lists.

Classes are written under tags (:class:`Kind`), so that a class can be renamed or moved without
changing a file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

import numpy as np

from rfrboost._numerics.arrays import frozen

State = Any

# Whole numbers up to here are exact as a float.
LARGEST_INTEGER = 2**53


class ModelFileError(ValueError):
    """A model file that cannot be read, or a model that cannot be written to one."""


class Schema(Protocol):
    """What a value must be, and how it is stored; ``where`` names the value in error messages."""

    def write(self, value: Any, where: str) -> State:
        """The state that stands for a value."""

    def read(self, state: State, where: str) -> Any:
        """The value that a state stands for."""


@dataclass(frozen=True)
class JsonValue:
    """A value that JSON can hold, if ``allows(value)``; ``what`` describes it in errors."""

    what: str
    allows: Callable[[Any], bool]

    def write(self, value: Any, where: str) -> State:
        return self.read(value.item() if isinstance(value, np.generic) else value, where)

    def read(self, state: State, where: str) -> Any:
        if not self.allows(state):
            raise ModelFileError(f"{where} should be {self.what}")
        return state


def is_number(value: Any) -> bool:
    """Whether this is a finite number that a float can hold; bools are not numbers here."""
    if type(value) is int:
        return abs(value) <= LARGEST_INTEGER
    return type(value) is float and isfinite(value)


FLAG = JsonValue("true or false", lambda v: type(v) is bool)

NUMBER = JsonValue("a finite number", is_number)

POSITIVE_NUMBER = JsonValue("a positive number", lambda v: is_number(v) and v > 0)

COUNT = JsonValue("a whole number above 0", lambda v: type(v) is int and 0 < v < LARGEST_INTEGER)

OBJECT = JsonValue("a dict", lambda v: type(v) is dict)

TEXT = JsonValue("text", lambda v: type(v) is str)


def choice(options: Mapping[str, Any]) -> JsonValue:
    """One of the keys of ``options``."""
    what = f"one of {', '.join(sorted(options))}"
    return JsonValue(what, lambda v: type(v) is str and v in options)


@dataclass(frozen=True)
class Numbers:
    """An array of finite numbers with ``ndim`` axes.

    In double precision or, if ``single`` allows it, in single precision. Type and bits are kept.
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
    """A positive number, or an array of positive numbers with one axis."""

    def write(self, value: Any, where: str) -> State:
        return self._schema(value).write(value, where)

    def read(self, state: State, where: str) -> Any:
        if isinstance(state, np.ndarray) and not (state > 0).all():
            raise ModelFileError(f"{where} should be positive")
        return self._schema(state).read(state, where)

    def _schema(self, value: Any) -> Schema:
        return Numbers(1) if isinstance(value, np.ndarray) else POSITIVE_NUMBER


@dataclass(frozen=True)
class OrNone:
    """A value of the given schema, or None."""

    schema: Schema

    def write(self, value: Any, where: str) -> State:
        return None if value is None else self.schema.write(value, where)

    def read(self, state: State, where: str) -> Any:
        return None if state is None else self.schema.read(state, where)


@dataclass(frozen=True)
class ListOf:
    """Any number of values of one schema, read as a tuple or as a list (``sequence``)."""

    schema: Schema
    sequence: type = tuple

    def write(self, value: Any, where: str) -> State:
        return [self.schema.write(v, f"{where}[{i}]") for i, v in enumerate(value)]

    def read(self, state: State, where: str) -> Any:
        if type(state) is not list:
            raise ModelFileError(f"{where} should be a list")
        try:
            return self.sequence([self.schema.read(s, where) for s in state])
        except ModelFileError:
            # Once more to name the place: a forged list is long, and a name for each value is slow.
            for i, s in enumerate(state):
                self.schema.read(s, f"{where}[{i}]")
            raise


@dataclass(frozen=True)
class Record:
    """A dict with exactly these keys, each with a schema for its value."""

    fields: Mapping[str, Schema]

    def write(self, value: Any, where: str) -> State:
        return {
            key: schema.write(value[key], f"{where}.{key}") for key, schema in self.fields.items()
        }

    def read(self, state: State, where: str) -> Any:
        if type(state) is not dict or set(state) != set(self.fields):
            raise ModelFileError(f"{where} should have the entries {', '.join(self.fields)}")
        return {
            key: schema.read(state[key], f"{where}.{key}") for key, schema in self.fields.items()
        }


@dataclass(frozen=True)
class Kind:
    """A class whose objects files may hold.

    Parameters
    ----------
    tag
        The name that files call it by. It belongs to the file format and must never change;
        the name of the class may.
    cls
        The class. Its constructor takes the fields as keyword arguments.
    fields
        The schema of every field, by the name of the field.
    fits
        ``fits(object, *sizes)``: whether the sizes of the object's arrays agree with each other
        and with ``sizes``, those of the model around it.
    """

    tag: str
    cls: type
    fields: Mapping[str, Schema]
    fits: Callable[..., bool]


class OneOf:
    """An object of one of several kinds; the state holds the kind's tag.

    Objects are recognised by their exact class: one of a derived class may behave differently
    after loading, and is refused.
    """

    def __init__(self, *kinds: Kind) -> None:
        self.by_tag = {kind.tag: kind for kind in kinds}
        self.by_class = {kind.cls: kind for kind in kinds}
        if len(self.by_tag) < len(kinds) or len(self.by_class) < len(kinds):
            raise ValueError("Every kind needs a tag and a class that no other kind has.")

    def holds(self, value: Any) -> bool:
        """Whether the value is of one of the kinds (and not of a class derived from one)."""
        return type(value) in self.by_class

    def fits(self, value: Any, *sizes: int) -> bool:
        """Whether an object agrees with the sizes of the model around it."""
        return self.by_class[type(value)].fits(value, *sizes)

    def write(self, value: Any, where: str) -> State:
        kind = self.by_class.get(type(value))
        if kind is None:
            name = type(value).__name__
            raise ModelFileError(
                f"{where} is of the class {name}, and model files hold only objects of rfrboost's "
                "own classes"
            )
        fields = {key: getattr(value, key) for key in kind.fields}
        return {"kind": kind.tag, **Record(kind.fields).write(fields, where)}

    def read(self, state: State, where: str) -> Any:
        tag = state.get("kind") if type(state) is dict else None
        kind = self.by_tag.get(tag) if type(tag) is str else None
        if kind is None:
            raise ModelFileError(f"{where} should be of the kind {' or '.join(self.by_tag)}")
        # A field that may be None may be absent: the file is then older than the field.
        absent = {key: None for key, schema in kind.fields.items() if type(schema) is OrNone}
        fields = {**absent, **{key: entry for key, entry in state.items() if key != "kind"}}
        return kind.cls(**Record(kind.fields).read(fields, where))
