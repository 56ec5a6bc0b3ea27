"""The bytes of a model file: a safetensors file whose metadata is one JSON document.

    8 bytes      length of the header, little endian
    header       JSON: {"__metadata__": {"rfrboost": document}, name: {dtype, shape, offsets}, …}
    arrays       float64 or float32, bit for bit; in format 2 also text, as bytes

The document holds the format's number, the version of rfrboost that wrote it, the model's state
with {"array": name} in place of every array, and a SHA-256 checksum of all of that and the arrays.
The same content always gives the same bytes of a header, and a header with other bytes is refused.
So every changed byte is found: in the header by its content or how that is written, in the arrays
by the checksum. The checksum finds accidents. It proves nothing about who wrote a file, so
everything is checked as if there were no checksum.

Format 2 is written only for models that format 1 cannot hold: models that are compressed, whose
outputs have a scale each, or whose texts would not fit into a header. In format 2 long lists of
text become {"texts": name}, an array of bytes that hold the list as JSON.

A forged header can be built so that Python needs forty times its bytes of memory, and microseconds
for every value in it. So headers are bounded in bytes and in values; with these bounds, refusing
the worst one takes about a second and less than 256 MB.
"""

import hashlib
import io
import json
import math
from typing import Any, BinaryIO

import numpy as np

from rfrboost._files.schema import COUNT, OBJECT, TEXT, ModelFileError, Record, State

#: the newest format that this version reads
NEWEST_FORMAT = 2

#: the formats that are written: the older one wherever it can hold a model
OLDER_FORMAT = 1
NEWER_FORMAT = 2

# The most bytes of a header, 16 MB. A file that declares more is refused before it is read, so that
# a forged length cannot fill the memory.
LARGEST_HEADER = 2**24

# The most values in a header, half a million, counted by the characters that precede them. Each
# takes up to 300 bytes of memory and 2 µs, and a layer has about a hundred values.
MOST_VALUES = 2**19

# The largest number of axes of an array: the leaf values of trees have four.
MOST_AXES = 4

# The writer pads a header with spaces to a multiple of this many bytes.
HEADER_UNIT = 8

# In format 2, lists of text with at least this many characters become arrays. Shorter ones, like
# the names of a few columns, stay readable in the header.
LONG_TEXT = 2**12

#: the types of arrays in model files; "U8" is for text and in format 2 only
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "U8": np.dtype("u1"),
}

#: the types of values that may hold arrays
NESTED = frozenset({dict, list})

Arrays = dict[str, np.ndarray]

# Where a value is in a document: where the dict or list around it is, and its key. These are joined
# to a name only for arrays, because a forged document can have millions of values below a long key.
Place = tuple["Place", str] | None

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
    """The package that writes the arrays; the rest of the library works without it."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "Model files need the package safetensors: pip install 'rfrboost[files]'."
        ) from error
    return safetensors


def pack(model: dict[str, State], version: str, needed: int = OLDER_FORMAT) -> bytes:
    """The bytes of a file; ``model`` has the entries estimator, parameters and fitted.

    ``needed`` is the oldest format that can hold them.
    """
    data = pack_as(needed, model, version)
    if not has_room(data) and needed == OLDER_FORMAT:
        data = pack_as(NEWER_FORMAT, model, version)
    if not has_room(data):
        raise ModelFileError(
            "its layers and the texts outside of lists need a larger header than model files may "
            f"have ({LARGEST_HEADER} bytes and {MOST_VALUES} values)"
        )
    return data


def pack_as(number: int, model: dict[str, State], version: str) -> bytes:
    """The bytes of a file of this format."""
    arrays: Arrays = {}
    state = without_arrays(model, None, arrays, texts=number == NEWER_FORMAT)
    document = {"format": number, "version": version, **state}
    document["checksum"] = checksum(document, arrays)
    data: bytes = safetensors().numpy.save(arrays, {"rfrboost": to_json(document)})
    return data


def header_size(data: bytes) -> int:
    """The length of the header that the first eight bytes name."""
    return int.from_bytes(data[:8], "little")


def has_room(data: bytes) -> bool:
    """Whether the header of a file is within its bounds."""
    size = header_size(data)
    return size <= LARGEST_HEADER and value_count(data[8 : 8 + size]) <= MOST_VALUES


def value_count(header: bytes) -> int:
    """An upper bound of how many values a header holds: a value follows one of these characters.

    The same characters inside of texts are counted too.
    """
    return sum(map(header.count, (b",", b"[", b"{")))


def unpack(data: bytes) -> dict[str, State]:
    """The document of a file in memory, with its arrays back in place."""
    return read_document(io.BytesIO(data), len(data))


def read_document(stream: BinaryIO, size: int) -> dict[str, State]:
    """The document of a file of ``size`` bytes, with its arrays back in place.

    Every array is read into memory of its own, so that nothing is held twice.
    """
    document, table = read_header(stream, size)
    arrays: Arrays = {}
    for name, entry in in_file_order(table):
        arrays[name] = read_array(stream, entry)
    claimed = document.pop("checksum")
    if claimed != checksum(document, arrays):
        raise ModelFileError("its checksum is wrong: it has been altered or damaged")
    restored: dict[str, State] = with_arrays(document, None, arrays)
    if arrays:
        raise ModelFileError(f"it holds an array {min(arrays)[:80]!r} that belongs nowhere")
    return restored


def read_summary(stream: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document and the table of arrays. Of the arrays, only those with text are read."""
    document, table = read_header(stream, size)
    begin = stream.tell()
    texts: Arrays = {}
    for name, entry in in_file_order(table):
        if entry["dtype"] == "U8":
            stream.seek(begin + entry["data_offsets"][0])
            texts[name] = read_array(stream, entry)
    if texts:
        document = with_texts(document, None, texts)
    return document, table


def read_array(stream: BinaryIO, entry: dict[str, Any]) -> np.ndarray:
    """The array that begins where the stream is."""
    array: np.ndarray = np.empty(entry["shape"], DTYPES[entry["dtype"]])
    room = array.reshape(-1).view(np.uint8).data
    while len(room):
        count = stream.readinto(room)  # type: ignore[attr-defined]
        if not count:
            raise ModelFileError("it ends before its arrays do")
        room = room[count:]
    return array


def in_file_order(table: dict[str, Any]) -> list[tuple[str, Any]]:
    """Names and descriptions of arrays, in the order in which they lie in the file."""
    return sorted(table.items(), key=lambda item: item[1]["data_offsets"])


def header_length(first: bytes) -> int:
    """The length of the header, from the first eight bytes, if it can be one."""
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= LARGEST_HEADER:
        raise ModelFileError("it is not a model file, or only the beginning of one")
    return length


def read_header(stream: BinaryIO, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document and the table of arrays of a file of ``size`` bytes; the arrays come next."""
    length = header_length(stream.read(8))
    header = stream.read(length)
    if len(header) < length:
        raise ModelFileError("it ends before its header does")
    if value_count(header) > MOST_VALUES:
        raise ModelFileError(f"its header holds more than {MOST_VALUES} values")
    table = from_json(header)
    metadata = table.get("__metadata__") if type(table) is dict else None
    text = metadata.get("rfrboost") if type(metadata) is dict else None
    if type(text) is not str:
        raise ModelFileError("it is not a model file of rfrboost")
    document = from_json(text)
    check_format(document)
    DOCUMENT.read(document, "its header")
    if not is_as_written(header, table, document):
        raise ModelFileError("its header is not as rfrboost writes it: it has been altered")
    del table["__metadata__"]
    check_arrays(table, document["format"], size - 8 - length)
    return document, table


def is_as_written(header: bytes, table: dict[str, Any], document: dict[str, Any]) -> bool:
    """Whether a header has the bytes, all of them ASCII, that are written for its content.

    That is never so if a name occurs twice or a number is not finite.
    """
    try:
        text = to_json(document)
        content = json.dumps(table, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except ValueError:
        return False
    padded = content.ljust(-(-len(content) // HEADER_UNIT) * HEADER_UNIT)
    return (
        table["__metadata__"] == {"rfrboost": text}
        and padded.isascii()
        and header == padded.encode("ascii")
    )


def check_format(document: Any) -> None:
    """Refuse a newer format before anything in it can be misunderstood."""
    number = document.get("format") if type(document) is dict else None
    if COUNT.read(number, "its format number") > NEWEST_FORMAT:
        version = document.get("version")
        writer = f"rfrboost {version[:40]!r}" if type(version) is str else "a later rfrboost"
        raise ModelFileError(
            f"it has format {number}, written by {writer}, and this version reads formats up to "
            f"{NEWEST_FORMAT}; upgrade rfrboost to load it"
        )


def check_arrays(table: dict[str, Any], number: int, size: int) -> None:
    """Refuse arrays that do not fill the ``size`` bytes after the header one after the other."""
    for name, entry in table.items():
        check_array(name, entry, number)
    end = 0
    for name, entry in in_file_order(table):
        if entry["data_offsets"][0] != end:
            raise ModelFileError(f"its arrays are damaged: {name[:80]!r} begins in a wrong place")
        end = entry["data_offsets"][1]
    if end != size:
        raise ModelFileError("it is shorter or longer than its header says")


def check_array(name: str, entry: Any, number: int) -> None:
    """Refuse an array whose type, shape and offsets do not agree."""
    where = f"the description of the array {name[:80]!r}"
    fields = {"dtype", "shape", "data_offsets"}
    known = list(DTYPES) if number == NEWER_FORMAT else ["F64", "F32"]
    if type(entry) is not dict or set(entry) != fields or entry["dtype"] not in known:
        raise ModelFileError(f"{where} is not one that model files have")
    shape = sizes(entry["shape"], where)
    offsets = sizes(entry["data_offsets"], where)
    # The axes are counted first: the product of many large numbers takes long.
    if len(shape) > MOST_AXES or len(offsets) != 2:
        raise ModelFileError(f"{where} has too many axes")
    if offsets[1] - offsets[0] != DTYPES[entry["dtype"]].itemsize * math.prod(shape):
        raise ModelFileError(f"{where} has a size that contradicts its shape")


def sizes(numbers: Any, where: str) -> list[int]:
    """A list of whole numbers from 0, if it is one."""
    if type(numbers) is not list or not all(type(k) is int and k >= 0 for k in numbers):
        raise ModelFileError(f"{where} holds something else than sizes")
    return numbers


def without_arrays(state: State, place: Place, arrays: Arrays, texts: bool) -> State:
    """The state with {"array": name} in place of arrays, which are added to ``arrays``.

    With ``texts``, long lists of text become arrays of bytes.
    """
    if isinstance(state, np.ndarray):
        arrays[name_of(place)] = state
        return {"array": name_of(place)}
    if isinstance(state, dict):
        return {key: without_arrays(v, (place, key), arrays, texts) for key, v in state.items()}
    if isinstance(state, list):
        if texts and is_texts(state) and sum(len(v or "") for v in state) >= LONG_TEXT:
            arrays[name_of(place)] = np.frombuffer(to_json(state).encode(), np.uint8)
            return {"texts": name_of(place)}
        return [without_arrays(v, (place, str(i)), arrays, texts) for i, v in enumerate(state)]
    return state


def with_arrays(state: State, place: Place, arrays: Arrays) -> State:
    """The state with its arrays, each taken out of ``arrays`` and found under its own name."""
    if isinstance(state, dict) and len(state) == 1:
        if "array" in state:
            return taken(state["array"], place, arrays)
        if "texts" in state:
            return texts_of(taken(state["texts"], place, arrays))
    if isinstance(state, dict):
        return {key: with_arrays(v, (place, key), arrays) for key, v in state.items()}
    if isinstance(state, list) and not NESTED.isdisjoint(map(type, state)):
        return [with_arrays(v, (place, str(i)), arrays) for i, v in enumerate(state)]
    return state


def with_texts(state: State, place: Place, arrays: Arrays) -> State:
    """The state with its lists of text, but without its other arrays."""
    if isinstance(state, dict) and len(state) == 1 and "texts" in state:
        return texts_of(taken(state["texts"], place, arrays))
    if isinstance(state, dict):
        return {key: with_texts(v, (place, key), arrays) for key, v in state.items()}
    if isinstance(state, list):
        return [with_texts(v, (place, str(i)), arrays) for i, v in enumerate(state)]
    return state


def taken(claimed: Any, place: Place, arrays: Arrays) -> np.ndarray:
    """The array of this place, taken out of ``arrays``."""
    name = name_of(place)
    if claimed != name or name not in arrays:
        raise ModelFileError(f"it lacks the array {name[:80]!r}")
    return arrays.pop(name)


def name_of(place: Place) -> str:
    """The name of the array at a place: the keys that lead to it, joined by dots."""
    keys: list[str] = []
    while place is not None:
        place, key = place
        keys.append(key)
    return ".".join(reversed(keys))


def is_texts(value: Any) -> bool:
    """Whether this is a list of texts, some of which may be missing (None)."""
    return type(value) is list and all(v is None or type(v) is str for v in value)


def texts_of(array: np.ndarray) -> list[str | None]:
    """The list of texts that an array of bytes holds."""
    texts: Any = from_json(array.tobytes()) if array.dtype == np.uint8 else None
    if not is_texts(texts):
        raise ModelFileError("it holds an array that should be a list of texts")
    return list(texts)


def checksum(document: dict[str, Any], arrays: Arrays) -> str:
    """SHA-256 of the document (without its checksum) and of every array with its name and shape."""
    digest = hashlib.sha256(to_json(document).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(to_json([name, array.dtype.str, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# Made once, because JSON is written for every array.
WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json(value: Any) -> str:
    """JSON in one way only, so that equal documents have equal checksums; plain ASCII."""
    return WRITER.encode(value)


def from_json(text: str | bytes) -> Any:
    """A JSON value. The caller compares whether it was written as :func:`to_json` writes it."""
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except ValueError as error:
        raise ModelFileError("its header is damaged") from error
