"""The threshold with the best metric, by out-of-fold probabilities."""

import numpy as np
import pytest
from numpy.random import default_rng
from sklearn.metrics import balanced_accuracy_score, f1_score

from rfrboost import RFRBoostClassifier
from rfrboost.inspection import best_threshold


class Known(RFRBoostClassifier):
    """A model that is fitted and says what it is told to."""

    oof_prediction_ = None
    classes_ = np.array(["a", "b"])

    def __sklearn_is_fitted__(self):
        return True


def known(probability):
    """That model with these out-of-fold probabilities of the class "b"."""
    told = {"oof_prediction_": np.column_stack([1 - probability, probability])}
    return type("Told", (Known,), told)()


@pytest.mark.parametrize("metric", ["f1", "balanced_accuracy", balanced_accuracy_score])
def test_no_other_threshold_is_better(metric):
    rng = default_rng(0)
    probability = rng.random(300)
    y = np.where(rng.random(300) < probability**3, "b", "a")
    threshold, score = best_threshold(known(probability), y, metric)
    function = f1_score if metric == "f1" else balanced_accuracy_score
    right = y == "b"
    assert score == pytest.approx(function(right, probability >= threshold))
    assert score == pytest.approx(max(function(right, probability >= t) for t in probability))
    assert abs(threshold - 0.5) > 0.02


def test_weights_count_and_rows_without_prediction_do_not():
    rng = default_rng(0)
    probability = rng.random(300)
    y = np.where(rng.random(300) < probability, "b", "a")
    w = rng.integers(0, 3, 300)
    weighted = best_threshold(known(probability), y, "f1", sample_weight=w)
    repeated = best_threshold(known(probability.repeat(w)), y.repeat(w), "f1")
    assert weighted.score == pytest.approx(repeated.score)
    missing = probability.copy()
    missing[:50] = np.nan
    there = best_threshold(known(missing), y, "f1", sample_weight=w)
    assert there == best_threshold(known(probability[50:]), y[50:], "f1", sample_weight=w[50:])


def test_metrics_of_probabilities_and_three_classes_are_refused():
    probability = default_rng(0).random(30)
    with pytest.raises(ValueError, match="no threshold changes"):
        best_threshold(known(probability), np.repeat(["a", "b"], 15), "roc_auc")
    X = default_rng(0).standard_normal((60, 2))
    three = RFRBoostClassifier(n_layers=1, n_features=4).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="two classes"):
        best_threshold(three, np.arange(60) % 3, X=X)
