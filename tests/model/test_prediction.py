"""The prediction form of an ensemble: the same predictions as layer by layer, from one sum."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._model.features import DenseFeatures
from rfrboost._model.network import DOUBLE, Network, centered
from rfrboost._model.prediction import BumpSums, LeafSums, Neurons, TreeSums, in_single
from rfrboost._numerics.precision import LARGEST_FACTOR, UNIT_ROUNDOFF
from rfrboost._numerics.sizes import SIZES

# The largest change of a prediction by single precision, in units of the predictions' spread.
CLOSE = 5e-6


def table(n, columns=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns))
    X[:, 0] = X[:, 0] > 0
    return X, X[:, 0] * np.sin(X[:, 1]) + np.abs(X[:, 2]) + 0.1 * rng.normal(size=n)


def ensemble(task, n=150):
    X, y = table(n)
    if task == "numbers":
        return RFRBoostRegressor(n_bags=2, random_state=0).fit(X, y), X
    if task == "outputs":
        return RFRBoostRegressor(n_bags=2, random_state=0).fit(X, np.column_stack([y, y**2])), X
    if task == "leaves":
        model = RFRBoostRegressor(n_bags=2, random_state=0)
        model._sizes = replace(SIZES, most_centres=100, leaf_held_out_rows=5)
        return model.fit(*table(400)), table(400)[0]
    return RFRBoostClassifier(n_bags=2, random_state=0).fit(X, np.digitize(y, [0.0, 1.0])), X


TASKS = ("numbers", "outputs", "classes", "leaves")


@pytest.fixture(scope="module")
def models():
    """Fitted models and their rows, by task."""
    return {task: ensemble(task) for task in TASKS}


def in_double(network: Network, x):
    """The members' predictions (Φ, 1) of rows (x, 1), layer by layer in double precision."""
    return network.last(x, (DOUBLE,) * len(network.layers))


@pytest.fixture(params=TASKS)
def fitted(request, models):
    model, X = models[request.param]
    rng = np.random.default_rng(1)
    rows = np.vstack([X[:50], X + 0.3 * rng.normal(size=X.shape)])
    return model.network_, model.encode(rows)


def test_the_sum_is_what_the_layers_say(fitted):
    network, X = fitted
    expected = in_double(network, centered(X, network.mean))
    spread = network.heads[-1](expected).std()
    np.testing.assert_allclose(
        network.raw(X), network.heads[-1](expected), rtol=0, atol=CLOSE * spread
    )
    np.testing.assert_allclose(
        network.transform(X), expected[:, :-1], rtol=0, atol=CLOSE * expected[:, :-1].std()
    )


def test_every_kind_of_block_is_made(models):
    kinds = {type(b) for model, _ in models.values() for b in model.network_.prediction.blocks}
    assert kinds == {Neurons, BumpSums, LeafSums, TreeSums}


def test_a_row_is_predicted_alone_as_in_a_batch(fitted):
    network, X = fitted
    together = network.raw(X)
    alone = np.vstack([network.raw(X[i : i + 1]) for i in range(0, len(X), 7)])
    np.testing.assert_allclose(alone, together[::7], rtol=0, atol=1e-7 * together.std())


def test_threads_do_not_change_a_bit(fitted):
    network, X = fitted
    X = np.vstack([X] * 6)
    with threadpool_limits(1, user_api="blas"):
        one = network.raw(X)
    with threadpool_limits(2, user_api="blas"):
        two = network.raw(X)
    np.testing.assert_array_equal(one, two)


def test_rows_beyond_single_precision_are_computed_layer_by_layer(models):
    model, rows = models["numbers"]
    network = model.network_
    X = model.encode(rows[:6])
    far = X.copy()
    far[2, 1] = 1e40
    far[4, 3] = -2 * LARGEST_FACTOR
    together = network.raw(far)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together[[0, 1, 3, 5]], network.raw(X)[[0, 1, 3, 5]], atol=1e-7)
    expected = network.heads[-1](in_double(network, centered(far, network.mean)))
    np.testing.assert_allclose(together, expected, atol=CLOSE)


def test_a_pickle_holds_the_network_alone():
    model = RFRBoostRegressor(n_bags=2, random_state=0).fit(*table(100))
    before = len(pickle.dumps(model))
    model.predict(table(100)[0])
    # What a prediction keeps for the next one is several times as large as the network.
    assert len(pickle.dumps(model)) < 1.02 * before


def test_features_with_small_errors_are_taken_first():
    leads = np.array([[3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 50.0]])
    rounding = np.array([1.0, 1.0, 100.0, 1.0])
    allowed = 3.5 * UNIT_ROUNDOFF
    np.testing.assert_array_equal(in_single(leads, rounding, allowed), [True, True, False, False])
    np.testing.assert_array_equal(in_single(leads, rounding, 0.0), [False] * 4)
    assert in_single(leads, rounding, 1.0).all()


def test_only_steep_neurons_are_computed_in_double_precision(models):
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(4, 100))
    weights[:, :3] *= 1e5
    network = models["numbers"][0].network_
    layer = network.layers[0]
    features = replace(layer.features, from_x=DenseFeatures(weights, "tanh"))
    step = replace(layer.step, C=np.full((100, layer.step.C.shape[1]), 0.01))
    ours = Network(
        np.zeros(3),
        DenseFeatures(np.zeros((4, len(network.heads[-1].W))), "identity"),
        (replace(layer, features=features, step=step),),
        network.heads[:2],
    )
    widths = {b.weights.dtype: b.weights.shape[0] for b in ours.prediction.blocks}
    assert widths == {np.dtype(np.float32): 97, np.dtype(np.float64): 3}


def test_a_network_that_depends_on_its_representation_has_no_such_form():
    model = RFRBoostRegressor(n_layers=2, n_features=20, random_state=0).fit(*table(60))
    assert model.network_.prediction is None
    assert model.predict(table(60)[0]).shape == (60,)
