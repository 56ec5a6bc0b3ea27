"""ONNX models give the predictions of the models they were made of."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from model_zoo import CLASSIFIERS, REGRESSORS, classification, regression
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomTreesEmbedding
from small_forests import codes

import rfrboost
from rfrboost import Loss, RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor
from rfrboost._model.forest import Forest

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
ROWS = 1000
CLOSE = 1e-5


def session(model, dtype="float32"):
    """The model in onnxruntime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = model.to_onnx(dtype=dtype).SerializeToString()
    return onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])


def check(model, X, y, dtype="float32"):
    """onnxruntime's answers are the model's, in units of y's deviation."""
    answers = session(model, dtype).run(None, model.onnx_inputs(X, dtype=dtype))
    if is_classifier(model):
        label, probabilities = answers
        expected = model.predict_proba(X)
        np.testing.assert_allclose(probabilities, expected, atol=CLOSE, rtol=0)
        top = np.sort(expected, axis=1)
        sure = top[:, -1] - top[:, -2] > 2 * CLOSE
        assert label.shape == (len(X),)
        assert sure.mean() > 0.9
        assert np.array_equal(label[sure], model.predict(X)[sure])
    else:
        expected = model.predict(X).reshape(len(X), -1)
        assert answers[0].shape == expected.shape
        np.testing.assert_allclose(answers[0], expected, atol=CLOSE * np.std(y), rtol=0)


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_single_regressor(name):
    X, y = regression(outputs=2)
    new, _ = regression(ROWS, seed=1)
    check(clone(REGRESSORS[name]).fit(X, y), new.astype(np.float32), y)


@pytest.mark.parametrize("automatic", [False, True])
def test_several_labels_per_row(automatic):
    X, y = regression(outputs=3)
    automatic_model = RFRBoostClassifier(n_bags=2, random_state=0)
    model = automatic_model if automatic else clone(CLASSIFIERS["rfrboost"])
    model.fit(X, y > 0.2)
    new = regression(ROWS, seed=1)[0].astype(np.float32)
    label, probabilities = session(model).run(None, model.onnx_inputs(new))
    expected = model.predict_proba(new)
    np.testing.assert_allclose(probabilities, expected, atol=CLOSE, rtol=0)
    sure = np.abs(expected - 0.5) > CLOSE
    assert sure.mean() > 0.9
    assert label.dtype == np.int64
    np.testing.assert_array_equal(label[sure], model.predict(new)[sure])


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_single_classifier(name, classes):
    X, y = classification(classes=classes)
    new, _ = regression(ROWS, seed=1)
    check(clone(CLASSIFIERS[name]).fit(X, y), new.astype(np.float32), y)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "sin", "cos"])
@pytest.mark.parametrize("n", [60, 3000])
def test_every_activation_in_both_precisions(activation, n):
    X, y = regression(n)
    model = RFNNRegressor(400, activation=activation, random_state=0).fit(X, y)
    check(model, X[:ROWS].astype(np.float32), y)


def test_every_operator_has_a_name_of_its_own():
    """Some versions of onnxruntime refuse a model after fusing operators that have none."""
    X, y = regression(300)
    nodes = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y).to_onnx().graph.node
    names = {node.name for node in nodes}
    assert len(names) == len(nodes)
    assert "" not in names


def test_every_link_is_written():
    from rfrboost._export.onnx.model import LINKS
    from rfrboost._model import loss

    assert set(LINKS) == set(loss.LINKS)


def test_counts_and_quantiles():
    X, y = regression(300)
    counts = np.random.default_rng(0).poisson(np.exp(y))
    new = regression(ROWS, seed=1)[0].astype(np.float32)
    check(RFRBoostRegressor(2, loss="poisson", random_state=0).fit(X, counts), new, counts)
    for level in (0.9, (0.1, 0.5, 0.9)):
        quantile = RFRBoostRegressor(loss="quantile", quantile=level, n_bags=2, random_state=0)
        check(quantile.fit(X, y), new, y)


@pytest.mark.parametrize("features", ["swim", "sparse", ("bumps",), ("swim", "sparse", "bumps")])
def test_every_family_of_the_automatic_model(features):
    X, y = regression(400, columns=6)
    X[:, 5] = X[:, 5] > 0
    new = regression(ROWS, columns=6, seed=1)[0].astype(np.float32)
    new[:, 5] = new[:, 5] > 0
    new[:50] = X[:50]  # centres of bumps, where distances are 0
    check(RFRBoostRegressor(features=features, n_bags=2, random_state=0).fit(X, y), new, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_deep_trees(dtype):
    X, y = codes(500, 1)
    labels = np.digitize(y, [-0.5, 0.5])
    for model, targets in (
        (RFRBoostRegressor(features=("swim", "trees"), n_bags=2, random_state=0), y),
        (RFRBoostClassifier(features=("swim", "trees"), n_bags=2, random_state=0), labels),
    ):
        model.fit(X, targets)
        assert isinstance(model.network_.layers[-1].features.from_x, Forest)
        check(model, X, targets, dtype)


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_targets_without_noise_whose_coefficients_are_large(mix):
    X = np.random.default_rng(0).integers(0, 4, (500, 3)).astype(np.float32)
    y = np.sin(X @ [1.0, 2.0, 3.0]) + X[:, 0] * X[:, 1]
    model = RFRBoostRegressor(features=("bumps",), n_bags=2, random_state=0).fit(X, y)
    bumps = model.network_.layers[-1].features.from_x
    object.__setattr__(bumps, "mix", mix)
    # The prediction form was made of the bumps as they were fitted.
    del model.network_.__dict__["prediction"]
    check(model, X, y)


def table(n, seed=0):
    """Columns of every kind but dates, with missing values, heavy tails and a constant."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    city = rng.integers(0, 30, n)
    frame = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, x).astype(np.float32),
            "money": np.exp(3 * rng.normal(size=n)).astype(np.float32),
            "label": rng.integers(0, 5, n),
            "flag": rng.random(n) < 0.3,
            "always": 1.5,
            "colour": pd.Series(rng.choice(["red", "green", "blue"], n)).where(rng.random(n) > 0.1),
            "city": [f"city {i}" for i in city],
            "grade": pd.Categorical(rng.integers(1, 4, n)),
        }
    )
    y = x + (frame.colour == "red") + np.sin(city) + 0.1 * rng.normal(size=n)
    return frame, y.to_numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_of_every_kind_of_column_but_dates(dtype):
    X, y = table(500)
    new, _ = table(ROWS, seed=1)
    new.loc[:20, "city"] = "nowhere"
    new.loc[21:40, "city"] = None
    new.loc[:20, "colour"] = "mauve"
    regressor = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    check(regressor, new, y, dtype)
    check(
        RFRBoostClassifier(n_bags=2, random_state=0).fit(X, np.digitize(y, [0, 1])), new, y, dtype
    )
    names = {i.name for i in session(regressor).get_inputs()}
    assert names == set(X.columns) - {"always"}
    polars = session(regressor).run(None, regressor.onnx_inputs(pl.from_pandas(new)))
    assert np.array_equal(polars, session(regressor).run(None, regressor.onnx_inputs(new)))


def test_arrays_with_missing_values_are_one_input():
    X, y = regression(300)
    X[::7, 1] = np.nan
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    (matrix,) = session(model).get_inputs()
    assert (matrix.name, matrix.type, matrix.shape[1]) == ("X", "tensor(float)", 4)
    check(model, X.astype(np.float32), y)
    objects = np.column_stack([X.astype(object), np.where(X[:, 0] > 0, "up", "down")])
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(objects, y)
    assert [i.name for i in session(model).get_inputs()] == ["x0", "x1", "x2", "x3", "x4"]
    check(model, objects, y, "float64")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([3, 7, 9], "int64"),
        ([1.0, 2.0, 4.0], "double"),
        (["a", "b", "ü"], "string"),
        ([False, True], "bool"),
    ],
)
def test_labels_keep_their_type(labels, kind):
    X, y = classification(classes=len(labels))
    codes = np.unique(y, return_inverse=True)[1]
    model = RFRBoostClassifier(2, n_features=20, random_state=0).fit(X, np.array(labels)[codes])
    assert session(model).get_outputs()[0].type == f"tensor({kind})"
    check(model, X.astype(np.float32), y)


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("n_layers", [2, "auto"])
def test_large_offsets_of_targets_cost_no_digits(n_layers, offset):
    X, y = regression(200)
    X = X.astype(np.float32)
    y = offset + np.sin(X[:, 0].astype(float))
    model = RFRBoostRegressor(n_layers, n_features=20, random_state=0)
    if n_layers == "auto":
        model.set_params(n_bags=2)
    model.fit(X, y)
    for dtype in ("float32", "float64"):
        check(model, X, y, dtype)
        output = session(model, dtype).get_outputs()[0]
        wide = dtype == "float64" or offset > 0
        assert output.type == f"tensor({'double' if wide else 'float'})"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-40, 1e38, 1e150])
def test_targets_beyond_single_precision_are_finite(size, dtype):
    X, y = regression(120)
    X = X.astype(np.float32)
    check(RFRBoostRegressor(2, n_features=20, random_state=0).fit(X, size * y), X, size * y, dtype)


def test_large_counts_keep_their_digits():
    X, y = regression(200)
    X = X.astype(np.float32)
    for size in (1.0, 1e8):
        counts = np.round(size * np.exp(y))
        model = RFRBoostRegressor(2, n_features=20, loss="poisson", random_state=0).fit(X, counts)
        check(model, X, counts)


def test_probabilities_have_the_type_that_was_asked_for():
    X, y = classification()
    model = RFRBoostClassifier(1, n_features=20, random_state=0).fit(X, y)
    for dtype, kind in (("float32", "float"), ("float64", "double")):
        assert session(model, dtype).get_outputs()[1].type == f"tensor({kind})"


@pytest.mark.parametrize("largest", [2**63 - 1, 2**63, 2**64 - 1])
def test_large_labels_do_not_wrap(largest):
    X, y = classification(classes=2)
    labels = np.array([largest, 3], np.uint64)[(y == "class 0").astype(int)]
    model = RFRBoostClassifier(1, n_features=20, random_state=0).fit(X, labels)
    check(model, X.astype(np.float32), labels)


@pytest.mark.parametrize("n_layers", [1, "auto"])
@pytest.mark.parametrize("names", [("", "b"), ("", "(no name)"), ("N", "X"), ("a\0b", "variable")])
def test_odd_names_of_columns(names, n_layers):
    X, y = regression(80, columns=2)
    frame = pd.DataFrame(X.astype(np.float32), columns=list(names))
    model = RFRBoostRegressor(n_layers, n_features=10, random_state=0).fit(frame, y)
    check(model, frame, y)
    fed = {i.name for i in session(model).get_inputs()}
    assert len(fed) == 2
    assert set(names) - {""} <= fed


def test_names_that_no_file_can_hold_are_refused():
    X, y = regression(80, columns=2)
    frame = pd.DataFrame(X, columns=pd.Index(["a", "\ud800"], dtype=object))
    model = RFRBoostRegressor(1, n_features=10, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="not valid Unicode"):
        model.to_onnx()


def test_levels_may_be_all_the_texts_for_missing_values():
    from rfrboost._export.onnx.inputs import MISSING_TEXTS

    rng = np.random.default_rng(0)
    kinds = rng.choice(np.array([*MISSING_TEXTS, "(hole) 2", None], dtype=object), 300)
    X = pd.DataFrame({"kind": kinds, "z": rng.normal(size=300)})
    y = np.array([len(k or "") for k in kinds]) + X["z"].to_numpy()
    model = RFRBoostRegressor(n_bags=2, features=("swim",), random_state=0).fit(X, y)
    check(model, X, y, "float64")
    assert "(hole) 3" in model.onnx_inputs(X)["kind"]


def test_empty_text_may_be_a_level_beside_missing_values():
    rng = np.random.default_rng(0)
    kinds = rng.choice(np.array(["", "a", None], dtype=object), 300)
    y = np.array([{"": 0.0, "a": 1.0, None: 3.0}[k] for k in kinds]) + 0.1 * rng.normal(size=300)
    X = pd.DataFrame({"kind": kinds, "z": rng.normal(size=300)})
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    check(model, X, y, "float64")
    assert set(model.onnx_inputs(X)["kind"].ravel()) == {"", "a", "(missing)"}


def test_a_file_is_written_whole_and_a_loaded_model_writes_the_same(tmp_path):
    X, y = regression(100)
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y)
    written = model.to_onnx(tmp_path / "model.onnx").SerializeToString()
    assert (tmp_path / "model.onnx").read_bytes() == written
    model.save(tmp_path / "model.rfrboost")
    again = rfrboost.load(tmp_path / "model.rfrboost").to_onnx()
    assert again.SerializeToString() == written


class Absolute(Loss):
    """A loss that a user defines."""

    def value(self, raw, y):
        return np.sqrt(1 + (raw - y) ** 2).sum(axis=1)

    def gradient(self, raw, y):
        return (raw - y) / np.sqrt(1 + (raw - y) ** 2)


def test_what_onnx_cannot_express_is_refused_in_a_sentence():
    X, y = regression(100)
    dates = pd.DataFrame({"x": X[:, 0], "day": pd.date_range("2020-01-01", periods=100)})
    with pytest.raises(ValueError, match="Column 'day' holds dates"):
        RFRBoostRegressor(n_bags=2, random_state=0).fit(dates, y).to_onnx()
    with pytest.raises(ValueError, match="loss Absolute cannot be exported"):
        RFRBoostRegressor(1, n_features=5, loss=Absolute()).fit(X, y).to_onnx()
    trees = RandomTreesEmbedding(3, max_depth=2)
    with pytest.raises(ValueError, match="class TransformerFeatures"):
        RFRBoostRegressor(1, features=trees).fit(X, y).to_onnx()
    constant = RFRBoostRegressor(random_state=0).fit(np.ones((60, 1)), y[:60])
    with pytest.raises(ValueError, match="does not use any column"):
        constant.to_onnx()
    with pytest.raises(ValueError, match="dtype should be float32 or float64"):
        RFNNRegressor(5).fit(X, y).to_onnx(dtype="int8")


def test_columns_are_fed_by_name():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc"))
    model = RFRBoostRegressor(features=("swim",), n_bags=2, random_state=0)
    model.fit(frame, frame["a"] - 2 * frame["b"])
    with pytest.raises(ValueError, match="yet now missing:\n- c"):
        model.onnx_inputs(frame[["a", "b"]])
    for other in (frame[["b", "a", "c"]], frame.assign(d=0.0)[["d", "b", "a", "c"]]):
        fed = model.onnx_inputs(other)
        assert all(np.array_equal(fed[name], x) for name, x in model.onnx_inputs(frame).items())


def test_rows_far_from_training_stay_within_bounds():
    X, _ = regression()
    y = 3 * X[:, 0]
    for settings in ({}, {"preprocess": None}):
        model = RFRBoostRegressor(features=("swim",), n_bags=2, random_state=0, **settings)
        model.fit(X, y)
        far = 50 * X
        predicted = model.predict(far)
        made = session(model, "float64").run(None, model.onnx_inputs(far, dtype="float64"))[0]
        np.testing.assert_allclose(made[:, 0], predicted, rtol=1e-5, atol=1e-5)
    # Without preprocessing nothing but the bounds holds predictions back.
    assert predicted.max() == pytest.approx(y.max() + 0.25 * np.ptp(y))
