"""What loading costs: files made to take time or memory are refused before they do."""

import os
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hostile_files import fitted, parts, sentence, with_table, write
from model_zoo import regression
from numpy.random import default_rng

import rfrboost
from rfrboost import ModelFileError, RFRBoostRegressor, SWIMFeatures
from rfrboost._files import container
from rfrboost._tables.fit import fit_encoder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rfrboost"


def processor_seconds(action):
    began = time.process_time()
    action()
    return time.process_time() - began


def test_an_array_of_many_axes_is_refused_quickly(path):
    """The product of 90,000 large numbers alone takes 12 s."""
    model, _ = fitted("features")
    model.save(path)
    document, _ = parts(path)
    entry = {"dtype": "F64", "shape": [99_999_999_999_999_999] * 90_000, "data_offsets": [0, 8]}
    path.write_bytes(with_table(document, {"a": entry}, bytes(8)))
    assert processor_seconds(lambda: sentence(path)) < 4


def test_many_values_below_a_long_key_are_refused_quickly(path):
    """Each value used to have a name of its own with the whole key in it."""
    model, _ = fitted("features")
    model.save(path)
    document, arrays = parts(path)
    document["parameters"]["k" * 1_000_000] = [1] * 500_000
    write(path, document, arrays)
    assert processor_seconds(lambda: sentence(path)) < 3


RECORD = {"layer": 1, "loss": 0.0, "step_length": 0.0, "gradient_norm": 0.0, "seconds": 0.0}
#: entries of a header: where they are, and what a share of as many as are read looks like
COSTLY = {
    "lists": ("parameters", "n_features", lambda share: [[]] * (260_000 // share)),
    "numbers": ("parameters", "n_features", lambda share: [0.5] * (520_000 // share)),
    "keys": ("parameters", "n_features", lambda share: words(share)),
    "names": ("fitted", "feature_names_in", lambda share: [*words(share)]),
    "records": ("fitted", "history", lambda share: [RECORD] * (85_000 // share)),
    "text": ("parameters", "features", lambda share: "x" * (15 * 2**20 // share)),
}


def words(share):
    return {f"{k:x}": 0 for k in range(520_000 // share)}


@pytest.mark.parametrize("name", COSTLY)
def test_the_costliest_headers_take_bounded_time_and_memory(path, name):
    """Those of 16 MB took up to 8 s and 694 MB; here they are a quarter, and less, of as many."""
    model, _ = fitted("quantile")
    model.save(path)
    document, arrays = parts(path)
    part, key, entries = COSTLY[name]
    document[part][key] = entries(share=4)
    write(path, document, arrays)
    # A quarter of a second on an idle machine, and some more for one that is busy.
    assert processor_seconds(lambda: sentence(path)) < 1.5
    # To follow every allocation takes ten times as long: a sixteenth, in a sixteenth of 256 MB.
    document[part][key] = entries(share=16)
    write(path, document, arrays)
    tracemalloc.start()
    try:
        with suppress(ModelFileError):  # as few as these are let pass as a parameter
            rfrboost.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**28 / 16


def test_many_arrays_take_bounded_time(path):
    model, _ = fitted("features")
    model.save(path)
    document, _ = parts(path)
    entry = {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}
    path.write_bytes(with_table(document, {f"{k:x}": entry for k in range(37_000)}))
    # Half of as many as a header holds. They take half a second, or more on a busy machine; if each
    # were compared with all others, it would be more than 20.
    assert processor_seconds(lambda: sentence(path)) < 5


@pytest.mark.parametrize("entry", [[0], [[]], [""], [None], [{}]], ids=str)
def test_more_values_than_a_model_has_are_refused_at_once(path, entry):
    model, _ = fitted("features")
    model.save(path)
    document, arrays = parts(path)
    document["parameters"]["n_features"] = entry * 2**20
    write(path, document, arrays)
    tracemalloc.start()
    try:
        assert "more than 524288 values" in sentence(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * path.stat().st_size


def test_texts_with_more_values_than_a_header_may_hold_are_arrays(path, monkeypatch):
    """Commas in names count as values; as an array they do not."""
    X, y = regression(20, 300)
    names = [f"column {j}, {'x' * 20}" for j in range(300)]
    model = SWIMFeatures(4, random_state=0).fit(pd.DataFrame(X, columns=names), y)
    monkeypatch.setattr(container, "MOST_VALUES", 500)
    model.save(path)
    assert rfrboost.file_info(path)["format"] == 2
    assert rfrboost.load(path).feature_names_in_.tolist() == names


def test_loading_takes_little_more_memory_than_the_file(path):
    """Arrays are held once; the file is 24 MB."""
    X, y = regression(60, 1000)
    model = SWIMFeatures(3000, random_state=0).fit(X, y)
    model.save(path)
    tracemalloc.start()
    try:
        rfrboost.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * path.stat().st_size


def test_more_names_than_a_header_holds_are_refused_when_saving(path):
    """Model files hold lists of text of any length, but no text of this length by itself."""
    X, y = regression(20, 3)
    model = RFRBoostRegressor(0).fit(X, y)
    model.set_params(activation="tanh" * 2**22)
    with pytest.raises(ModelFileError, match="need a larger header"):
        model.save(path)
    assert not path.exists()


def many_levels():
    """A model with 10⁴ levels of 2,000 characters in one column, and a table to predict.

    The encoder is that of 10,000 rows of weight 3; the network behind it is fitted on fewer rows.
    """
    rng = default_rng(0)
    levels = [f"{k:02000d}" for k in range(10_000)]
    table = pd.DataFrame({"x": rng.normal(size=10_000), "code": levels})
    y = table["x"].to_numpy() + np.arange(10_000) % 7
    encoder, _ = fit_encoder(table, y, np.full(10_000, 3.0), "regression", default_rng(0))
    few = pd.DataFrame({"x": table["x"][:200], "code": levels[:50] * 4})
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(few, y[:200])
    fitted = model._fitted
    model._fitted = replace(fitted, inputs=replace(fitted.inputs, encoder=encoder))
    return model, table[::997]


def test_levels_that_no_header_holds_are_saved_and_loaded(path):
    model, table = many_levels()
    expected = model.predict(table)
    model.save(path)
    assert rfrboost.file_info(path)["format"] == 2
    loaded = rfrboost.load(path)
    np.testing.assert_array_equal(loaded.predict(table), expected)
    assert loaded._fitted.inputs.encoder.columns[1].levels[7] == f"{7:02000d}"
    assert rfrboost.file_info(path)["fitted"]["encoder"]["columns"][1]["levels"][7][-1] == "7"


def test_labels_too_long_for_any_memory(path):
    model, _ = fitted("classifier")
    model.save(path)
    document, arrays = parts(path)
    values = ["x" * 2**20, *map(str, range(2**16))]
    document["fitted"]["classes"] = {"type": "str", "values": values}
    write(path, document, arrays)
    assert "too long" in sentence(path)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(path):
    with open(path, "wb") as stream:
        stream.truncate(2**40)  # takes no room on the disk
    assert "not a model file" in sentence(path)
    model, _ = fitted("features")
    model.save(path)
    os.truncate(path, 2**40)
    assert "shorter or longer" in sentence(path)
