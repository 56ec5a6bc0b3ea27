"""Time limits by a clock that ticks with every reading: every stage stops, and a model is left."""

from dataclasses import replace

import numpy as np
import pytest
from fake_clock import Clock, install
from numpy.random import default_rng
from sklearn.linear_model import LogisticRegression
from small_bags import RUN, SHARED, features_for, table
from small_sizes import with_sizes

from rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._auto import fit as auto_fit
from rfrboost._auto import linear
from rfrboost._auto.assemble import stack
from rfrboost._auto.fit import boosting_settings
from rfrboost._auto.layer import (
    BATCHES_AT_ONCE,
    FEWEST_PROBES,
    GroupDraws,
    GroupFeatures,
    linear_layers,
)
from rfrboost._auto.linear import LEAST_ROWS, affordable, likeliest, linear_work
from rfrboost._auto.members import boost_members
from rfrboost._estimators.parameters import Parameters, plan_for
from rfrboost._model.losses import SquaredError
from rfrboost._model.samplers import SparseSWIM
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import OutOfTimeError

PENALTIES = tuple(10.0 ** np.arange(-5, 1.6, 0.5))
FEW_LAYERS = {"n_features": 16, "n_bags": 2, "random_state": 0}


def rows(n=160, D=4, seed=0):
    rng = default_rng(seed)
    X = rng.standard_normal((n, D))
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def readings():
    """How often a fit without a limit that is felt reads the clock."""
    with pytest.MonkeyPatch.context() as patch:
        clock = install(patch, Clock())
        RFRBoostRegressor(**FEW_LAYERS, max_seconds=1e9).fit(*rows())
        return clock.readings


@pytest.mark.parametrize("part", [0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
def test_wherever_time_runs_out_the_fit_ends_with_a_model_no_worse_than_a_linear_one(
    monkeypatch, readings, part
):
    X, y = rows()
    limit = max(part * readings, 1e-3)
    clock = install(monkeypatch, Clock())
    model = RFRBoostRegressor(**FEW_LAYERS, max_seconds=limit).fit(X, y)
    # A stage reads the clock once or twice before it ends, and there are few stages.
    assert clock.readings <= limit + 20
    fresh, truth = rows(500, seed=1)
    straight = np.linalg.lstsq(np.c_[X, np.ones(len(X))], y, rcond=None)[0]
    wrong = truth - np.c_[fresh, np.ones(500)] @ straight
    assert np.mean((model.predict(fresh) - truth) ** 2) < 1.15 * np.mean(wrong**2)


def test_many_rows_and_labels_end_in_time_too(monkeypatch):
    X, y = rows(700)
    sizes = Sizes(shared_draw_rows=100, most_centres=100, leaf_held_out_rows=5)
    fresh, truth = rows(500, seed=1)
    straight = LogisticRegression().fit(X, y > 0).score(fresh, truth > 0)
    for limit in (1e-3, 10, 40, 120):
        clock = install(monkeypatch, Clock())
        model = with_sizes(RFRBoostClassifier(**FEW_LAYERS, max_seconds=limit), sizes)
        model.fit(X, y > 0)
        assert clock.readings <= limit + 40
        assert model.score(fresh, truth > 0) > straight - 0.02


def test_importances_are_there_where_time_is_up(monkeypatch):
    install(monkeypatch, Clock())
    late = RFRBoostRegressor(**FEW_LAYERS, max_seconds=1e-3).fit(*rows())
    assert late.feature_importances_.sum() == pytest.approx(1.0)
    assert late.oof_prediction_.shape == (160,)


# Linear members


def test_with_time_for_it_everything_is_fitted(monkeypatch):
    install(monkeypatch, Clock())
    assert affordable(table(), PENALTIES, 1e9) == (1, PENALTIES)


def test_penalties_are_given_up_before_rows(monkeypatch):
    n = 16 * LEAST_ROWS
    bags = table(n=n)
    # A trial of one second: so many operations a second.
    rate = SIZES.kernel_strip_rows * 9
    found = []
    for seconds in (1e9, 256.2, 200, 20, 0):
        install(monkeypatch, Clock())
        every, some = affordable(bags, PENALTIES, 1 + seconds)
        found.append((len(some), -every))
        work = linear_work(n // every, 3, len(some) * 3)
        share = linear.LINEAR_SHARE if len(some) > 1 else linear.ALL_ROWS_SHARE
        enough = work <= rate * share * max(seconds, linear.LEAST_SECONDS)
        assert enough or n // (2 * every) < LEAST_ROWS
        assert every == 1 or len(some) == 1
    assert found == sorted(found, reverse=True)
    assert found[0] == (len(PENALTIES), -1)
    assert 1 < found[1][0] < len(PENALTIES)
    assert found[-1][1] < -1


def test_one_penalty_of_all_rows_may_take_half_of_the_time(monkeypatch):
    n = 16 * LEAST_ROWS
    bags = table(n=n)
    rate = SIZES.kernel_strip_rows * 9
    for share, expected in ((0.4, 1), (0.6, 2)):
        install(monkeypatch, Clock())
        seconds = linear_work(n, 3, 3) / rate / share
        every, some = affordable(bags, PENALTIES, 1 + seconds)
        assert len(some) == 1
        assert every == expected


def test_the_penalties_left_are_near_the_columns_per_row():
    assert likeliest(PENALTIES, 1, 1000, 10) == (PENALTIES[6],)
    assert PENALTIES[6] == pytest.approx(0.01)
    assert likeliest(PENALTIES, 3, 100, 100) == PENALTIES[9:12]
    assert likeliest(PENALTIES, len(PENALTIES), 7, 3) == PENALTIES
    assert likeliest((0.0, 1.0), 1, 10, 10) == (1.0,)


def test_members_of_fewer_rows_predict_all_of_them(monkeypatch):
    bags = table(n=900)
    start = np.zeros((900, 3, 1))
    monkeypatch.setattr("rfrboost._auto.layer.affordable", lambda *_: (4, PENALTIES[:1]))
    ((penalty, own, raw),) = linear_layers(bags, start, SquaredError(), PENALTIES, map, 1.0)
    assert penalty == PENALTIES[0]
    np.testing.assert_allclose(raw, (bags.x[:, :-1] @ own.C + own.c)[:, :, None])
    ((_, whole, _),) = linear_layers(bags, start, SquaredError(), PENALTIES[:1], map)
    assert not np.array_equal(whole.C, own.C)
    np.testing.assert_allclose(whole.C, own.C, atol=0.2)


# Layers


def test_a_layer_that_cannot_end_in_time_is_given_up(monkeypatch):
    sizes = replace(SHARED, batch_rows=10)
    bags = table(n=300, sizes=sizes)
    features = features_for(bags)
    R = bags.y - bags.y.mean()
    for deadline, ends in ((1.0, False), (4.0, False), (1e9, True)):
        clock = install(monkeypatch, Clock())
        passes = GroupFeatures(bags, bags.groups[0], map, deadline)
        if ends:
            assert len(passes.first_pass(features, R, bags.w)) == len(bags.folds)
        else:
            with pytest.raises(OutOfTimeError):
                passes.first_pass(features, R, bags.w)
            assert clock.readings <= deadline + 2
            assert len(passes.batches) > BATCHES_AT_ONCE


def test_no_layer_is_begun_that_would_end_after_the_deadline(monkeypatch):
    bags = table(n=300)
    plan = plan_of(n_features=8)
    settings = boosting_settings(bags, plan, plan.first_samplers[0], plan.samplers[0])
    start = np.zeros((300, 3, 1))
    layers = []
    for deadline in (0.0, 20.0, 60.0, np.inf):
        clock = install(monkeypatch, Clock())
        run = replace(RUN, deadline=deadline)
        best, *_ = boost_members(bags, start, SquaredError(), settings, default_rng(0), run)
        assert clock.readings <= deadline + 5
        layers.append(len(best.layers))
    assert layers == sorted(layers)
    assert layers[0] == 0 < layers[-1]


def plan_of(**parameters):
    return plan_for(Parameters(**parameters), SquaredError(), 1.0, "regression", 300, 0, SIZES)


# Weights


def test_weighting_ends_with_the_iteration_in_which_time_is_up(monkeypatch):
    rng = default_rng(0)
    y = rng.standard_normal((200, 1))
    families = [y + rng.standard_normal((200, 1)), y + 0.5 * rng.standard_normal((200, 1))]
    calls = []

    class NotedLoss(SquaredError):  # noqa: N818 (the loss is no exception)
        def value_and_gradient(self, raw, y):
            calls.append(1)
            return super().value_and_gradient(raw, y)

    spent = []
    for deadline in (0.0, np.inf):
        calls.clear()
        install(monkeypatch, Clock())
        v, _ = stack(families, y, np.ones(200), NotedLoss(), deadline)
        assert (v >= 0).all()
        spent.append(len(calls))
    assert spent[0] < spent[1]


# Memory of wide tables


def test_wide_tables_have_fewer_layers():
    plan = plan_of(n_features=8)
    bags = table(n=300, sizes=Sizes(layer_bytes=8 * 4 * 8 * 3 * 5))
    own = boosting_settings(bags, plan, plan.first_samplers[0], plan.samplers[0])
    assert own.n_layers == 5
    least = table(n=300, sizes=Sizes(layer_bytes=1))
    own = boosting_settings(least, plan, plan.first_samplers[0], plan.samplers[0])
    assert own.n_layers == 1
    assert auto_fit.SIZES.layer_bytes == SIZES.layer_bytes


def test_features_of_wide_tables_are_drawn_from_fewer_rows():
    drawn = []

    class Noted(SparseSWIM):
        def sample(self, Z, Y, n_features, rng):
            drawn.append(Z.size)
            return super().sample(Z, Y, n_features, rng)

    sampler = Noted(0.5, "tanh")
    plan = plan_of(n_features=8)
    # Rows are drawn with a column of ones.
    for entries in (10**9, 8 * 2 * 4 * 5, 1):
        bags = table(n=300, sizes=Sizes(drawn_entries=entries, gradient_entries=entries))
        settings = boosting_settings(bags, plan, sampler, sampler)
        draws = GroupDraws(bags, bags.groups[0], settings, default_rng(0), map)
        features = draws.draw(bags, bags.y)
        assert features.width == 8
        assert draws.gradients.size <= max(entries, FEWEST_PROBES * 3)
    assert drawn == [3 * sampler.n_rows(8), 8 * 2 * 3 * 5, 3 * 8 * 2]
