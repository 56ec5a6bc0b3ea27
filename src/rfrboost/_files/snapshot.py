"""Snapshots: the finished families of an ensemble in a file, so that a killed fit can be resumed.

A snapshot is a container like a model file (:mod:`rfrboost._files.container`): arrays, JSON, a
checksum, and no pickle. It has a key, the hash of the rows and parameters of its fit, and any other
fit refuses it. It is written anew, atomically, after every family.

Layers under different penalties share the object that holds their random features, and the ensemble
is put together by that. So every feature map is written once, and layers refer to it by its index.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rfrboost._auto.kernel import KernelFit, KernelLayer
from rfrboost._auto.layer import GroupLayer
from rfrboost._auto.members import Boosted
from rfrboost._auto.trees import TreesFit
from rfrboost._files.atomic import write_atomically
from rfrboost._files.container import NEWER_FORMAT, pack, read_document, safetensors
from rfrboost._files.header import opened, size_of
from rfrboost._files.network import FEATURE_MAP
from rfrboost._files.schema import (
    NUMBER,
    OBJECT,
    JsonValue,
    ListOf,
    ModelFileError,
    Numbers,
    OrNone,
    Record,
    Schema,
    State,
)
from rfrboost._model.history import LayerRecord
from rfrboost._numerics.sizes import BATCH_ROWS
from rfrboost._version import __version__

#: stands in place of an estimator's name, so that :func:`rfrboost.load` refuses the file
TAG = "snapshot of a fit"

WHOLE = JsonValue("a whole number from 0 on", lambda v: type(v) is int and 0 <= v < 2**53)


class Ordered:
    """An array of numbers, single or double, that keeps its memory order (C or Fortran).

    Products of matrices round differently in another order.
    """

    def __init__(self, ndim: int) -> None:
        self.numbers = Numbers(ndim, single=True)

    def write(self, value: Any, where: str) -> State:
        by_columns = value.flags.f_contiguous and not value.flags.c_contiguous
        name = "by columns" if by_columns else "by rows"
        return {name: self.numbers.write(value.T if by_columns else value, where)}

    def read(self, state: State, where: str) -> Any:
        names = list(OBJECT.read(state, where))
        if names not in (["by columns"], ["by rows"]):
            raise ModelFileError(f"{where} should be an array")
        array = self.numbers.read(state[names[0]], where)
        return array.T if names == ["by columns"] else array


class Metric:
    """A matrix, or the vector of its diagonal, that keeps its memory order."""

    def write(self, value: Any, where: str) -> State:
        return {"axes": value.ndim, "L": Ordered(value.ndim).write(value, where)}

    def read(self, state: State, where: str) -> Any:
        axes = OBJECT.read(state, where).get("axes")
        if axes not in (1, 2):
            raise ModelFileError(f"{where} should be a vector or a matrix")
        return Ordered(axes).read(state.get("L"), where)


RECORD = Record(
    {
        "layer": WHOLE,
        "loss": NUMBER,
        "step_length": NUMBER,
        "gradient_norm": NUMBER,
        "seconds": NUMBER,
    }
)


class Records:
    """The records of layers."""

    def write(self, value: Any, where: str) -> State:
        return [RECORD.write(vars(record), where) for record in value]

    def read(self, state: State, where: str) -> Any:
        return tuple(LayerRecord(**record) for record in ListOf(RECORD).read(state, where))


#: a layer of a group; ``features`` is the index of a feature map
MOVES: dict[str, Schema] = {
    "group": ListOf(WHOLE),
    "features": WHOLE,
    "C": Ordered(2),
    "c": Ordered(1),
}
GROUP_LAYER = Record({**MOVES, "step_length": NUMBER})
OF_PENALTY: dict[str, Schema] = {
    "layers": ListOf(ListOf(GROUP_LAYER)),
    "out_of_fold": Ordered(2),
    "loss": NUMBER,
    "metrics": ListOf(Metric()),
    "penalty": NUMBER,
    "records": Records(),
    "score": NUMBER,
}
BOOSTED = Record({"maps": ListOf(FEATURE_MAP), "of_penalties": ListOf(Record(OF_PENALTY))})
KERNEL = Record(
    {"maps": ListOf(FEATURE_MAP), "layers": ListOf(Record(MOVES)), "out_of_fold": Ordered(2)}
)
TREES = Record({"members": ListOf(FEATURE_MAP), "out_of_fold": Ordered(2), "records": Records()})
#: the schema of each kind of family; a family that was fitted but is not in the model is None
FAMILIES: dict[str, Record] = {"boosted": BOOSTED, "kernel": KERNEL, "trees": TREES}


class SnapshotFile:
    """The families of one fit in a file; an existing file of another fit is refused."""

    def __init__(self, path: str | os.PathLike[str], key: str) -> None:
        safetensors()
        self.path = Path(path)
        self.key = key
        self.families: dict[str, State] = {}
        if not self.path.exists():
            return
        try:
            with opened(self.path) as stream:
                document = read_document(stream, size_of(stream))
        except ModelFileError as error:
            raise ModelFileError(
                f"{error} The file was passed as a snapshot: remove it, or name another file."
            ) from error
        if document["estimator"] != TAG:
            raise ModelFileError(f"{path} is a model, not a snapshot of a fit: name another file.")
        if document["version"] != __version__ or document["parameters"].get("key") != key:
            raise ModelFileError(
                f"{path} is the snapshot of another fit: of other rows, parameters, or another "
                "version of rfrboost. Remove it to begin anew, or name another file."
            )
        self.families = OBJECT.read(document["fitted"], "its families")

    def read(self, phase: str) -> tuple[Any, int] | None:
        """The family of a phase, and how many random streams the fit had spawned by then."""
        state = self.families.get(phase)
        if state is None:
            return None
        entry = Record({"kind": OrNone(JsonValue("a family", FAMILIES.__contains__))})
        kind = entry.read({"kind": state.get("kind")}, phase)["kind"]
        family = None if kind is None else READERS[kind](FAMILIES[kind].read(state["family"], kind))
        return family, WHOLE.read(state.get("streams"), phase)

    def write(self, phase: str, family: Any, streams: int) -> None:
        """Add a family, and write the file."""
        kind, state = written(family)
        self.families[phase] = {"kind": kind, "family": state, "streams": streams}
        model = {"estimator": TAG, "parameters": {"key": self.key}, "fitted": self.families}
        write_atomically(self.path, pack(model, __version__, NEWER_FORMAT))

    def remove(self) -> None:
        """Remove the file: the fit is complete."""
        self.path.unlink(missing_ok=True)


def written(family: Any) -> tuple[str | None, State]:
    """The name of a family's kind, and its state."""
    if family is None:
        return None, None
    maps: dict[int, tuple[int, Any]] = {}

    def moves(layer: Any) -> dict[str, Any]:
        number, _ = maps.setdefault(id(layer.features), (len(maps), layer.features))
        return {**vars(layer), "features": number}

    if isinstance(family, TreesFit):
        return "trees", TREES.write(vars(family), "trees")
    if isinstance(family, KernelFit):
        layers = [moves(layer) for layer in family.layers]
        own = {"maps": features(maps), "layers": layers, "out_of_fold": family.out_of_fold}
        return "kernel", KERNEL.write(own, "kernel members")
    of_penalties = [
        {**vars(own), "layers": [[moves(layer) for layer in round] for round in own.layers]}
        for own in family
    ]
    return "boosted", BOOSTED.write(
        {"maps": features(maps), "of_penalties": of_penalties}, "boosted members"
    )


def features(maps: dict[int, tuple[int, Any]]) -> list[Any]:
    """The feature maps in the order of their indices."""
    return [feature_map for _, feature_map in maps.values()]


def read_boosted(state: dict[str, Any]) -> list[Boosted]:
    """A boosted family, best penalty first."""
    maps = state["maps"]
    return [
        Boosted(
            **{
                **own,
                "layers": tuple(
                    tuple(GroupLayer(**with_map(layer, maps)) for layer in round)
                    for round in own["layers"]
                ),
            }
        )
        for own in state["of_penalties"]
    ]


def read_kernel(state: dict[str, Any]) -> KernelFit:
    """The kernel members."""
    layers = tuple(KernelLayer(**with_map(layer, state["maps"])) for layer in state["layers"])
    return KernelFit(layers, state["out_of_fold"])


def read_trees(state: dict[str, Any]) -> TreesFit:
    """The tree members."""
    return TreesFit(**state)


READERS = {"boosted": read_boosted, "kernel": read_kernel, "trees": read_trees}


def with_map(layer: dict[str, Any], maps: tuple[Any, ...]) -> dict[str, Any]:
    """A layer with its feature map in place of the map's index."""
    if layer["features"] >= len(maps):
        raise ModelFileError("a layer of the snapshot has no features")
    return {**layer, "features": maps[layer["features"]]}


def key_of(arrays: Iterable[np.ndarray | None], settings: Iterable[str]) -> str:
    """A hash of all rows and settings of a fit."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        # Batch by batch, because rows may be larger than the memory.
        for begin in range(0, len(array), BATCH_ROWS):
            rows = np.ascontiguousarray(array[begin : begin + BATCH_ROWS])
            digest.update(rows.view(np.uint8).data)
    for setting in settings:
        digest.update(setting.encode())
        digest.update(b"\0")
    return digest.hexdigest()
