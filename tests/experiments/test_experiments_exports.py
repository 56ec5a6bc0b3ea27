"""``exports``: saved models and ONNX models compared with the fitted models."""

import json

import numpy as np
import pandas as pd
from experiment_runs import ENERGY, untraceable
from threadpoolctl import threadpool_info

from experiments.__main__ import main
from experiments.commands import exports
from experiments.commands.exports import LOADED_ON, Exported, compared, difference, parts, report
from experiments.data.tables import Table


def frame_of(n=160):
    """Numbers, large ones too, missing values, levels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue"], n)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x),
            "year": 2000 + rng.integers(0, 20, n),
            "colour": pd.Categorical(colour),
            "target": x + (colour == "red") + 0.1 * rng.normal(size=n),
        }
    )


def words(folder, *more):
    places = ["--data", str(folder / "data"), "--out", str(folder / "out")]
    return ["exports", *places, "--tables", str(ENERGY), "--rows", "100", *more]


def test_the_command_compares_stores_and_continues(made_up, capsys, monkeypatch):
    monkeypatch.setattr(exports, "load_table", lambda table, data: frame_of())
    assert main(words(made_up)) == 0
    text = capsys.readouterr().out
    folder = made_up / "out" / "rows-100"
    assert untraceable(folder) == []
    assert (folder / "exports.md").read_text(encoding="utf-8") + "\n" == text
    stored = json.loads((folder / f"{ENERGY}.json").read_text(encoding="utf-8"))
    assert stored["loaded_equal"]
    assert stored["loaded"] == 0
    assert 0 < stored["onnx"] <= 1e-5
    assert stored["model_bytes"] > 1000
    assert (stored["rows"], stored["other_rows"], stored["columns"]) == (100, 60, 3)
    assert "Loaded: equal to the bit on 1 of 1; largest difference 0." in text
    assert "ONNX: within 1e-05 on 1 of 1" in text
    monkeypatch.setattr(exports, "compared", None)
    assert main(words(made_up)) == 0
    assert capsys.readouterr().out == text


def test_classes_are_compared_by_their_probabilities():
    frame = frame_of()
    frame["target"] = pd.Categorical(np.where(frame["target"] > 0.3, "up", "down"))
    found = compared(frame, "classification", 100)
    assert (found.classes, found.loaded_equal) == (2, True)
    assert found.onnx <= 1e-5


def test_another_prediction_is_not_called_equal(monkeypatch):
    def nearly(path, X):
        predicted = exports.loaded_predictions(path, X)
        predicted[7] += predicted.std() * 1e-13
        return predicted

    monkeypatch.setattr(exports, "in_new_process", nearly)
    found = compared(frame_of(), "regression", 100)
    assert not found.loaded_equal
    assert 0 < found.loaded < 1e-12


def test_the_loaded_model_has_other_threads(monkeypatch):
    seen = []

    def threads(model, X):
        seen.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")

    monkeypatch.setattr(exports, "predictions", threads)
    monkeypatch.setattr("rfrboost.load", lambda path: None)
    exports.loaded_predictions(None, None)
    assert seen
    assert set(seen) == {LOADED_ON}


def test_dates_are_refused_and_what_fails_is_listed(made_up, capsys, monkeypatch):
    dated = frame_of().assign(year=pd.date_range("2020-01-01", periods=160))[
        ["x", "year", "target"]
    ]
    monkeypatch.setattr(exports, "load_table", lambda table, data: dated)
    assert main(words(made_up)) == 0
    text = capsys.readouterr().out
    assert "Refused: energy_efficiency: Column 'year' holds dates" in text
    assert "| equal | refused | – |" in text
    wrong = frame_of().assign(target=np.nan)
    monkeypatch.setattr(exports, "load_table", lambda table, data: wrong)
    assert main(words(made_up, "--rows", "99")) == 1
    assert "energy_efficiency failed: ValueError" in capsys.readouterr().out


def test_units_are_spreads_of_numbers_and_probabilities_themselves():
    here = np.array([0.0, 4.0])
    assert difference(np.array([0.0, 5.0]), here, here) == 0.5
    assert difference(here + 1, here, np.ones(2)) == 1
    sure = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert difference(sure + 0.25, sure, sure) == 0.25
    single = np.array([[0.5], [4.0]], dtype=np.float32)
    assert difference(single, here, here) == 0.25


def test_short_tables_are_split_and_no_row_is_in_both_parts():
    frame = pd.DataFrame({"x": np.arange(90)})
    training, others = parts(frame, 100)
    assert sorted([*training["x"], *others["x"]]) == list(range(90))
    assert len(training) == 60
    training, others = parts(pd.DataFrame({"x": np.arange(5000)}), 100)
    assert (len(training), len(others)) == (100, 1000)
    assert not set(training["x"]) & set(others["x"])


def test_the_report_counts_and_names_the_worst():
    tables = [Table(k, name, "regression", 9, 2) for k, name in enumerate(["one", "two", "three"])]
    found = {
        0: Exported(60, 30, 2, 0, 2_000_000, True, 0.0, 1e-3, 2e-6, 3_000_000),
        1: Exported(60, 30, 2, 0, 4_000_000, False, 3e-13, 1e-7, 4e-5, 5_000_000),
    }
    text = report(tables, found, {"three": "It is empty."})
    assert "2 of 3 tables were exported." in text
    assert "three failed: It is empty." in text
    assert "equal to the bit on 1 of 2; largest difference 3.0e-13 (two)." in text
    assert "within 1e-05 on 1 of 2; largest difference 4.0e-05 (two), median 2.1e-05." in text
    assert "Beyond 1e-05: two." in text
    assert "Model files: 3.00 MB in the median, 4.00 at most." in text
    assert "| 1 two | 60 | 30 | 2 | – | 3.0e-13 | 4.0e-05 | 1.0e-07 | 4000 | 5000 |" in text


def test_too_few_rows_are_refused(made_up, capsys):
    assert main(words(made_up, "--rows", "10")) == 2
    assert "--rows must be at least 50" in capsys.readouterr().err
