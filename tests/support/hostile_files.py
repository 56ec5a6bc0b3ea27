"""Small model files, and files with contents that no model would write."""

import json
import struct
from functools import cache

import numpy as np
import pytest
from model_zoo import regression
from safetensors.numpy import load_file, save

import rfrboost
from rfrboost import ModelFileError, RFRBoostClassifier, RFRBoostRegressor, SWIMFeatures
from rfrboost._files.container import checksum, to_json


@cache
def fitted(kind):
    """Small models that have every kind of part between them, and their rows; never changed."""
    X, y = regression(60, 3)
    if kind == "classifier":
        model = RFRBoostClassifier(2, n_features=(2, 2), normalize=True, random_state=0)
        return model.fit(X, np.array(["a", "b", "c"])[np.searchsorted([-1, 1], y)]), X
    if kind == "features":
        return SWIMFeatures(4, random_state=0).fit(X, y), X
    if kind == "greedy":
        greedy = {"strategy": "greedy", "step_matrix": "diagonal", "initial": "swim"}
        return RFRBoostRegressor(2, **greedy, hidden_dim=4, random_state=0).fit(X, y), X
    model = RFRBoostRegressor(2, n_features=(3, 3), loss="quantile", l2_head=1e-3, random_state=0)
    return model.fit(X, np.column_stack([y, y**2])), X


def sentence(path):
    """The one sentence with which a file is refused."""
    with pytest.raises(ModelFileError) as caught:
        rfrboost.load(path)
    message = str(caught.value)
    assert message.startswith(f"Cannot load {path}: ")
    assert message.endswith(".")
    assert "\n" not in message
    return message


def parts(path):
    """The document and the arrays of a file."""
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["rfrboost"]), load_file(path)


def write(path, document, arrays):
    """A file with a right checksum, whatever is in it."""
    document = {key: entry for key, entry in document.items() if key != "checksum"}
    document["checksum"] = checksum(document, arrays)
    path.write_bytes(save(arrays, {"rfrboost": to_json(document)}))


def header(text, arrays=b""):
    """A file with this header, as it is."""
    return struct.pack("<Q", len(text)) + text + arrays


def with_table(document, table, arrays=b""):
    """A file with this table of arrays, spelled as files are."""
    table = {"__metadata__": {"rfrboost": to_json(document)}, **table}
    text = json.dumps(table, separators=(",", ":")).encode()
    return header(text + b" " * (-len(text) % 8), arrays)


def with_document(text):
    """A file with this text as its document."""
    return header(json.dumps({"__metadata__": {"rfrboost": text}}).encode())
