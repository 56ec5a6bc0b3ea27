"""What holds for every model, whatever its parts."""

import pickle
import tracemalloc
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_zoo import CLASSIFIERS, REGRESSORS, classification, regression
from numpy.random import default_rng
from sklearn.base import clone
from small_sizes import clone_with_sizes, with_sizes
from threadpoolctl import threadpool_limits

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._numerics.sizes import Sizes
from rfrboost._paper.boost import centered_rows
from rfrboost._rows.chunks import Chunk, InMemory
from rfrboost._rows.draw import ContentOrder, PartOrder

ALL = {
    **{f"regressor-{k}": m for k, m in REGRESSORS.items()},
    **{f"classifier-{k}": m for k, m in CLASSIFIERS.items()},
}
GREEDY = ["dense", "diagonal", "scalar"]


def data_for(name: str, n: int = 150):
    return classification(n) if name.startswith("classifier") else regression(n)


def output(model, X):
    """The finest-grained prediction a model offers."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def arrays_of(part):
    """Every array in a tree of dataclasses and tuples."""
    if isinstance(part, np.ndarray):
        return [part]
    if isinstance(part, tuple):
        return [a for p in part for a in arrays_of(p)]
    names = [f.name for f in fields(part)] if is_dataclass(part) else []
    return [a for name in names for a in arrays_of(getattr(part, name))]


@pytest.fixture(params=ALL)
def fitted(request):
    X, y = data_for(request.param)
    return clone(ALL[request.param]).fit(X, y), X, y


def test_prediction_is_row_by_row(fitted):
    model, X, _ = fitted
    whole = output(model, X)
    order = default_rng(0).permutation(len(X))
    np.testing.assert_allclose(output(model, X[order]), whole[order], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(output(model, X[10:30]), whole[10:30], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(output(model, X[:1]), whole[:1], rtol=1e-9, atol=1e-10)


def test_the_last_stage_is_the_prediction(fitted):
    model, X, _ = fitted
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.network_.layers) + 1
    np.testing.assert_array_equal(stages[-1], model.predict(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(
            list(model.staged_predict_proba(X))[-1], model.predict_proba(X)
        )


def test_same_seed_same_bits(fitted):
    model, X, y = fitted
    np.testing.assert_array_equal(output(clone(model).fit(X, y), X), output(model, X))
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(output(other, X), output(model, X))


def test_integer_weights_are_repeated_rows(fitted):
    """Through the sampling of features too: it draws rows by content and weight."""
    model, X, y = fitted
    w = default_rng(0).integers(0, 4, len(X))
    weighted = clone(model).fit(X, y, sample_weight=w)
    order = default_rng(1).permutation(w.sum())
    repeated = clone(model).fit(np.repeat(X, w, axis=0)[order], np.repeat(y, w, axis=0)[order])
    # Along the pinball loss's straight stretches the solver stops where its path ends.
    tolerance = 1e-3 if getattr(model, "loss", "") == "quantile" else 1e-7
    np.testing.assert_allclose(output(weighted, X), output(repeated, X), rtol=1e-6, atol=tolerance)


def test_weights_have_no_unit_and_rows_no_order(fitted):
    model, X, y = fitted
    tripled = clone(model).fit(X, y, sample_weight=np.full(len(X), 3.0))
    np.testing.assert_allclose(output(tripled, X), output(model, X), rtol=1e-6, atol=1e-7)
    order = default_rng(0).permutation(len(X))
    shuffled = clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(output(shuffled, X), output(model, X), rtol=1e-6, atol=1e-7)


def test_a_shift_of_x_changes_nothing(fitted):
    model, X, y = fitted
    shifted = clone(model).fit(X + 1000.0, y)
    np.testing.assert_allclose(output(shifted, X + 1000.0), output(model, X), rtol=1e-4, atol=1e-5)


def test_batches_threads_and_layout_change_nothing_beyond_rounding(fitted):
    model, X, y = fitted
    expected = output(model, X)
    for batch_rows, cached_bytes in ((7, 2**29), (64, 0), (1000, 5000)):
        sizes = Sizes(batch_rows=batch_rows, cached_bytes=cached_bytes)
        other = clone_with_sizes(model, sizes).fit(X, y)
        np.testing.assert_allclose(output(other, X), expected, rtol=1e-6, atol=1e-7)
    with threadpool_limits(2):
        columns_first = clone(model).fit(np.asfortranarray(X), y)
    np.testing.assert_allclose(output(columns_first, X), expected, rtol=1e-6, atol=1e-7)


def test_a_fitted_model_is_frozen_and_without_data(fitted):
    model, X, y = fitted
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(output(again, X), output(model, X))
    assert not any(array.flags.writeable for array in arrays_of(model.network_))
    big = [np.tile(a, (10,) + (1,) * (a.ndim - 1)) for a in (X, y)]
    larger = clone(model).fit(*big)
    assert len(pickle.dumps(larger)) < 1.1 * len(pickle.dumps(model))


@pytest.mark.parametrize("name", [n for n in ALL if "rfnn" not in n])
def test_a_warm_start_ends_where_one_fit_does(name):
    X, y = data_for(name)
    model = clone(ALL[name]).set_params(n_layers=4)
    whole = clone(model).fit(X, y)
    grown = clone(model).set_params(n_layers=1, warm_start=True).fit(X, y)
    grown.set_params(n_layers=2).fit(X, y)
    grown.set_params(n_layers=4).fit(X, y)
    np.testing.assert_allclose(output(grown, X), output(whole, X), rtol=1e-7, atol=1e-9)
    assert [h["layer"] for h in grown.history_] == [1, 2, 3, 4]


def test_a_warm_start_keeps_an_unseeded_models_layers():
    X, y = regression()
    model = RFRBoostRegressor(1, n_features=10, warm_start=True).fit(X, y)
    first = model.network_.layers[0]
    model.set_params(n_layers=3).fit(X, y)
    assert model.network_.layers[0] is first


@pytest.mark.parametrize("name", GREEDY)
@pytest.mark.parametrize("learning_rate", [0.3, 1.0])
def test_the_greedy_objective_never_rises(name, learning_rate):
    """(1/n)Σ‖y − WᵀΦ‖² + λ‖W‖², layer by layer: a convex step and a refit can only lower it."""
    X, y = regression(200, outputs=2)
    model = (
        clone(REGRESSORS[name])
        .set_params(n_layers=6, learning_rate=learning_rate, l2_head=1e-3)
        .fit(X, y)
    )
    objectives = [
        np.mean(np.sum((y - prediction) ** 2, axis=1)) / model._fitted.targets.scale.scale**2
        + model.l2_head * np.sum(head.W**2)
        for prediction, head in zip(model.staged_predict(X), model.network_.heads, strict=True)
    ]
    assert (np.diff(objectives) <= 1e-12).all()
    assert objectives[-1] < (1.0 if name == "scalar" else 0.95) * objectives[0]


@pytest.mark.parametrize("name", [n for n in ALL if "rfnn" not in n])
def test_layers_lower_the_training_loss(name):
    X, y = data_for(name)
    model = clone(ALL[name]).set_params(n_layers=5).fit(X, y)
    losses = [h["loss"] for h in model.history_]
    assert losses[-1] < losses[0]
    if name in ("regressor-gradient", "regressor-dense"):
        errors = [np.mean((y - p) ** 2) for p in model.staged_predict(X)][1:]
        np.testing.assert_allclose(errors, 2 * np.array(losses))
    for record in model.history_:
        assert set(record) == {"layer", "loss", "step_length", "gradient_norm", "seconds"}
        assert np.isfinite(list(record.values())).all()


@pytest.mark.parametrize("name", ["gradient", "dense", "diagonal", "rfnn"])
@pytest.mark.parametrize("scale", [2.0**-20, 2.0**30])
def test_the_unit_of_y_is_the_unit_of_predictions(name, scale):
    """Squared error has no unit of its own; a greedy step's penalty has, and is kept."""
    X, y = regression()
    model = clone(REGRESSORS[name]).fit(X, y)
    if name in GREEDY:
        model.set_params(l2_step=model.l2_step * scale**2)
    scaled = clone(model).fit(X, scale * y + 5 * scale)
    reference = clone(REGRESSORS[name]).fit(X, y).predict(X)
    np.testing.assert_allclose(scaled.predict(X) / scale - 5, reference, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["gradient", "dense"])
def test_outputs_are_fitted_together(name):
    X, Y = regression(outputs=3)
    model = clone(REGRESSORS[name]).fit(X, Y)
    assert model.predict(X).shape == (120, 3)
    assert model.score(X, Y) > 0.5
    one = clone(REGRESSORS[name]).fit(X, Y[:, :1])
    assert one.predict(X).shape == (120, 1)
    np.testing.assert_array_equal(one.predict(X)[:, 0], clone(one).fit(X, Y[:, 0]).predict(X))


def test_sample_splitting_fits_every_layer_on_rows_of_its_own(monkeypatch):
    fitted, drawn = {}, {}
    batches, draw = Chunk.fitting_batches, PartOrder.draw

    def spy_batches(self):
        seen = batches(self)
        fitted.setdefault(self.part, set()).update(
            i for rows, _ in seen for i in range(rows.start, rows.stop)
        )
        return seen

    def spy_draw(self, size, rng):
        index = draw(self, size, rng)
        drawn.setdefault(self.rows.part, set()).update(index.tolist())
        return index

    monkeypatch.setattr(Chunk, "fitting_batches", spy_batches)
    monkeypatch.setattr(PartOrder, "draw", spy_draw)
    X, y = regression(403)
    model = RFRBoostRegressor(4, n_features=20, sample_splitting=True, random_state=0).fit(X, y)
    assert [len(fitted[part]) for part in range(4)] == [100] * 4
    assert len(set.union(*fitted.values())) == 400
    assert all(drawn[part] <= fitted[part] for part in range(4))
    assert model.score(X, y) > 0.3
    order = default_rng(0).permutation(len(X))
    np.testing.assert_allclose(clone(model).fit(X[order], y[order]).predict(X), model.predict(X))


@pytest.mark.parametrize("n_layers", [2, 3])
def test_a_warm_start_on_other_targets_fits_them(n_layers):
    X, y = regression()
    model = RFRBoostRegressor(2, n_features=20, warm_start=True, random_state=0).fit(X, y)
    linear = RFRBoostRegressor(0).fit(X, 1000 * y + 5000).score(X, 1000 * y + 5000)
    model.set_params(n_layers=n_layers).fit(X, 1000 * y + 5000)
    assert model.score(X, 1000 * y + 5000) > linear + 0.2


def test_a_refused_warm_start_leaves_the_model_as_it_was():
    X, y = classification(classes=2)
    model = RFRBoostClassifier(2, n_features=20, warm_start=True, random_state=0).fit(X, y)
    before = model.predict_proba(X)
    for labels in (np.arange(len(X)) % 3, np.where(y == y[0], "p", "q")):
        with pytest.raises(ValueError, match="warm_start"):
            model.fit(X, labels)
        np.testing.assert_array_equal(model.predict_proba(X), before)
        assert set(model.predict(X)) <= set(y)


def test_normalized_representations_have_mean_zero_and_variance_one():
    X, y = classification(300)
    model = RFRBoostClassifier(3, n_features=40, normalize=True, random_state=0).fit(X, y)
    phi = model.transform(X)
    np.testing.assert_allclose(phi.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(phi.std(axis=0), 1, rtol=1e-9)


def test_the_representation_is_what_the_head_sees():
    X, y = regression()
    model = RFRBoostRegressor(2, n_features=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(RFRBoostRegressor(0).fit(X, y).transform(X), X, rtol=1e-12)
    phi = model.transform(X) - model.network_.mean
    raw = phi @ model.network_.heads[-1].W + model.network_.heads[-1].b
    np.testing.assert_allclose(
        model._fitted.targets.scale.grow(raw)[:, 0], model.predict(X), rtol=1e-10
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(2, 40), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_rows_are_drawn_by_content_and_weight(n, columns, seed):
    """Repeating, reordering or weighting rows leads to the same draws."""
    rng = default_rng(seed)
    x, y = rng.integers(0, 3, (n, columns)).astype(float), rng.integers(0, 2, (n, 1)).astype(float)
    w = rng.integers(1, 4, n)
    order = rng.permutation(w.sum())
    repeated_x, repeated_y = np.repeat(x, w, axis=0)[order], np.repeat(y, w, axis=0)[order]
    drawn = []
    for X, Y, W in ((x, y, w.astype(float)), (repeated_x, repeated_y, None)):
        chunks = InMemory(X, Y, W)
        mean = chunks.facts.x_sum / chunks.facts.weight
        chunks.set("x", centered_rows, mean, np.zeros(columns, bool))
        index = ContentOrder(chunks, default_rng(seed)).draw(50, default_rng(seed))
        drawn.append(np.hstack([X[index], Y[index]]))
    np.testing.assert_array_equal(*drawn)


def test_memory_does_not_hold_the_feature_matrix():
    """With no room to keep features, the peak is far below n×p."""
    X, y = regression(60_000, columns=3)
    model = RFRBoostRegressor(1, n_features=(128, 128), random_state=0)
    with_sizes(model, Sizes(cached_bytes=0))
    tracemalloc.start()
    model.fit(X, y)
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * len(X) * 256 * 4
