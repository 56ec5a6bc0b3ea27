"""Bumps leaf by leaf: the tree halves, rows find their leaf, and held-out rows stay held out."""

from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
import pytest
from fake_clock import Clock, install
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import default_rng
from small_bags import RUN, feature_values, table, with_own_fits
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor, load
from rfrboost._auto import local_kernels
from rfrboost._auto.bags import bag_apart
from rfrboost._auto.kernel import DualRidge, fit_kernel
from rfrboost._auto.local_kernels import TRIALS, fit_local_kernels
from rfrboost._auto.members import threads_as_workers
from rfrboost._model.bumps import Bumps
from rfrboost._model.leaves import LocalSums, Splits, grow, middle, principal
from rfrboost._model.network import centered
from rfrboost._numerics.sizes import Sizes
from rfrboost._numerics.threads import OutOfTimeError, team

L = np.eye(3)

#: leaves of tens of rows, so that small tables have several
SMALL_LEAVES = Sizes(shared_draw_rows=0, most_centres=60, drawn_centres=30, leaf_held_out_rows=2)


def leafy(**kwargs):
    """Bags of 240 rows, which are cut into four leaves."""
    return table(n=240, sizes=SMALL_LEAVES, **kwargs)


def leafy_apart(n_held):
    """240 rows to fit, and some rows apart that are held out."""
    bags, held = leafy(), default_rng(5).standard_normal((n_held, 3))
    apart = (centered(held, np.zeros(3)), np.zeros((n_held, 1)))
    return bag_apart(bags.x, bags.y, None, apart, default_rng(0), SMALL_LEAVES)


def fit_leaves(bags, run=RUN):
    return fit_local_kernels(bags, (L,), default_rng(0), run)


def features_of(fit):
    (layer,) = fit.layers
    return layer.features


# --- the tree -----------------------------------------------------------------------------------


def test_no_split_is_made_after_the_deadline(monkeypatch):
    X = default_rng(0).standard_normal((64, 3))
    clock = install(monkeypatch, Clock())
    with pytest.raises(OutOfTimeError):
        grow(X, np.arange(len(X)), L, 2, default_rng(0), deadline=4.0)
    assert clock.readings == 5


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 300), most=st.integers(5, 80), seed=st.integers(0, 99))
def test_rows_that_differ_are_shared_out_evenly(n, most, seed):
    X = default_rng(seed).standard_normal((n, 3))
    splits = grow(X, np.arange(len(X)), L, most, default_rng(0))
    sizes = np.bincount(splits(X), minlength=splits.n_leaves)
    assert sizes.sum() == n
    assert sizes.max() <= most
    assert sizes.max() - sizes.min() <= 1


def test_a_row_falls_into_the_same_leaf_alone_and_among_others():
    X = default_rng(0).standard_normal((200, 3))
    splits = grow(X, np.arange(len(X)), L, 20, default_rng(0))
    np.testing.assert_array_equal(splits(X), [splits(row[None])[0] for row in X])


def test_the_first_cut_is_across_the_direction_that_the_metric_stretches_most():
    X = default_rng(0).standard_normal((500, 3))
    for stretch in (np.array([1.0, 9.0, 1.0]), np.diag([1.0, 9.0, 1.0])):
        direction = grow(X, np.arange(len(X)), stretch, 250, default_rng(0)).directions[0]
        assert np.abs(direction[1]) > 0.99 * np.linalg.norm(direction)


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (20, 20)])
def test_the_first_principal_component_of_wide_rows_is_that_of_tall_ones(shape):
    Z = default_rng(0).standard_normal(shape) @ np.diag(np.linspace(0.1, 3.0, shape[1]))
    Z -= Z.mean(axis=0)
    u = principal(Z)
    expected = np.linalg.svd(Z)[2][0]
    assert u.shape == (shape[1], 1)
    np.testing.assert_allclose(np.abs(u[:, 0]), np.abs(expected), atol=1e-9)
    assert not principal(np.zeros((3, 5))).any()


def test_equal_rows_stay_together():
    X = np.repeat([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], 50, axis=0)
    splits = grow(X, np.arange(len(X)), L, 10, default_rng(0))
    where = splits(X)
    assert len(set(where[:50])) == len(set(where[50:])) == 1
    assert where[0] != where[-1]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40))
def test_the_middle_is_in_the_gap_nearest_to_half_of_the_rows(values):
    values = np.array(values, dtype=float)
    right = int((values > middle(values)).sum())
    possible = [int((values > v).sum()) for v in np.unique(values)]
    best = min(abs(p - len(values) / 2) for p in possible if p or len(possible) == 1)
    assert abs(right - len(values) / 2) == best


# --- the fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_predictions_are_those_of_the_members_that_held_them_out(weighted):
    bags = with_own_fits(leafy(outputs=2, weighted=weighted))
    fit = fit_leaves(bags)
    sums = features_of(fit)
    assert len(sums.leaves) == 4
    raw = feature_values(sums, bags.x).reshape(240, len(bags.members), 2)
    np.testing.assert_allclose(fit.out_of_fold, bags.out_of_fold(raw), atol=1e-3)
    error = np.square(fit.out_of_fold - bags.y[bags.held_out]).mean()
    assert error < 0.5 * bags.y.var(axis=0).mean()


def test_labels_that_a_member_holds_out_do_not_move_it():
    """Settings are chosen by rows that the first member holds out, so another one is looked at."""
    bags, changed = leafy(), leafy()
    changed.y[changed.folds[1]] = default_rng(7).permutation(changed.y[changed.folds[1]])
    splits = grow(bags.x[:, :-1], np.arange(len(bags.x)), L, 60, default_rng(0))
    leaves = [b.restricted(np.flatnonzero(splits(b.x[:, :-1]) == 0)) for b in (bags, changed)]
    bumps = features_of(fit_leaves(bags)).leaves[0].bumps
    members = [DualRidge(leaf, leaf.groups[0], bumps, map).fit(1, 0.1) for leaf in leaves]
    np.testing.assert_array_equal(members[0].held_out, members[1].held_out)


def test_no_bit_depends_on_the_number_of_threads():
    bags = leafy()
    alone = fit_leaves(bags)
    with team(most=2) as threads:
        shared = fit_leaves(
            bags, replace(RUN, team=threads, workers=partial(threads_as_workers, threads))
        )
    np.testing.assert_array_equal(alone.out_of_fold, shared.out_of_fold)


def counted_fits(monkeypatch):
    """A list that gets an entry for every kernel machine that is fitted, trials included."""
    fitted = []

    def fit(*given):
        fitted.append(given)
        return fit_kernel(*given)

    monkeypatch.setattr(local_kernels, "fit_kernel", fit)
    return fitted


def test_without_time_for_every_leaf_there_are_none(monkeypatch):
    fitted = counted_fits(monkeypatch)
    enough = TRIALS + 2
    clock = lambda: 0.0 if len(fitted) < enough else np.inf  # noqa: E731
    monkeypatch.setattr(local_kernels, "perf_counter", clock)
    assert fit_leaves(leafy(), replace(RUN, deadline=1e9)) is None
    assert len(fitted) == enough, "no leaf is fitted after the deadline"


@pytest.mark.parametrize(("left", "leaves"), [(1000, 4), (50, 8)])
def test_leaves_are_smaller_where_time_is_short(monkeypatch, left, leaves):
    # A trial leaf, of 15 rows, takes a second; one of 60 then sixteen.
    now = perf_counter()
    fitted = counted_fits(monkeypatch)
    clock = lambda: now + min(len(fitted), TRIALS)  # noqa: E731
    monkeypatch.setattr(local_kernels, "perf_counter", clock)
    bags = leafy()
    fit = fit_leaves(bags, replace(RUN, deadline=now + 4.0 + left))
    assert features_of(fit).splits.n_leaves == leaves
    if leaves == 4:
        np.testing.assert_array_equal(fit.out_of_fold, fit_leaves(bags).out_of_fold)


@pytest.mark.parametrize(("n_held", "leaves"), [(60, 4), (6, 2), (1, None)])
def test_leaves_are_larger_where_held_out_rows_are_few(n_held, leaves):
    features = features_of(fit_leaves(leafy_apart(n_held)))
    assert isinstance(features, LocalSums if leaves else Bumps)
    assert leaves is None or features.splits.n_leaves == leaves


def test_held_out_rows_do_not_count_as_centres(monkeypatch):
    monkeypatch.setattr("rfrboost._auto.kernel.PrimalRidge", None)  # which is for drawn centres
    sums = features_of(fit_leaves(leafy_apart(240)))
    assert sum(len(leaf.bumps.centres) for leaf in sums.leaves) == 240


def test_a_leaf_without_rows_has_its_neighbours_sums():
    rng = default_rng(0)
    bags = leafy()
    bags.x[:, :-1] = rng.integers(0, 2, (240, 3))
    sums = features_of(fit_leaves(bags))
    far = np.column_stack([rng.uniform(-9, 9, (50, 3)), np.ones(50)])
    assert np.isfinite(feature_values(sums, far)).all()


# --- the model ----------------------------------------------------------------------------------


def steps(n=600):
    X = default_rng(0).uniform(-1, 1, (n, 2))
    return X, np.sign(np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1]))


@pytest.fixture(scope="module")
def local_model():
    X, y = steps()
    model = with_sizes(RFRBoostRegressor(features=("bumps",), random_state=0), SMALL_LEAVES)
    return model.fit(X, y), X, y


def test_a_model_of_leaves_learns_what_is_local(local_model):
    model, _, _ = local_model
    assert model.oof_score_ > 0.5
    assert isinstance(model.network_.layers[-1].features.from_x, LocalSums)


def test_its_input_gradient_is_its_slope(local_model):
    model, X, _ = local_model
    probes, e = X[:40] + 0.013, 1e-3
    for j in range(2):
        ahead, behind = probes.copy(), probes.copy()
        ahead[:, j] += e
        behind[:, j] -= e
        slope = (model.predict(ahead) - model.predict(behind)) / (2 * e)
        difference = np.abs(slope - model.input_gradient(probes)[:, j])
        # A leaf's edge, or a centre, may lie between two of a few points.
        assert np.median(difference) < 0.02 * np.abs(slope).max()


def test_saved_it_is_the_same_to_the_bit(local_model, tmp_path):
    model, X, _ = local_model
    model.save(tmp_path / "m.rfr")
    np.testing.assert_array_equal(load(tmp_path / "m.rfr").predict(X), model.predict(X))


def test_in_onnx_it_is_the_same(local_model):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, X, _ = local_model
    X = X.astype(np.float32)
    session = runtime.InferenceSession(model.to_onnx().SerializeToString())
    name = session.get_inputs()[0].name
    for rows in (X, X[:1]):
        predicted = session.run(None, {name: rows})[0].ravel()
        np.testing.assert_allclose(predicted, model.predict(rows), atol=1e-5)


def test_in_pytorch_it_is_the_same_and_comes_back(local_model):
    torch = pytest.importorskip("torch")
    model, X, _ = local_model
    module = model.to_torch()
    predicted = module(torch.tensor(model.encode(X))).detach().numpy().ravel()
    np.testing.assert_allclose(predicted, model.predict(X), atol=1e-5)


def test_classes_are_told_apart_in_leaves():
    X, y = steps()
    labels = np.where(y > 0, "up", "down")
    model = with_sizes(RFRBoostClassifier(random_state=0), SMALL_LEAVES).fit(X, labels)
    assert model.oof_score_ > 0.85
    assert np.isfinite(model.predict_proba(X)).all()


def test_splits_of_one_leaf_send_every_row_there():
    none = Splits(np.zeros((0, 3)), np.zeros(0))
    np.testing.assert_array_equal(none(np.ones((4, 3))), 0)
