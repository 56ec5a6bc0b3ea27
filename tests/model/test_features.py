"""Random features: SWIM's defining equations, distributions, samplers written by a user."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from model_zoo import classification, regression
from numpy.random import default_rng
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rfrboost import (
    FourierFeatures,
    GaussianFeatures,
    RFNNRegressor,
    RFRBoostClassifier,
    RFRBoostRegressor,
    SWIMFeatures,
)
from rfrboost._model.features import DenseFeatures, DifferentiableFeatures, rounding_of
from rfrboost._model.network import LayerFeatures
from rfrboost._model.samplers import (
    IID,
    SWIM,
    Fourier,
    SparseSWIM,
    drawn_distances,
    is_axis_aligned,
)


def homogeneous(Z):
    """Rows (z, 1)."""
    return np.column_stack([Z, np.ones(len(Z))])


def pairs(n: int, columns: int = 3, seed: int = 0):
    rng = default_rng(seed)
    Z = rng.standard_normal((2 * n, columns))
    return Z, np.sin(3 * Z[:, :1])


@pytest.mark.parametrize(("activation", "low", "high"), [("tanh", -0.7, 0.7), ("relu", 0.0, 1.4)])
def test_a_neuron_takes_its_two_values_at_its_two_points(activation, low, high):
    """Equation (eqSWIMWeights): pre-activation −c at x⁽¹⁾ and +c at x⁽²⁾."""
    Z, Y = pairs(50)
    features = SWIM(0.7, activation).sample(Z, Y, 30, default_rng(0))
    pre = homogeneous(Z) @ features.weights
    first, second = pre[:50], pre[50:]
    assert np.isclose(first, low, atol=1e-9).any(axis=0).all()
    assert np.isclose(second, high, atol=1e-9).any(axis=0).all()
    # The direction is that from the one point to the other.
    i, j = (np.argmin(np.abs(v - c), axis=0) for v, c in ((first, low), (second, high)))
    delta = Z[50:][j] - Z[:50][i]
    expected = (high - low) * delta / np.sum(delta**2, axis=1, keepdims=True)
    np.testing.assert_allclose(features.weights[:-1].T, expected, rtol=1e-7)


def test_pairs_without_a_difference_in_y_are_never_drawn():
    Z = np.array([[0.0], [10.0], [1.0], [12.0]])  # of 0 and 10 with 1 and 12
    Y = np.array([[0.0], [5.0], [0.0], [5.0]])
    steep = SWIM(0.5, "tanh").sample(Z, Y, 50, default_rng(0)).weights[0]
    assert set(np.round(1 / steep)) == {12.0, -9.0}  # 0 to 12 and 10 to 1
    uniform = SWIM(0.5, "tanh", "uniform").sample(Z, Y, 200, default_rng(0)).weights[0]
    assert set(np.round(1 / uniform)) == {1.0, 12.0, -9.0, 2.0}


def test_the_density_is_dy_over_dz():
    rng = default_rng(0)
    gap, dy = np.array([1.0, 2.0, 1.5]), np.array([1.0, 1.0, 3.0])
    # One row at the origin, three times, against three others.
    Z = np.concatenate([np.zeros(3), gap])[:, None]
    Y = np.concatenate([np.zeros(3), dy])[:, None]
    share = (dy / gap) / np.sum(dy / gap)
    weights = SWIM(0.5, "tanh").sample(Z, Y, 100_000, rng).weights[0]
    drawn = [np.mean(np.isclose(weights, 1 / g)) for g in gap]
    np.testing.assert_allclose(drawn, share, atol=0.01)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_swim_does_not_depend_on_the_unit_of_x(scale):
    Z, Y = pairs(100)
    reference = SWIM(0.5, "tanh").sample(Z, Y, 20, default_rng(0))
    scaled = SWIM(0.5, "tanh").sample(scale * Z, Y, 20, default_rng(0))
    np.testing.assert_allclose(
        homogeneous(scale * Z) @ scaled.weights,
        homogeneous(Z) @ reference.weights,
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("Y", [np.zeros((40, 1)), np.ones((40, 2))])
def test_constant_targets_fall_back_to_uniform_pairs(Y):
    Z, _ = pairs(20)
    assert np.ptp(SWIM(0.5, "tanh").sample(Z, Y, 10, default_rng(0)).weights, axis=1).all()


def test_identical_rows_give_constant_features():
    features = SWIM(0.5, "tanh").sample(np.ones((40, 3)), np.ones((40, 1)), 10, default_rng(0))
    np.testing.assert_array_equal(features.weights[:-1], 0)


@pytest.mark.parametrize(
    ("distribution", "variance"), [("gaussian", 2.0**2 / 5), ("uniform", 2.0**2 / 5 / 3)]
)
def test_iid_weights_and_offsets_have_the_stated_variance(distribution, variance):
    W = (
        IID(2.0, "tanh", distribution)
        .sample(np.zeros((1, 5)), None, 40_000, default_rng(0))
        .weights
    )
    np.testing.assert_allclose(W.var(axis=1), variance, rtol=0.05)
    np.testing.assert_allclose(W.mean(axis=1), 0, atol=0.03)
    if distribution == "uniform":
        assert np.abs(W).max() <= 2.0 / np.sqrt(5)


def test_fourier_features_approximate_the_gaussian_kernel():
    rng = default_rng(0)
    Z = rng.standard_normal((20, 4))
    features = Fourier(1.5).sample(Z, None, 60_000, rng)
    F = np.empty((20, 60_000))
    features(homogeneous(Z), F)
    # w ~ N(0, s²/D) makes E 2·cos·cos = exp(−s²‖Δ‖²/2D).
    np.testing.assert_allclose(2 * F @ F.T / 60_000, rbf_kernel(Z, gamma=1.5**2 / 8), atol=0.03)


def test_single_precision_is_refused_where_it_would_lose_digits():
    big = DenseFeatures(np.full((2, 3), 1e9), "tanh")
    assert big.astype(np.float32, 1.0).dtype == np.float64
    fine = DenseFeatures(np.full((2, 3), 1.0), "tanh")
    assert fine.astype(np.float32, 1.0).dtype == np.float32
    assert fine.astype(np.float32, 1e9).dtype == np.float64


def test_the_facts_of_dense_features_follow_their_weights():
    features = DenseFeatures(np.ones((4, 6), np.float32), "tanh")
    assert (features.width, features.bound, features.dtype) == (6, 1.0, np.float32)
    other = replace(features, weights=np.ones((4, 7)), activation="relu")
    assert (other.width, other.bound, other.dtype) == (7, np.inf, np.float64)
    again = pickle.loads(pickle.dumps(other))
    assert (again.width, again.bound, again.dtype) == (7, np.inf, np.float64)
    assert repr(DenseFeatures(np.ones((1, 1)), "tanh")) == (
        "DenseFeatures(weights=array([[1.]]), activation='tanh')"
    )


def test_the_features_of_a_layer_are_of_both_maps():
    of_phi = DenseFeatures(np.ones((4, 6), np.float32), "tanh")
    of_x = DenseFeatures(np.ones((3, 5)), "relu")
    both = LayerFeatures(of_phi, of_x)
    assert both.maps == (of_phi, of_x)
    assert (both.width, both.bound, both.dtype) == (11, np.inf, np.float64)
    assert LayerFeatures(of_phi, None).dtype == np.float32
    assert LayerFeatures(of_phi, of_phi, added=True).width == 6


class RandomSigns:
    """A sampler written by a user, with the two documented methods."""

    def n_rows(self, n_features):
        return 1

    def sample(self, Z, Y, n_features, rng):
        signs = rng.choice([-1.0, 1.0], (Z.shape[1] + 1, n_features))
        return DenseFeatures(signs, "tanh")


class Bumps:
    """A feature map written by a user, with the members of FeatureMap and no others."""

    bound, dtype = 1.0, np.dtype(float)

    def __init__(self, centers):
        self.centers, self.width = centers, len(centers)

    def astype(self, dtype, largest_input):
        return self

    def __call__(self, rows, out):
        out[...] = rbf_kernel(rows[:, :-1], self.centers, gamma=0.2)


class BumpSampler:
    def n_rows(self, n_features):
        return n_features

    def sample(self, Z, Y, n_features, rng):
        return Bumps(Z)


def test_optional_members_may_be_missing():
    plain, dense = Bumps(np.zeros((3, 2))), DenseFeatures(np.full((2, 3), 3.0), "tanh")
    np.testing.assert_array_equal(rounding_of(plain), [1, 1, 1])
    np.testing.assert_allclose(rounding_of(dense), 1 + np.sqrt([18, 18, 18]))
    assert isinstance(dense, DifferentiableFeatures)
    assert not isinstance(plain, DifferentiableFeatures)
    assert is_axis_aligned(SparseSWIM(0.5, "tanh"))
    assert not is_axis_aligned(SWIM(0.5, "tanh"))
    assert not is_axis_aligned(BumpSampler())


def test_a_map_may_say_how_inaccurate_it_is():
    class Inaccurate(Bumps):
        rounding = 100.0

    np.testing.assert_array_equal(rounding_of(Inaccurate(np.zeros((3, 2)))), [100, 100, 100])


OWN = {
    "rbf sampler": RBFSampler(n_components=15),
    "nystroem": Nystroem(n_components=15),
    "pipeline": make_pipeline(StandardScaler(), RBFSampler(n_components=15)),
    "polynomial": PolynomialFeatures(2, include_bias=False),
    "our own transformer": SWIMFeatures(15),
    "sampler": RandomSigns(),
    "sampler and map": BumpSampler(),
}


@pytest.mark.parametrize("features", OWN.values(), ids=OWN)
def test_arbitrary_random_features(features):
    """The paper promises that any features can be used."""
    X, y = regression(300)
    model = RFRBoostRegressor(3, features=features, n_features=(15, 15), random_state=0).fit(X, y)
    linear = RFRBoostRegressor(0).fit(X, y)
    assert model.score(X, y) > linear.score(X, y) + 0.1
    again = RFRBoostRegressor(3, features=features, n_features=(15, 15), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    X, labels = classification()
    proba = (
        RFRBoostClassifier(2, features=features, n_features=(15, 15))
        .fit(X, labels)
        .predict_proba(X)
    )
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert RFNNRegressor(15, features=features).fit(*regression(50)).predict(X).shape == (150,)


@pytest.mark.parametrize("counts", [(20, 0), (0, 20), 21, 1])
def test_features_of_phi_of_x_or_of_both(counts):
    X, y = regression()
    model = RFRBoostRegressor(2, n_features=counts, random_state=0).fit(X, y)
    expected = counts if isinstance(counts, tuple) else (counts // 2, counts - counts // 2)
    features = model.network_.layers[0].features
    widths = tuple(0 if m is None else m.width for m in (features.from_phi, features.from_x))
    assert widths == expected


@pytest.mark.parametrize("transformer", [SWIMFeatures, GaussianFeatures, FourierFeatures])
def test_transformers_are_seeded_bounded_and_row_by_row(transformer):
    X, y = regression()
    F = transformer(30, random_state=0).fit(X, y).transform(X)
    assert F.shape == (120, 30)
    assert np.abs(F).max() <= 1
    np.testing.assert_array_equal(F, transformer(30, random_state=0).fit_transform(X, y))
    np.testing.assert_allclose(F[5:6], transformer(30, random_state=0).fit(X, y).transform(X[5:6]))


def test_swim_features_take_labels():
    X, labels = classification()
    assert SWIMFeatures(10, random_state=0).fit(X, labels).transform(X).shape == (150, 10)


def test_drawn_distances_know_equal_rows():
    rng = default_rng(0)
    A = 1e8 + rng.standard_normal((5, 3))
    D = drawn_distances(A, np.vstack([A[:2], A[3:] + 1e4]))
    assert D[0, 0] == D[1, 1] == 0
    far = rng.standard_normal((6, 3)), rng.standard_normal((4, 3))
    expected = ((far[0][:, None] - far[1]) ** 2).sum(axis=2)
    np.testing.assert_allclose(drawn_distances(*far), expected, rtol=1e-10)


def test_a_diagonal_step_refuses_features_of_another_width():
    model = RFRBoostRegressor(
        1, strategy="greedy", step_matrix="diagonal", features=RBFSampler(n_components=10)
    )
    with pytest.raises(ValueError, match="step_matrix='dense'"):
        model.fit(*regression())


def test_a_row_far_away_does_not_make_close_rows_equal():
    near = default_rng(0).standard_normal((40, 3))
    far = np.vstack([near, [[1e4, 0.0, 0.0]]])
    expected = np.square(near[:, None] - near[None]).sum(axis=2)
    np.testing.assert_allclose(drawn_distances(far, far)[:40, :40], expected, rtol=1e-4, atol=1e-4)
