"""Files that are damaged, or made to do harm: refused in one sentence, never anything else."""

import copy
import os
import pickle
import struct
import warnings

import numpy as np
import pandas as pd
import pytest
from hostile_files import fitted, header, parts, sentence, with_document, with_table, write
from model_zoo import regression
from numpy.random import default_rng
from safetensors.numpy import save

import rfrboost
from rfrboost import ModelFileError, RFRBoostRegressor
from rfrboost._files import container
from rfrboost._files.container import LARGEST_HEADER, to_json, unpack
from rfrboost._files.io import to_state

KINDS = ("classifier", "features", "greedy", "quantile")


def answers(model, X):
    names = ("predict", "predict_proba", "transform")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rfrboost"


def refused_or_right(path, X, expected):
    """Whether a file is refused; if it is not, it must answer as before."""
    try:
        model = rfrboost.load(path)
    except ModelFileError:
        return True
    for found, right in zip(answers(model, X), expected, strict=True):
        np.testing.assert_array_equal(found, right)
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files(kind, path):
    """200 of each kind, one to eight bytes changed, half of them in the header."""
    model, X = fitted(kind)
    model.save(path)
    original, expected, rng = path.read_bytes(), answers(model, X), default_rng(KINDS.index(kind))
    header = 8 + int.from_bytes(original[:8], "little")
    refused = 0
    for k in range(200):
        data = bytearray(original)
        for position in rng.integers(header if k % 2 else len(data), size=rng.integers(1, 9)):
            data[position] = rng.integers(256)
        path.write_bytes(data)
        refused += refused_or_right(path, X, expected)
    assert refused > 190


@pytest.mark.parametrize("kind", KINDS)
def test_truncated_files(kind, path):
    """80 of each kind; no piece of a file is a file, with or without something after it."""
    model, _ = fitted(kind)
    model.save(path)
    original, rng = path.read_bytes(), default_rng(KINDS.index(kind))
    for cut in {0, 1, 7, 8, 9, len(original) - 1, *rng.integers(len(original), size=80).tolist()}:
        path.write_bytes(original[:cut])
        sentence(path)
        path.write_bytes(original[:cut] + bytes(len(original) - cut + 1))
        sentence(path)


def leaves(state, found):
    """Every (container, key) in a document."""
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, entry in items:
        found.append((state, key))
        if isinstance(entry, dict | list):
            leaves(entry, found)
    return found


NASTY = [
    *(None, True, 0, -1, 3, 2**31, 10**30, -(10**400), 0.5, 1e308, 5e-324, "", "x", "os.system"),
    *("tanh", "DenseFeatures", "SquaredError", [], [1], [[]], {}, {"array": "x"}, {"kind": "Head"}),
]


def mangle(document, arrays, rng):
    """Change one thing in a document or its arrays."""
    where, key = (found := leaves(document, []))[rng.integers(len(found))]
    what = rng.integers(8)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    if what <= 2:
        where[key] = copy.deepcopy(NASTY[rng.integers(len(NASTY))])
    elif what == 3:
        del where[key]
    elif what == 4:
        other, other_key = found[rng.integers(len(found))]
        where[key] = copy.deepcopy(other[other_key])
    elif what == 5:
        arrays[name] = np.ascontiguousarray(
            [array.T, array[:-1], array[..., None], np.ravel(array)][rng.integers(4)]
        )
    elif what == 6:
        dtype = ["float32", "float16", "int64", "uint8"][rng.integers(4)]
        arrays[name] = array.astype(dtype)
    else:
        array.flat[0] = [np.nan, np.inf, 1e308, 0.0, -1.0][rng.integers(5)]
        arrays[name] = array


@pytest.mark.parametrize("kind", KINDS)
def test_forged_files(kind, path):
    """150 of each kind, changed on purpose and with a right checksum.

    What is not refused is a model: it answers in the right shapes, if not with the same numbers.
    """
    model, X = fitted(kind)
    model.save(path)
    original, rng = parts(path), default_rng(KINDS.index(kind))
    refused = 0
    for _ in range(150):
        document, arrays = copy.deepcopy(original)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mangle(document, arrays, rng)
        write(path, document, arrays)
        try:
            loaded = rfrboost.load(path)
        except ModelFileError as error:
            assert "\n" not in str(error)  # noqa: PT017 (every file, not just one, is refused so)
            refused += 1
            continue
        with np.errstate(all="ignore"):
            for found, right in zip(answers(loaded, X), answers(model, X), strict=True):
                assert found.shape == right.shape
        loaded.save(path)
    assert 60 < refused < 150


def single_head(state, arrays):
    arrays["fitted.network.heads.1.matrix"] = np.float32(arrays["fitted.network.heads.1.matrix"])


def no_features(state, arrays):
    state["network"]["layers"][0]["features"] |= {"from_phi": None, "from_x": None}
    for source in ("from_phi", "from_x"):
        del arrays[f"fitted.network.layers.0.features.{source}.weights"]
    arrays["fitted.network.layers.0.step.C"] = np.zeros((0, 2))


def negative_smoothing(state, arrays):
    arrays["fitted.loss.smoothing"] = -arrays["fitted.loss.smoothing"]


def falling_levels(state, arrays):
    state["loss"] = {
        "kind": "Quantiles",
        "level": {"array": "fitted.loss.level"},
        "smoothing": {"array": "fitted.loss.smoothing"},
    }
    arrays["fitted.loss.level"] = np.array([0.9, 0.1])


def another_array(state, arrays):
    state["network"]["mean"]["array"] = "fitted.target_scale.shift"


def entry(where, key, value):
    """Set an entry of the state, or of a dict in it."""

    def change(state, arrays):
        (state[where] if where else state)[key] = value

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (single_head, "heads[1].matrix should not hold numbers of type float32"),
        (no_features, "do not fit together"),
        (another_array, "lacks the array 'fitted.network.mean'"),
        (entry("", "history", []), "do not fit together"),
        (entry("", "y_is_1d", True), "do not fit together"),
        (entry("", "seed", 2**31), "seed should be a seed"),
        (entry("", "n_features_in", 2**53), "n_features_in should be a whole number"),
        (entry("", "feature_names_in", ["a", "b"]), "do not fit together"),
        (entry("", "feature_names_in", ["a", "b", 1]), "feature_names_in[2] should be text"),
        (entry("loss", "kind", "BinaryLogLoss"), "loss should be of the kind SquaredError"),
        (entry("target_scale", "scale", 10**400), "scale should be a positive number"),
        (entry("target_scale", "scale", 0.0), "scale should be a positive number"),
        (entry("loss", "level", 1.0), "level should be a number between 0 and 1"),
        (falling_levels, "level should rise between 0 and 1"),
        (negative_smoothing, "smoothing should be positive"),
    ],
)
def test_states_forged_by_hand(path, change, reason):
    model, _ = fitted("quantile")
    model.save(path)
    document, arrays = parts(path)
    change(document["fitted"], arrays)
    write(path, document, arrays)
    assert reason in sentence(path)


@pytest.mark.parametrize(
    ("kind", "values", "reason"),
    [
        ("str", ["a", "a", "b"], "different labels"),
        ("str", ["a", "b", 1], "different labels of type str"),
        ("int8", [1, 2, 300], "labels that the type int8 cannot"),
        ("uint8", [-1, 0, 1], "labels that the type uint8 cannot"),
        ("float16", [0.0, 1.0, 0.1], "labels that the type float16 cannot"),
        ("float32", [0.0, 1.0, 1e300], "labels that the type float32 cannot"),
        ("int64", [0, 1, True], "different labels of type int64"),
        ("object", [0, 1, None], "classes.values[2] should be a string"),
        ("bytes", ["a", "b", "c"], "classes.type should be one of"),
        ("str", ["a", "b"], "do not fit together"),
    ],
)
def test_labels_forged_by_hand(path, kind, values, reason):
    model, _ = fitted("classifier")
    model.save(path)
    document, arrays = parts(path)
    document["fitted"]["classes"] = {"type": kind, "values": values}
    write(path, document, arrays)
    assert reason in sentence(path)


def test_a_loss_for_another_number_of_classes(path):
    model, _ = fitted("classifier")
    model.save(path)
    document, arrays = parts(path)
    document["fitted"]["loss"] = {"kind": "BinaryLogLoss"}
    write(path, document, arrays)
    assert "do not fit together" in sentence(path)
    document["fitted"]["loss"] = {"kind": "LabelsLogLoss"}
    write(path, document, arrays)
    assert "its labels should be 0 and 1" in sentence(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format":1', '"format":1,"format":1'),
        ('"l2_head":0.001', '"l2_head":1e999'),
        ('"l2_head":0.001', '"l2_head":NaN'),
        ('"l2_head":0.001', '"l2_head":' + "[" * 5000 + "]" * 5000),
        ('"l2_head":0.001', '"l2_head":' + "[" * 700 + "]" * 700),
    ],
    ids=["double", "infinity", "NaN", "deep", "less deep"],
)
def test_documents_that_json_would_let_pass(path, old, new):
    model, _ = fitted("quantile")
    model.save(path)
    document, arrays = parts(path)
    assert old in to_json(document)
    path.write_bytes(save(arrays, {"rfrboost": to_json(document).replace(old, new)}))
    sentence(path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_changed_byte_is_refused(kind, path):
    """Each byte of a file is changed in turn: to a space, by one bit, and in its case.

    By one bit only in files whose headers are made of the same kinds of entries.
    """
    model, _ = fitted(kind)
    model.save(path)
    original = path.read_bytes()
    accepted = []
    for position, byte in enumerate(original):
        others = {0x20, byte ^ 0x20} if kind in ("classifier", "features") else set()
        for changed in {byte ^ 1, *others} - {byte}:
            data = bytearray(original)
            data[position] = changed
            try:
                unpack(bytes(data))
            except ModelFileError:
                continue
            accepted.append((position, changed))
    assert accepted == []


@pytest.mark.parametrize(
    "spelling",
    [
        lambda text: text.replace(b',"fitted.', b', "fitted.', 1),
        lambda text: text + b" " * 8,
        lambda text: text.replace(b"fitted.mean", b"f\\u0069tted.mean"),
        lambda text: text.replace(b'{"rfrboost"', b'{"more":"x","rfrboost"'),
        lambda text: text.replace(b'\\"format\\":1', b'\\"format\\": 1'),
    ],
    ids=["space", "padding", "escape", "more metadata", "space in the document"],
)
def test_a_header_in_another_spelling_is_refused(spelling, path):
    model, _ = fitted("features")
    model.save(path)
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    text = spelling(data[8:end])
    assert text != data[8:end]
    path.write_bytes(header(text, data[end:]))
    assert "not as rfrboost writes it" in sentence(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 8,
        b"\xff" * 8,
        struct.pack("<Q", 2**62) + b"{}",
        struct.pack("<Q", LARGEST_HEADER + 1) + b" " * (LARGEST_HEADER + 1),
        struct.pack("<Q", LARGEST_HEADER) + b"{}",
        header(b"{}"),
        header(b"[]"),
        header(b"nil"),
        header(b"\xff\xfe{}"),
        header('{"é": 1}'.encode("latin-1")),
        header(b"[" * 200_000),
        header(b'{"a":' * 200_000),
        header(b'{"__metadata__": {}}'),
        header(b'{"__metadata__": {"rfrboost": 1}}'),
        header(b'{"__metadata__": {"rfrboost": "{}"}, "__metadata__": {}}'),
        header(b'{"__metadata__": ["rfrboost"]}'),
        with_document("{}"),
        with_document("[" * 200_000),
        with_document('{"format": NaN}'),
        with_document('{"format": 1e999}'),
        with_document('{"format": 1, "format": 1}'),
        with_document('{"format": true}'),
        with_document('{"format": 0}'),
        with_document('{"format": 1}'),
        with_document('{"format": ' + "9" * 5000 + "}"),
        with_document('{"format": "\ud800"}'),
        pickle.dumps({"format": 1}),
        b"PK\x03\x04" + bytes(100),
        save({"a": np.zeros(3)}),
        save({"a": np.zeros(3)}, {"format": "pt"}),
    ],
    ids=lambda data: str(data[:40]),
)
def test_headers_by_hand(path, data):
    path.write_bytes(data)
    sentence(path)
    with pytest.raises(ModelFileError):
        rfrboost.file_info(path)


@pytest.mark.parametrize(
    "entry",
    [
        1,
        {},
        {"dtype": "F64", "shape": [1]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0, 8], "more": 1},
        {"dtype": ["F64"], "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**40, 2**40], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**61], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [-1, -1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1, 1, 1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 16]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0]},
        {"dtype": "F64", "shape": [1], "data_offsets": [0, True]},
        {"dtype": "F64", "shape": ["1"], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1.0], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": {}, "data_offsets": {}},
    ],
    ids=str,
)
def test_arrays_described_by_hand(path, entry):
    model, _ = fitted("features")
    model.save(path)
    document, _ = parts(path)
    path.write_bytes(with_table(document, {"a": entry}, bytes(8)))
    assert "not as rfrboost writes it" not in sentence(path)


def test_sentences_say_what_is_wrong(path):
    model, _ = fitted("classifier")
    model.save(path)
    original = path.read_bytes()
    document, arrays = parts(path)

    def change(**entries):
        write(path, {**document, **entries}, arrays)
        return sentence(path)

    assert "unknown estimator 'os.system'" in change(estimator="os.system")
    newer = change(format=3, version="9.0")
    assert "format 3, written by rfrboost '9.0', and this version reads formats up to 2" in newer
    assert "no parameter 'exec'" in change(parameters={"exec": "print()"})
    assert "'n_layers' parameter" in change(parameters={"n_layers": -1})
    assert "should have the entries format, version" in change(more=1)
    everything = {"array": "parameters"}
    write(path, {**document, "parameters": everything}, {**arrays, "parameters": np.zeros(3)})
    assert "the list of parameters should be a dict" in sentence(path)
    write(path, document, {**arrays, "spare": np.zeros(3)})
    assert "'spare' that belongs nowhere" in sentence(path)
    lost = min(arrays)
    write(path, document, {name: a for name, a in arrays.items() if name != lost})
    assert f"lacks the array '{lost}'" in sentence(path)
    write(path, document, {**arrays, lost: arrays[lost] * np.nan})
    assert "not finite" in sentence(path)
    path.write_bytes(original[:-3])
    assert "shorter or longer than its header says" in sentence(path)
    path.write_bytes(original[:-1] + bytes([original[-1] ^ 1]))
    assert "checksum is wrong" in sentence(path)


def test_a_folder_and_a_pipe_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert "it is not a file" in sentence(path)


def test_overlapping_arrays_and_gaps_are_refused(path):
    model, _ = fitted("features")
    model.save(path)
    document, _ = parts(path)
    first = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    for begin in (0, 16):
        second = {"dtype": "F64", "shape": [1], "data_offsets": [begin, begin + 8]}
        data = with_table(document, {"a": first, "b": second}, bytes(begin + 8))
        path.write_bytes(data)
        assert "begins in a wrong place" in sentence(path)


# Format 2: lists of text that do not fit into a header.


@pytest.fixture(scope="module")
def model_of_texts():
    """A model with names of levels, and its table."""
    X, y = regression(60, 2)
    table = pd.DataFrame({"x": X[:, 0], "ü": [f"{k % 30} of 30 ✓" for k in range(60)]})
    return RFRBoostRegressor(n_bags=2, random_state=0).fit(table, y), table


@pytest.fixture
def texts_path(path, model_of_texts, monkeypatch):
    """A small file of format 2, as if headers had to be shorter."""
    model, table = model_of_texts
    monkeypatch.setattr(container, "LONG_TEXT", 1)
    path.write_bytes(container.pack_as(2, to_state(model), "0"))
    return path, model, table


def test_texts_come_back_as_they_were(texts_path):
    path, model, table = texts_path
    document, arrays = parts(path)
    assert {array.dtype.name for array in arrays.values()} >= {"float64", "uint8"}
    np.testing.assert_array_equal(rfrboost.load(path).predict(table), model.predict(table))
    info = rfrboost.file_info(path)
    assert info["fitted"]["feature_names_in"] == ["x", "ü"]
    assert document["fitted"]["feature_names_in"] == {"texts": "fitted.feature_names_in"}


@pytest.mark.parametrize(
    "bytes_of_text",
    [b"", b"[", b"{}", b"[1]", b'[["a"]]', b"\xff", b"[" * 100_000, b'"x"', b"[NaN]"],
    ids=lambda data: str(data[:20]),
)
def test_bytes_that_are_no_list_of_texts(bytes_of_text, texts_path):
    path, _, _ = texts_path
    document, arrays = parts(path)
    arrays["fitted.feature_names_in"] = np.frombuffer(bytes_of_text, np.uint8)
    write(path, document, arrays)
    sentence(path)
    with pytest.raises(ModelFileError):
        rfrboost.file_info(path)


def test_format_1_has_no_texts_in_arrays(texts_path):
    path, _, _ = texts_path
    document, arrays = parts(path)
    write(path, {**document, "format": 1}, arrays)
    assert "not one that model files have" in sentence(path)


def test_texts_where_numbers_belong(texts_path):
    path, _, _ = texts_path
    document, arrays = parts(path)
    scaling = document["fitted"]["encoder"]["scaling"]
    scaling["fill"] = {"texts": scaling["fill"]["array"]}
    write(path, document, arrays)
    assert "should be a list of texts" in sentence(path)
