"""Columns are found by name, in any order and among others, by everything that takes X."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNClassifier,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    RowBlocks,
    SWIMFeatures,
    inspection,
)
from rfrboost._tables.table import lacking_and_extra

pa = pytest.importorskip("pyarrow")

FAST = {"n_bags": 2, "features": ("swim", "bumps"), "n_features": 16, "random_state": 0}
SINGLE = {"n_layers": 2, "n_features": 16, "random_state": 0}
SOURCES = {
    "pandas": pd.DataFrame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
#: methods that take X alone; staged ones give one array per layer
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_interval",
    "predict_set",
    "staged_predict",
    "staged_predict_proba",
    "transform",
    "input_gradient",
    "encode",
)


def numbers(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    return X, X["a"] + X["b"] ** 2


def mixed(n=80):
    """Numbers with missing values, categories, dates and numbers written as text."""
    X, y = numbers(n)
    X.loc[::7, "b"] = np.nan
    X["town"] = np.random.default_rng(1).choice(["north", "south", "old"], n)
    X["day"] = pd.date_range("2024-01-01", periods=n, freq="h")
    X["price"] = [f"${k}.50" for k in range(n)]
    return X, y.fillna(0.0)


def reordered(X):
    """The columns of X backwards, and the same among others."""
    backwards = X[list(X.columns[::-1])]
    return [backwards, backwards.assign(note="-").assign(other=1.0)[["other", *backwards, "note"]]]


def label_of(y):
    return np.where(y > 0.5, "high", "low")


def several_labels(y):
    return np.column_stack([y > 0.5, y > 1]).astype(int)


MODELS = {
    "automatic": lambda: RFRBoostRegressor(**FAST).fit(*mixed()),
    "classes": lambda: RFRBoostClassifier(**FAST).fit(mixed()[0], label_of(mixed()[1])),
    "labels": lambda: RFRBoostClassifier(**FAST).fit(mixed()[0], several_labels(mixed()[1])),
    "no preprocessing": lambda: RFRBoostRegressor(**FAST, preprocess=None).fit(*numbers()),
    "single": lambda: RFRBoostRegressor(**SINGLE).fit(*numbers()),
    "single, classes": lambda: RFRBoostClassifier(**SINGLE).fit(
        numbers()[0], label_of(numbers()[1])
    ),
    "one layer": lambda: RFNNRegressor(16, random_state=0).fit(*numbers()),
    "one layer, classes": lambda: RFNNClassifier(16, random_state=0).fit(
        numbers()[0], label_of(numbers()[1])
    ),
    "swim": lambda: SWIMFeatures(8, random_state=0).fit(*numbers()),
    "gaussian": lambda: GaussianFeatures(8, random_state=0).fit(*numbers()),
    "fourier": lambda: FourierFeatures(8, random_state=0).fit(*numbers()),
}


def results(model, X):
    """What every method gives for X that this model has, as lists of arrays."""
    found = {}
    for method in METHODS:
        try:
            values = getattr(model, method)(X)
        except (AttributeError, ValueError) as error:
            # Single networks have no intervals or sets.
            if "interval" not in method and "set" not in method and hasattr(model, method):
                raise error
            continue
        found[method] = [values] if hasattr(values, "shape") else [np.array(v) for v in values]
    return found


def assert_same(found, right):
    assert found.keys() == right.keys()
    for method, values in right.items():
        for value, other in zip(values, found[method], strict=True):
            assert np.array_equal(value, other, equal_nan=value.dtype.kind == "f"), method


@pytest.mark.parametrize("name", MODELS)
def test_any_order_gives_equal_results_to_the_bit(name):
    model = MODELS[name]()
    X, y = (mixed if "town" in model.feature_names_in_ else numbers)()
    for source in SOURCES.values():
        right = results(model, source(X))
        assert {"predict", "transform"} & right.keys()
        for other in reordered(X):
            assert_same(results(model, source(other)), right)
    if hasattr(model, "score"):
        if hasattr(model, "classes_"):
            y = several_labels(y) if name == "labels" else label_of(y)
        assert len({model.score(other, y) for other in (X, *reordered(X))}) == 1


@pytest.mark.parametrize("name", MODELS)
def test_columns_that_are_missing_or_there_twice_are_named(name):
    model = MODELS[name]()
    X, _ = (mixed if "town" in model.feature_names_in_ else numbers)()
    method = getattr(model, "predict", model.transform)
    for other in reordered(X):
        for source in SOURCES.values():
            with pytest.raises(ValueError, match="yet now missing:\n- b"):
                method(source(other.drop(columns="b")))
        with pytest.raises(ValueError, match="several columns named 'b'"):
            method(pd.concat([other, X["b"]], axis=1))
    with pytest.raises(
        ValueError, match=r"unseen at fit time:\n- a!\n- b!\n(.*\n)*.*missing:\n- a\n"
    ):
        method(X.rename(columns=lambda column: f"{column}!"))


def test_arrays_have_no_names_to_go_by():
    X, y = numbers()
    for settings in (FAST, SINGLE):
        model = RFRBoostRegressor(**settings).fit(X.to_numpy(), y)
        backwards = X[list("dcba")]
        with pytest.warns(UserWarning, match="fitted without feature names"):
            by_place = model.predict(backwards)
        assert np.array_equal(by_place, model.predict(backwards.to_numpy()))
        with pytest.raises(ValueError, match=r"3 (features|columns)"):
            model.predict(X[["c", "b", "a"]].to_numpy())


def test_other_columns_may_have_names_that_are_not_text():
    X, y = numbers()
    model = RFRBoostRegressor(**SINGLE).fit(X, y)
    assert np.array_equal(model.predict(X.assign(z=1).rename(columns={"z": 0})), model.predict(X))


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_validation_rows(source):
    X, y = mixed(160)
    fits = [
        RFRBoostRegressor(**FAST).fit(X[:100], y[:100], X_val=source(rows), y_val=y[100:])
        for rows in (X[100:], *reordered(X[100:]))
    ]
    for other in fits[1:]:
        assert np.array_equal(other.predict(X), fits[0].predict(X))


@pytest.mark.parametrize("kind", ["frames", "blocks"])
def test_a_warm_start_adds_layers_on_the_columns_of_the_last_fit(kind):
    X, y = numbers()

    def continued(others):
        model = RFRBoostRegressor(**SINGLE, warm_start=True).fit(X, y).set_params(n_layers=4)
        if kind == "frames":
            return model.fit(others, y)
        return model.fit(RowBlocks([(others[:30], y[:30]), (others[30:], y[30:])]))

    right = continued(X)
    for other in reordered(X):
        found = continued(other)
        assert list(found.feature_names_in_) == list("abcd")
        assert np.array_equal(found.predict(other), right.predict(X))
    message = {"frames": "'d' of the last fit is missing", "blocks": "last fit.*: 'd' is missing"}
    for other in (X.rename(columns={"d": "e"}), X.drop(columns="d")):
        with pytest.raises(ValueError, match=message[kind]):
            continued(other)
    with pytest.raises(ValueError, match="3 features but the last fit had 4"):
        continued(X.drop(columns="d").to_numpy())
    # Rows without names do not take the names of the last fit away.
    assert list(continued(X.to_numpy()).feature_names_in_) == list("abcd")


def test_a_warm_start_names_the_block_that_lacks_a_column():
    X, y = (part[:60] for part in numbers())
    model = RFRBoostRegressor(**SINGLE, warm_start=True).fit(X, y).set_params(n_layers=3)
    more = X.assign(note=1.0)
    lacking = more.drop(columns="d")
    for k, halves in enumerate([(lacking, more), (more, lacking)]):
        with pytest.raises(ValueError, match=f"^Block {k}: .* last fit.*: 'd' is missing\\.$"):
            model.fit(RowBlocks([(half, y) for half in halves]))


class CountedName(str):
    """A name that counts how often names are looked up."""

    __slots__ = ()
    lookups = 0

    def __hash__(self):
        CountedName.lookups += 1
        return super().__hash__()


def test_names_are_compared_in_a_time_proportional_to_their_number():
    wanted = [CountedName(f"x{j}") for j in range(100)]
    present = [CountedName(f"x{j}") for j in range(150, 50, -1)]
    lacking, extra = lacking_and_extra(wanted, present)
    assert CountedName.lookups <= 2 * (len(wanted) + len(present))
    assert lacking == [f"x{j}" for j in range(51)]
    assert extra == [f"x{j}" for j in range(150, 99, -1)]


def test_a_frame_whose_names_are_not_text_is_read_by_place():
    X, y = numbers()
    frame = pd.DataFrame(X.to_numpy())
    model = RFRBoostRegressor(**SINGLE).fit(frame, y)
    backwards = frame[[3, 2, 1, 0]]
    assert np.array_equal(model.predict(backwards), model.predict(backwards.to_numpy()))


@pytest.mark.parametrize("settings", [FAST, SINGLE])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_row_blocks(settings, source):
    X, y = numbers(160)

    def fitted(second):
        blocks = [(source(X[:80]), y[:80]), (source(second[80:]), y[80:])]
        return RFRBoostRegressor(**settings).fit(RowBlocks(blocks))

    right = fitted(X)
    assert np.array_equal(fitted(X[list("dbca")]).predict(X), right.predict(X))


def test_exports_and_smaller_models():
    X, y = mixed(120)
    backwards = reordered(X)[1]
    model = RFRBoostRegressor(**FAST).fit(X, y)
    smaller = [model.compress(rows, size=30).predict(rows) for rows in (X, backwards)]
    assert np.array_equal(*smaller)
    single = RFRBoostRegressor(**SINGLE).fit(*numbers())
    for rows in reordered(numbers()[0]):
        right = single.onnx_inputs(numbers()[0])
        found = single.onnx_inputs(rows)
        assert found.keys() == right.keys()
        assert all(np.array_equal(found[name], right[name]) for name in right)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_inspection_measures_belongs_to_the_column_of_that_name(source):
    X, y = mixed()
    model = RFRBoostRegressor(**FAST).fit(X, y)
    right = inspection.attribute(model, source(X[:2]))
    assert right.names == list(X.columns)
    shares = inspection.importances(model, source(X))
    strengths = inspection.interactions(model, source(X), ["a", "town"]).strengths
    for other in reordered(X):
        found = inspection.attribute(model, source(other[:2]))
        assert found.names == right.names
        assert np.array_equal(found.values, right.values)
        assert inspection.importances(model, source(other)) == shares
        pairs = inspection.interactions(model, source(other), ["a", "town"])
        assert pairs.strengths == strengths


def test_figures_are_those_of_the_columns_in_order():
    pytest.importorskip("matplotlib").use("Agg")
    X, y = mixed()
    model = RFRBoostRegressor(**FAST).fit(X, y)
    numeric, target = numbers()
    single = RFRBoostRegressor(**SINGLE).fit(numeric, target)
    curves = inspection.plot_dependence(model, X, ["a", "town"]).curves
    clouds = inspection.plot_representation(single, numeric, target).clouds
    for other, rows in zip(reordered(X), reordered(numeric), strict=True):
        found = inspection.plot_dependence(model, other, ["a", "town"]).curves
        for name, curve in curves.items():
            assert all(map(np.array_equal, curve, found[name]))
        found = inspection.plot_representation(single, rows, target).clouds
        assert all(np.array_equal(found[t], cloud) for t, cloud in clouds.items())


def test_shap():
    pytest.importorskip("shap")
    X, y = mixed()
    model = RFRBoostRegressor(**FAST).fit(X, y)
    explained = []
    for rows in (X, *reordered(X), pl.from_pandas(reordered(X)[0])):
        explain = inspection.shap_explainer(model, rows)
        # shap draws orders of columns by NumPy's global generator.
        np.random.seed(0)  # noqa: NPY002
        explained.append(explain(rows[:2], silent=True))
    for found in explained:
        assert list(found.feature_names) == list(X.columns)
        assert np.array_equal(found.values, explained[0].values)
