"""The bytes of a model file: a safetensors file whose metadata is one JSON document.

    8 bytes      length of the header, little endian
    header       JSON: {"__metadata__": {"rfrboost": document}, name: {dtype, shape, offsets}, …}
    arrays       float64 or float32, bit for bit

The document holds the format's number, the version of rfrboost that wrote it, the model's state
with {"array": name} in place of every array, and a SHA-256 checksum of all of that and the arrays.
The checksum finds accidents. It proves nothing about who wrote a file, so everything is checked as
if there were no checksum.
"""

import hashlib
import json
import math
from typing import Any

import numpy as np

from rfrboost._files.schema import COUNT, OBJECT, TEXT, ModelFileError, Record, State

#: the newest format that this version reads, and the one it writes
FORMAT = 1

# Bytes, 16 MB. A file that declares more is refused before it is read, so that a forged length
# cannot fill the memory.
LARGEST_HEADER = 2**24

#: the types of arrays in model files, with the bytes of a number
DTYPES = {"F64": 8, "F32": 4}

Arrays = dict[str, np.ndarray]

DOCUMENT = Record(
    {
        "format": COUNT,
        "version": TEXT,
        "estimator": TEXT,
        "parameters": OBJECT,
        "fitted": OBJECT,
        "checksum": TEXT,
    }
)


def safetensors() -> Any:
    """The package that reads and writes the arrays; the rest of the library works without it."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "Model files need the package safetensors: pip install 'rfrboost[files]'."
        ) from error
    return safetensors


def pack(model: dict[str, State], version: str) -> bytes:
    """The bytes of a file; ``model`` has the entries estimator, parameters and fitted."""
    arrays: Arrays = {}
    document = {"format": FORMAT, "version": version, **without_arrays(model, "", arrays)}
    document["checksum"] = checksum(document, arrays)
    data: bytes = safetensors().numpy.save(arrays, {"rfrboost": to_json(document)})
    if int.from_bytes(data[:8], "little") > LARGEST_HEADER:
        raise ModelFileError(
            "its column names, class labels and layers need a larger header than model files "
            f"may have ({LARGEST_HEADER} bytes)"
        )
    return data


def unpack(data: bytes) -> dict[str, State]:
    """The document of a file, with its arrays back in place."""
    document, _ = read_header(data[:8], data[8 : 8 + header_length(data[:8])], len(data))
    package = safetensors()
    try:
        arrays = package.numpy.load(data)
    except package.SafetensorError as error:
        raise ModelFileError("its arrays are damaged") from error
    claimed = document.pop("checksum")
    if claimed != checksum(document, arrays):
        raise ModelFileError("its checksum is wrong: it has been altered or damaged")
    restored: dict[str, State] = with_arrays(document, "", arrays)
    if arrays:
        raise ModelFileError(f"it holds an array {min(arrays)!r} that belongs nowhere")
    return restored


def header_length(first: bytes) -> int:
    """The length of the header, from the first eight bytes, if it can be one."""
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= LARGEST_HEADER:
        raise ModelFileError("it is not a model file, or only the beginning of one")
    return length


def read_header(first: bytes, header: bytes, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document and the table of arrays, from the header of a file of ``size`` bytes."""
    if len(header) < header_length(first):
        raise ModelFileError("it ends before its header does")
    table = from_json(header)
    metadata = table.pop("__metadata__", None) if type(table) is dict else None
    text = metadata.get("rfrboost") if type(metadata) is dict else None
    if type(text) is not str:
        raise ModelFileError("it is not a model file of rfrboost")
    document = from_json(text)
    check_format(document)
    DOCUMENT.read(document, "its header")
    arrays_end = max([0, *(array_end(name, entry) for name, entry in table.items())])
    if 8 + len(header) + arrays_end != size:
        raise ModelFileError("it is shorter or longer than its header says")
    return document, table


def check_format(document: Any) -> None:
    """Refuse a newer format before anything in it can be misunderstood."""
    number = document.get("format") if type(document) is dict else None
    if COUNT.read(number, "its format number") > FORMAT:
        version = document.get("version")
        writer = f"rfrboost {version[:40]!r}" if type(version) is str else "a later rfrboost"
        raise ModelFileError(
            f"it has format {number}, written by {writer}, and this version reads formats up to "
            f"{FORMAT}; upgrade rfrboost to load it"
        )


def array_end(name: str, entry: Any) -> int:
    """The offset at which an array ends, if its type, shape and offsets agree."""
    where = f"the description of the array {name[:80]!r}"
    fields = {"dtype", "shape", "data_offsets"}
    if type(entry) is not dict or set(entry) != fields or entry["dtype"] not in list(DTYPES):
        raise ModelFileError(f"{where} is not one that model files have")
    shape = sizes(entry["shape"], where)
    offsets = sizes(entry["data_offsets"], where)
    size = DTYPES[entry["dtype"]] * math.prod(shape)
    if len(shape) > 2 or len(offsets) != 2 or offsets[1] - offsets[0] != size:
        raise ModelFileError(f"{where} has a size that contradicts its shape")
    return offsets[1]


def sizes(numbers: Any, where: str) -> list[int]:
    """A list of whole numbers from 0, if it is one."""
    if type(numbers) is not list or not all(type(k) is int and k >= 0 for k in numbers):
        raise ModelFileError(f"{where} holds something else than sizes")
    return numbers


def without_arrays(state: State, name: str, arrays: Arrays) -> State:
    """The state with {"array": name} in place of arrays, which are added to ``arrays``."""
    if isinstance(state, np.ndarray):
        arrays[name] = state
        return {"array": name}
    inside = f"{name}." if name else ""
    if isinstance(state, dict):
        return {key: without_arrays(v, f"{inside}{key}", arrays) for key, v in state.items()}
    if isinstance(state, list):
        return [without_arrays(v, f"{inside}{i}", arrays) for i, v in enumerate(state)]
    return state


def with_arrays(state: State, name: str, arrays: Arrays) -> State:
    """The state with its arrays, each taken out of ``arrays`` and found under its own name."""
    inside = f"{name}." if name else ""
    if isinstance(state, dict) and set(state) == {"array"}:
        if state["array"] != name or name not in arrays:
            raise ModelFileError(f"it lacks the array {name[:80]!r}")
        return arrays.pop(name)
    if isinstance(state, dict):
        return {key: with_arrays(v, f"{inside}{key}", arrays) for key, v in state.items()}
    if isinstance(state, list):
        return [with_arrays(v, f"{inside}{i}", arrays) for i, v in enumerate(state)]
    return state


def checksum(document: dict[str, Any], arrays: Arrays) -> str:
    """SHA-256 of the document (without its checksum) and of every array with its name and shape."""
    digest = hashlib.sha256(to_json(document).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(to_json([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def to_json(value: Any) -> str:
    """JSON in one way only, so that equal documents have equal checksums; plain ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_json(text: str | bytes) -> Any:
    """A JSON value; repeated names, NaN and infinity, which Python would accept, are refused."""
    try:
        text = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=unique_names, parse_constant=finite, parse_float=finite
        )
    except ValueError as error:
        raise ModelFileError("its header is damaged") from error


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no name occurs twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def finite(text: str) -> float:
    """A JSON number as a finite float."""
    if not math.isfinite(float(text)):
        raise ValueError(f"{text} is not finite")
    return float(text)
