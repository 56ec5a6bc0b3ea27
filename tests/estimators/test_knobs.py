"""``class_weight``, ``n_jobs``, and several labels per row."""

import numpy as np
import pytest
from numpy.random import default_rng

import rfrboost
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks
from rfrboost._numerics.threads import team, threads


def rare(n=200, seed=0):
    """Every sixth row or so is of the class "b"."""
    rng = default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, np.where(X[:, 0] + rng.standard_normal(n) > 1.5, "b", "a")


QUICK = {"n_layers": 2, "n_features": 16, "random_state": 0}


def test_class_weights_are_sample_weights():
    X, y = rare()
    w = default_rng(1).uniform(0.5, 2.0, len(y))
    weighted = RFRBoostClassifier(**QUICK, class_weight={"b": 3.0}).fit(X, y, sample_weight=w)
    by_rows = RFRBoostClassifier(**QUICK).fit(X, y, sample_weight=w * np.where(y == "b", 3.0, 1.0))
    np.testing.assert_array_equal(weighted.predict_proba(X), by_rows.predict_proba(X))


def test_balanced_classes_weigh_the_same_whatever_the_rows_weigh():
    X, y = rare()
    w = default_rng(1).integers(1, 4, len(y)).astype(float)
    balanced = RFRBoostClassifier(**QUICK, class_weight="balanced").fit(X, y, sample_weight=w)
    mass = {label: w[y == label].sum() for label in ("a", "b")}
    own = w / np.array([mass[label] for label in y])
    by_rows = RFRBoostClassifier(**QUICK).fit(X, y, sample_weight=own)
    np.testing.assert_allclose(balanced.predict_proba(X), by_rows.predict_proba(X), atol=1e-8)
    plain = RFRBoostClassifier(**QUICK).fit(X, y)
    assert (balanced.predict(X) == "b").sum() > (plain.predict(X) == "b").sum()


@pytest.mark.parametrize(
    ("weight", "words"),
    [({"c": 2.0}, "names the class 'c'"), ({"a": -1.0}, "zero or more"), ("half", "class_weight")],
)
def test_class_weights_that_mean_nothing_are_refused(weight, words):
    X, y = rare()
    with pytest.raises(ValueError, match=words):
        RFRBoostClassifier(**QUICK, class_weight=weight).fit(X, y)


def test_blocks_have_weights_of_their_own():
    X, y = rare()
    with pytest.raises(ValueError, match="pass weights with the blocks"):
        RFRBoostClassifier(**QUICK, class_weight="balanced").fit(RowBlocks([(X, y)]))


def test_a_model_with_class_weights_is_saved(tmp_path):
    pytest.importorskip("safetensors")
    X, y = rare()
    for weight, kept in (("balanced", "balanced"), ({"b": 2.0}, None)):
        model = RFRBoostClassifier(**QUICK, class_weight=weight).fit(X, y)
        model.save(tmp_path / "model.rfrboost")
        assert rfrboost.load(tmp_path / "model.rfrboost").class_weight == kept


def pool_size():
    with team() as together:
        return getattr(getattr(together, "__self__", None), "_max_workers", 1)


def test_a_team_has_as_many_threads_as_are_asked_for():
    with threads(3):
        assert pool_size() == 3
        with threads(1):
            assert pool_size() == 1
    with threads(-1):
        assert pool_size() >= 1
    with pytest.raises(ValueError, match="n_jobs=0"), threads(0):
        pass


def test_the_number_of_threads_changes_no_bit():
    X, _ = rare()
    y = X[:, 0] * X[:, 1]
    settings = {"n_bags": 2, "features": ("swim",), "random_state": 0}
    here, there = (RFRBoostRegressor(**settings, n_jobs=k).fit(X, y).predict(X) for k in (1, 2))
    np.testing.assert_array_equal(here, there)
