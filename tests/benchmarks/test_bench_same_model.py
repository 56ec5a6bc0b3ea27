"""The benchmark of one model from three sources sees differences, and parameters that are lost."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import same_model
from benchmarks.same_model import SET, generated, inputs, kept, measured, page

pytest.importorskip("distributed")


def test_the_same_model_from_every_source(monkeypatch):
    monkeypatch.setattr(same_model, "PART_ROWS", 130)
    monkeypatch.setattr(same_model, "TEST_ROWS", 120)
    rows = pd.DataFrame(measured(300, "classification", is_set=True))
    assert list(rows["source"]) == ["arrays", "row blocks", "Dask"]
    assert (rows["difference"] < 1e-6).all()
    assert (rows["has"] == 4).all()
    assert (rows["kept"] == "yes").all()
    assert "| 4 of 4 | yes |" in page(rows.assign(code="x"))


def test_a_model_that_lost_what_was_set_is_seen():
    frame = generated(300, "regression")
    X = inputs(frame)
    y = frame["target"]
    model = same_model.RFRBoostRegressor(random_state=0, **SET)
    assert kept(model.fit(X, y), X) == "yes"
    assert kept(model.set_params(n_bags=2).fit(X, y), X) == "no"
    assert kept(model.set_params(n_bags=3, features=("bumps",)).fit(X, y), X) == "no"


def test_tables_have_missing_values_categories_and_weights():
    frame = generated(500, "classification")
    assert frame.isna().any().any()
    assert list(inputs(frame).select_dtypes("category")) == ["city", "kind"]
    assert set(frame["target"]) == {0.0, 1.0, 2.0}
    assert np.ptp(frame["weight"]) > 1
