"""The commands: what they take, what they write, and what they say."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import failed, mixed_table, rfrboost, text_of, worked
from sklearn import metrics

import rfrboost as library
import rfrboost.inspection as inspection
from rfrboost._model.losses import loss_names
from rfrboost.cli.request import LossName
from rfrboost.inspection._report.trial import class_scores, splits

CLI = Path(library.__file__).with_name("cli")
COMMANDS = ("fit", "predict", "evaluate", "explain", "report", "compress", "info", "demo")
CLASS_SCORES = (
    "accuracy",
    "balanced accuracy",
    "F1",
    "AUC",
    "average precision",
    "log loss",
    "calibration error",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table of numbers and one of classes, and a model of each."""
    folder = tmp_path_factory.mktemp("cli")
    rows = mixed_table()
    (folder / "t.csv").write_bytes(text_of(rows))
    classes = [[*rows[0][:3], "kind"]] + [
        [*r[:3], "hi" if float(r[3]) > 0 else "lo"] for r in rows[1:]
    ]
    (folder / "c.csv").write_bytes(text_of(classes))
    worked(rfrboost("fit", folder / "t.csv", "--target", "y", "-o", folder / "t.rfrboost"))
    worked(rfrboost("fit", folder / "c.csv", "--target", "kind", "-o", folder / "c.rfrboost"))
    return folder


def test_the_package_itself_runs_the_command(tmp_path):
    command = [sys.executable, "-m", "rfrboost", "--version"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == f"rfrboost {library.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_example(command):
    ran = worked(rfrboost(command, "--help"))
    assert re.search(rf"Examples?\s+rfrboost {command}|rfrboost {command}", ran.out.decode())
    assert ran.said == ""


def test_without_a_command_the_help_says_where_to_start():
    text = worked(rfrboost()).out.decode()
    assert "Start here" in text
    assert all(command in text for command in COMMANDS)
    assert worked(rfrboost("--version")).out.decode() == f"rfrboost {library.__version__}\n"


@pytest.mark.parametrize(
    ("words", "piece"),
    [
        (["nothing"], "nothing"),
        (["fit", "t.csv"], "--target"),
        (["fit", "t.csv", "--target", "y", "--task", "ranking"], "ranking"),
        (["fit", "t.csv", "--target", "y", "--out", "-"], "--out"),
        (["fit", "t.csv", "--target", "y", "--out", "no/where/m"], "no/where"),
        (["evaluate", "t.csv", "--target", "y", "--folds", "1"], "--folds"),
        (["predict", "m", "t.csv", "--interval", "1.5"], "--interval"),
        (["predict", "m"], "TABLE"),
        (["fit", "t.csv", "--target", "y", "--unknown"], "--unknown"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(words, piece):
    ran = rfrboost(*words)
    failed(ran, piece, code=2)
    assert ran.said.count("\n") == 1


def test_predictions_are_those_of_the_library(place):
    frame = pd.read_csv(place / "t.csv", parse_dates=["day"])
    model = library.load(place / "t.rfrboost")
    printed = worked(rfrboost("predict", place / "t.rfrboost", place / "t.csv")).numbers
    np.testing.assert_array_equal(printed, model.predict(frame[["size", "town", "day"]]))


def test_probabilities_have_a_column_for_every_class(place):
    ran = worked(rfrboost("predict", place / "c.rfrboost", place / "c.csv", "--proba"))
    assert ran.out.decode().splitlines()[0] == "prediction,p_hi,p_lo"
    cells = [row.split(",") for row in ran.rows]
    assert all(abs(float(hi) + float(lo) - 1) < 1e-12 for _, hi, lo in cells)
    assert all((label == "hi") == (float(hi) > 0.5) for label, hi, _ in cells)


def test_models_of_several_labels_have_a_column_for_each(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    table = pd.DataFrame(X, columns=["a", "b"])
    model = library.RFRBoostClassifier(n_layers=1, random_state=0).fit(table, X > 0)
    model.save(tmp_path / "m")
    table.to_csv(tmp_path / "t.csv", index=False)
    ran = worked(rfrboost("predict", tmp_path / "m", tmp_path / "t.csv", "--proba"))
    assert ran.out.decode().splitlines()[0] == "prediction_0,prediction_1,p_0,p_1"
    cells = np.array([row.split(",") for row in ran.rows], dtype=float)
    np.testing.assert_array_equal(cells[:, :2], model.predict(table))
    np.testing.assert_allclose(cells[:, 2:], model.predict_proba(table))
    assert b"several labels per row" in worked(rfrboost("info", tmp_path / "m")).out


def test_probabilities_of_numbers_are_refused(place):
    failed(rfrboost("predict", place / "t.rfrboost", place / "t.csv", "--proba"), "classes", code=2)


@pytest.mark.skipif(
    not hasattr(library.RFRBoostRegressor, "predict_interval"),
    reason="the library has no intervals",
)
def test_intervals_are_those_of_the_library(tmp_path):
    table = tmp_path / "t.csv"
    table.write_bytes(text_of(mixed_table(120)))
    worked(rfrboost("fit", table, "--target", "y", "-o", tmp_path / "m"))
    ran = worked(rfrboost("predict", tmp_path / "m", table, "--interval", "0.8"))
    assert ran.out.decode().splitlines()[0] == "prediction,lower,upper"
    cells = np.array([[float(cell) for cell in row.split(",")] for row in ran.rows])
    assert (cells[:, 1] <= cells[:, 2]).all()


def test_a_model_that_cannot_give_intervals_says_so(tmp_path):
    model = library.RFNNRegressor(8, random_state=0).fit(np.arange(20.0)[:, None], np.arange(20.0))
    model.save(tmp_path / "m")
    ran = rfrboost("predict", tmp_path / "m", "-", "--interval", "0.9", stdin=b"a\n1\n")
    failed(ran, "interval")
    # Without names, columns count.
    assert len(worked(rfrboost("predict", tmp_path / "m", "-", stdin=b"a\n1\n2\n")).rows) == 2
    failed(rfrboost("predict", tmp_path / "m", "-", stdin=b"a,b\n1,2\n"), "2 columns")


def test_a_thing_that_does_not_predict_is_refused(tmp_path):
    features = library.SWIMFeatures(4, random_state=0)
    features.fit(np.arange(20.0)[:, None], np.arange(20.0)).save(tmp_path / "m")
    failed(rfrboost("predict", tmp_path / "m", "-", stdin=b"a\n1\n"), "SWIMFeatures")


def test_evaluate_shows_three_models_and_keeps_every_fold(place, tmp_path):
    words = ("evaluate", place / "t.csv", "--target", "y", "--folds", "3")
    text = worked(rfrboost(*words, "--out", tmp_path / "s.csv")).out.decode()
    for piece in ("rfrboost", "HistGradientBoosting", "ridge", "RMSE", "MAE", "R²", "seconds"):
        assert piece in text
    header, *rows = (tmp_path / "s.csv").read_text().splitlines()
    assert header == "model,fold,RMSE,MAE,R²,seconds"
    assert len(rows) == 9
    text = worked(rfrboost("evaluate", place / "c.csv", "--target", "kind", "-o", "-")).out.decode()
    assert text.splitlines()[0] == f"model,fold,{','.join(CLASS_SCORES)},seconds"


def test_scores_of_known_probabilities():
    classes, y = np.array(["a", "b"]), np.array(["a", "b", "b", "new"])
    probabilities = np.array([[0.8, 0.2], [0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    found = class_scores(classes, probabilities, y, np.array(["a", "b", "new"]))
    assert found["accuracy"] == 0.5
    expected = -np.log([0.8, 0.8, 0.4, 1e-15]).mean()
    assert found["log loss"] == pytest.approx(expected)
    # The probability of b, one row a bin: 0.2 and 0.5 where it is not, 0.8 and 0.4 where it is.
    assert found["calibration error"] == pytest.approx((0.2 + 0.5 + 0.2 + 0.6) / 4)


def test_scores_of_two_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 60, p=[0.8, 0.2])
    second = np.clip(0.2 + 0.4 * (y == "yes") + rng.normal(0, 0.3, 60), 0.01, 0.99)
    classes = np.array(["no", "yes"])
    found = class_scores(classes, np.column_stack([1 - second, second]), y, classes)
    chosen = np.where(second > 0.5, "yes", "no")
    assert found["F1"] == pytest.approx(metrics.f1_score(y, chosen, pos_label="yes"))
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(y == "yes", second))
    expected = metrics.average_precision_score(y == "yes", second)
    assert found["average precision"] == pytest.approx(expected)
    expected = metrics.balanced_accuracy_score(y, chosen)
    assert found["balanced accuracy"] == pytest.approx(expected)
    assert tuple(found) == CLASS_SCORES


def test_scores_of_several_classes_are_means_over_classes():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 90)
    p = rng.dirichlet(np.ones(3), 90) + 0.5 * np.eye(3)[y]
    p /= p.sum(axis=1, keepdims=True)
    found = class_scores(np.arange(3), p, y, np.arange(3))
    chosen = p.argmax(axis=1)
    assert found["F1"] == pytest.approx(metrics.f1_score(y, chosen, average="macro"))
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(y, p, multi_class="ovr"))
    expected = metrics.average_precision_score(np.eye(3)[y], p, average="macro")
    assert found["average precision"] == pytest.approx(expected)
    assert found["balanced accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, chosen))


def test_evaluate_says_which_class_its_scores_are_of(place, tmp_path):
    words = ("--target", "kind", "--folds", "2")
    ran = worked(rfrboost("evaluate", place / "c.csv", *words))
    assert "F1, AUC and average precision: for the class 'lo'." in ran.said
    text = ran.out.decode()
    assert all(name in text for name in (*CLASS_SCORES, "logistic regression", "seconds"))
    assert max(map(len, text.splitlines())) <= 80
    rows = [["x", "kind"]] + [[str(k), "abc"[k % 3]] for k in range(24)]
    ran = worked(rfrboost("evaluate", "-", *words, stdin=text_of(rows)))
    assert "one class against the others, mean over classes" in ran.said


def test_ids_are_kept_as_they_are_written(place, tmp_path):
    rows = mixed_table(6)
    table = [["id", *rows[0]]] + [[f"00{k}", *row] for k, row in enumerate(rows[1:])]
    words = ("predict", place / "t.rfrboost", "-", "--id", "id", "--id", "town")
    ran = worked(rfrboost(*words, stdin=text_of(table)))
    assert ran.out.decode().splitlines()[0] == "id,town,prediction"
    assert [row.split(",")[:2] for row in ran.rows] == [[row[0], row[2]] for row in table[1:]]
    plain = worked(rfrboost(*words[:3], stdin=text_of(rows))).numbers
    np.testing.assert_array_equal([float(row.split(",")[2]) for row in ran.rows], plain)
    worked(rfrboost(*words, "-o", tmp_path / "p.parquet", stdin=text_of(table)))
    assert list(pd.read_parquet(tmp_path / "p.parquet")["id"]) == [row[0] for row in table[1:]]
    none = worked(rfrboost(*words, stdin=text_of(table[:1])))
    assert none.out == b"id,town,prediction\n"


def test_ids_that_cannot_be_kept_are_refused(place):
    words = ("predict", place / "t.rfrboost", "-", "--id")
    table = text_of(mixed_table(6))
    failed(rfrboost(*words, "number", stdin=table), "no column number for --id", "size, town")
    other = table.replace(b"day,y", b"day,prediction")
    failed(rfrboost(*words, "prediction", stdin=other), "--id prediction")


def fitted(table: bytes, path: Path, *words: object) -> dict:
    """The parameters of a model that was fitted to a table."""
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, *words, stdin=table))
    return library.file_info(path)["parameters"]


def test_options_of_fit_reach_the_estimator(tmp_path):
    table = text_of(mixed_table(60))
    path = tmp_path / "m"
    assert fitted(table, path, "--bags", 3)["n_bags"] == 3
    assert fitted(table, path, "--loss", "huber")["loss"] == "huber"
    found = fitted(table, path, "--loss", "quantile", "--quantile", 0.9)
    assert (found["loss"], found["quantile"]) == ("quantile", 0.9)
    fitted(table, path, "--loss", "quantile", "--quantile", 0.1, "--quantile", 0.9)
    ran = worked(rfrboost("predict", path, "-", stdin=table))
    assert ran.out.decode().splitlines()[0] == "quantile_0.1,quantile_0.9"


@pytest.mark.parametrize("levels", [0.1, [0.1234561, 0.1234562]])
def test_quantiles_are_named_by_their_levels_in_full(levels, tmp_path):
    X = np.linspace(-1, 1, 60)[:, None]
    settings = {"loss": "quantile", "quantile": levels, "n_features": 8}
    model = library.RFRBoostRegressor(1, **settings).fit(X, X if np.ndim(levels) == 0 else X[:, 0])
    model.save(tmp_path / "m")
    ran = worked(rfrboost("predict", tmp_path / "m", "-", stdin=b"x0\n0.5\n"))
    names = [f"quantile_{level}" for level in np.atleast_1d(levels)]
    assert ran.out.decode().splitlines()[0] == ",".join(names)


def test_every_loss_of_the_library_has_its_name():
    assert {str(name) for name in LossName} == loss_names()


def test_weights_are_those_of_the_library(tmp_path):
    rows = [["x", "w", "y"]] + [[str(k), str(k % 3), str((k % 7) * 1.5)] for k in range(24)]
    rows[5][2] = ""  # a row without a label, whose weight is left out with it
    fitted(text_of(rows), tmp_path / "m", "--weight", "w")
    x, w, y = np.array([row for row in rows[1:] if row[2]], dtype=float).T
    frame = pd.DataFrame({"x": x})
    right = library.RFRBoostRegressor(random_state=0).fit(frame, y, w).predict(frame)
    printed = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(rows))).numbers
    np.testing.assert_allclose(np.delete(printed, 4), right, rtol=1e-9)


def test_groups_and_categories_are_those_of_the_library(tmp_path):
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 12, 80)
    code = rng.integers(0, 4, 80)
    size = rng.standard_normal(80)
    y = size + np.array([0.0, 3.0, -2.0, 1.0])[code]
    cells = zip(shop, code, size.tolist(), y.tolist(), strict=True)
    rows = [["shop", "code", "size", "y"]]
    rows += [[f"s{a}", f"0{b}", repr(c), repr(d)] for a, b, c, d in cells]
    rows[7][3] = ""  # a row without a label, whose group is left out with it
    words = ("--groups", "shop", "--categorical", "code")
    found = fitted(text_of(rows), tmp_path / "m", *words)
    assert found["categorical_features"] == ["code"]
    kept = np.arange(80) != 6
    frame = pd.DataFrame({"code": [f"0{b}" for b in code], "size": size})
    model = library.RFRBoostRegressor(random_state=0, categorical_features=["code"])
    model.fit(frame[kept], y[kept], groups=[f"s{a}" for a in shop[kept]])
    printed = worked(rfrboost("predict", tmp_path / "m", "-", stdin=text_of(rows))).numbers
    np.testing.assert_allclose(printed, model.predict(frame), rtol=1e-9)
    said = worked(rfrboost("info", tmp_path / "m")).out.decode()
    assert "2 (1 numeric, 1 categorical): code, size" in said


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_a_model_that_has_learnt_nothing_says_so(task, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(100)
    y = rng.permutation(np.repeat([0, 1], 50))
    for labels, nothing in ((y, True), ((x > 0).astype(int), False)):
        rows = [["x", "y"]] + [[repr(float(a)), str(b)] for a, b in zip(x, labels, strict=True)]
        words = ("fit", "-", "--target", "y", "--task", task, "-o", tmp_path / "m")
        ran = worked(rfrboost(*words, stdin=text_of(rows)))
        assert ("hardly anything about 'y'" in ran.said) == nothing


@pytest.mark.parametrize(
    ("words", "pieces", "code"),
    [
        (["--groups", "y"], ["--groups y", "target"], 2),
        (["--groups", "none"], ["no column none"], 1),
        (["--groups", "size"], ["--groups size", "without a group"], 1),
        (["--categorical", "y"], ["--categorical y", "not an input"], 2),
        (["--categorical", "town", "--drop", "town"], ["--categorical town", "not an input"], 2),
        (["--loss", "hinge"], ["'hinge'", "huber"], 2),
        (["--quantile", "0.9"], ["--loss quantile"], 2),
        (["--loss", "huber", "--quantile", "0.9"], ["--loss quantile"], 2),
        (["--loss", "quantile", "--quantile", "1.5"], ["quantile", "1.5"], 1),
        (["--bags", "0"], ["--bags"], 2),
        (["--task", "classification", "--loss", "huber"], ["--loss", "regression"], 2),
        (["--weight", "town"], ["--weight town", "numbers"], 1),
        (["--weight", "size"], ["--weight size", "without a weight"], 1),
        (["--weight", "y"], ["--weight y", "target"], 2),
        (["--weight", "none"], ["no column none"], 1),
        (["--max-seconds", "0"], ["--max-seconds", "more than 0 seconds"], 2),
        (["--max-seconds", "nan"], ["--max-seconds", "more than 0 seconds"], 2),
        (["--decimal", "dot"], ["--decimal", "'dot'"], 2),
        (["--separator", "::"], ["--separator", "'::'"], 2),
    ],
)
def test_options_that_do_not_fit_together_are_one_sentence(words, pieces, code, tmp_path):
    table = text_of(mixed_table(36))
    ran = rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", *words, stdin=table)
    failed(ran, *pieces, code=code)
    assert list(tmp_path.iterdir()) == []


def test_explain_finds_the_columns_that_matter(place, tmp_path):
    text = worked(rfrboost("explain", place / "t.rfrboost", place / "t.csv")).out.decode()
    assert re.search(r"size\s+\d\.\d+\s+█+", text)
    words = ("explain", place / "t.rfrboost", place / "t.csv", "--rows", "20")
    worked(rfrboost(*words, "--out", tmp_path / "e.csv"))
    header, *rows = (tmp_path / "e.csv").read_text().splitlines()
    assert header == "column,share"
    assert rows[0].startswith("size,")
    assert sorted(row.split(",")[0] for row in rows) == ["day", "size", "town"]


def test_report_writes_one_page_and_finds_the_target(place, tmp_path):
    words = ("report", place / "t.rfrboost", place / "t.csv", "--folds", "2")
    worked(rfrboost(*words, "-t", "y", "-o", tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "A model of y" in page
    failed(rfrboost(*words, "-t", "nothing", "-o", tmp_path / "s.html"), "no column nothing")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_evaluate_draws_what_it_scored(place, tmp_path):
    words = ("evaluate", place / "t.csv", "-t", "y", "--folds", "2")
    worked(rfrboost(*words, "--plots", tmp_path / "figures"))
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"scores.png", "predictions.png", "importances.png"}
    (tmp_path / "file").touch()
    failed(rfrboost(*words, "--plots", tmp_path / "file"), "is a file", code=2)


def test_info_says_what_is_inside_and_loads_nothing(place, monkeypatch):
    monkeypatch.setattr("rfrboost._files.io.read_document", None)
    text = worked(rfrboost("info", place / "c.rfrboost")).out.decode()
    for piece in (
        "RFRBoostClassifier",
        "size, town, day",
        "1 numeric, 1 date, 1 categorical",
        "training rows",
        "hi, lo",
    ):
        assert piece in text


def test_evaluate_takes_weights_groups_categories_and_a_loss(tmp_path):
    """Rows of weight zero, with absurd labels, change neither fits nor scores."""
    rng = np.random.default_rng(0)
    n = 180
    x = rng.normal(size=n)
    light = np.arange(n) % 3 == 0
    frame = pd.DataFrame({"x": x, "code": rng.integers(0, 3, n), "shop": np.arange(n) // 15})
    frame["w"] = np.where(light, 0.0, 1.0)
    frame["y"] = np.where(light, 1e6, x + frame["code"].map({0: 0.0, 1: 5.0, 2: -3.0}))
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("evaluate", tmp_path / "t.csv", "-t", "y", "--folds", "2", "-o", "-")
    words += ("--weight", "w", "--groups", "shop", "--categorical", "code", "--loss", "huber")
    rows = worked(rfrboost(*words)).rows
    errors = [float(row.split(",")[2]) for row in rows]
    assert len(errors) == 6
    assert max(errors) < 10
    failed(rfrboost(*words[:-2], "--folds", "13"), "12 groups", "13 folds")
    failed(rfrboost(*words[:-2], "--loss", "huber", "--task", "classification"), "--loss", code=2)


def test_a_group_is_in_one_fold_and_weights_count_in_scores():
    y = np.arange(40.0)
    groups = np.repeat(np.arange(8), 5)
    for fitted_on, held_out in splits(y, "regression", 4, 0, groups):
        assert not set(groups[fitted_on]) & set(groups[held_out])
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 30)
    second = np.clip(0.3 + 0.4 * label + 0.3 * rng.normal(size=30), 0.01, 0.99)
    p = np.column_stack([1 - second, second])
    w = rng.integers(1, 4, 30)
    weighted = class_scores(np.arange(2), p, label, np.arange(2), w.astype(float))
    repeated = class_scores(np.arange(2), p.repeat(w, 0), label.repeat(w), np.arange(2))
    for name in set(weighted) - {"calibration error"}:
        assert weighted[name] == pytest.approx(repeated[name])


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_evaluate_takes_what_is_irregular(kind, tmp_path):
    """Columns without anything in them, categories seen once, dates, durations, rare classes."""
    rng = np.random.default_rng(0)
    n = 40
    frame = pd.DataFrame(
        {
            "nothing": np.full(n, np.nan),
            "one": np.ones(n),
            "id": [f"row {k}" for k in range(n)],
            "day": pd.date_range("2024-01-01", periods=n, tz="Europe/Paris"),
            "span": pd.to_timedelta(rng.integers(0, 99, n), unit="h"),
            "code": pd.Categorical(rng.integers(0, 3, n)),
            "flag": rng.random(n) < 0.5,
            "x": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "y": rng.normal(size=n)
            if kind == "numbers"
            else ["a", "b"] * (n // 2 - 1) + ["c", "d"],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    words = ("evaluate", tmp_path / "t.parquet", "--target", "y", "--folds", "2", "-o", "-")
    rows = worked(rfrboost(*words)).rows
    assert len(rows) == 6
    assert all(np.isfinite(float(cell)) for row in rows for cell in row.split(",")[1:])


@pytest.mark.parametrize("package", ["typer", "rich", "pandas", "pyarrow", "safetensors"])
def test_without_the_extra_one_sentence_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    ran = rfrboost("--version")
    failed(ran, f"needs {package}", "pip install 'rfrboost[cli]'")
    assert ran.said.count("\n") == 1


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.stem)
def test_files_are_small_and_use_public_names_only(path):
    source = path.read_text(encoding="utf-8")
    # The list of all commands with their help is one idea, and longer.
    assert source.count("\n") <= (400 if path.stem == "app" else 300)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            assert node.end_lineno - node.lineno - doc.count("\n") <= 55, node.name
        if isinstance(node, ast.ImportFrom) and node.module.startswith("rfrboost"):
            names = {alias.name for alias in node.names}
            inside = node.module.startswith("rfrboost.cli")
            public = {"rfrboost": library, "rfrboost.inspection": inspection}
            # Atomic writing and the report's cross-validation are the private things that commands
            # share with the library.
            shared = node.module.startswith("rfrboost.inspection._report")
            if not inside and not shared and names != {"atomic_stream"}:
                assert names <= set(public[node.module].__all__)
