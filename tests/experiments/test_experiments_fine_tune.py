"""End-to-end training from two starts: one run, the report, the figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from model_zoo import classification, regression

from experiments.data.protocols import Fold
from experiments.models.scoring import Scores
from experiments.reports.fine_tune import draw_curves, epoch_rows, table_rows, verdict
from experiments.runs import fine_tune as fine_tune_runs
from experiments.runs.fine_tune import BOOSTED, RANDOM
from experiments.runs.jobs import Job, Result
from experiments.runs.provenance import current
from rfrboost import RFRBoostRegressor

AIRFOIL, VEHICLE = 44957, 54


def made_up(results: dict[tuple[int, str], float]) -> list[Result]:
    """Results with these scores, after a curve of two epochs."""
    found = []
    for (table, start), score in results.items():
        task = "regression" if table > 1000 else "classification"
        details = {"task": task, "curve": [0.5, score], "best_epoch": 1}
        scores = Scores(0.0, score, 1.0, 0.0, details)
        job = Job("strict", table, start, 0, fine_tune_runs.recipe_for(task, 1, None))
        found.append(Result(job, scores, None))
    return found


def test_a_lower_rmse_and_a_higher_accuracy_are_gains():
    results = made_up(
        {
            (AIRFOIL, BOOSTED): 0.2,
            (AIRFOIL, RANDOM): 0.3,
            (VEHICLE, BOOSTED): 0.7,
            (VEHICLE, RANDOM): 0.8,
        }
    )
    lines = table_rows(results)
    assert lines["gain"].tolist() == pytest.approx([0.2, -0.2])
    assert "ahead on 1 of 2 tables: too few" in verdict(lines)


def test_the_verdict_follows_the_test():
    gains = pd.DataFrame({"gain": np.arange(1, 13) / 100})
    assert "hypothesis that boosting is the better start holds" in verdict(gains)
    assert "is not borne out" in verdict(-gains)
    mixed = gains * np.where(np.arange(12) % 2, 1, -1)[:, None]
    assert "is not borne out" in verdict(mixed)


def test_the_figure_and_the_rows_have_every_epoch(tmp_path):
    results = made_up({(AIRFOIL, BOOSTED): 0.2, (AIRFOIL, RANDOM): 0.3})
    rows = epoch_rows(results)
    assert rows["score"].tolist() == [0.5, 0.2, 0.5, 0.3]
    assert rows.loc[rows["chosen"], "epoch"].tolist() == [1, 1]
    draw_curves(rows, tmp_path, [current()])
    assert current().commit in (tmp_path / "fine-tune.svg").read_text(encoding="utf-8")
    assert {p.name for p in tmp_path.iterdir()} == {"fine-tune.svg", "fine-tune.png"}


@pytest.fixture
def small(monkeypatch):
    """A small table, a small network, one learning rate."""
    X, y = regression(400)
    fold = Fold(X[:300].astype(np.float32), y[:300], X[300:].astype(np.float32), y[300:])
    shape = {**fine_tune_runs.SHAPE, "n_layers": 1, "hidden_dim": 20, "n_features": (10, 10)}
    monkeypatch.setattr(fine_tune_runs, "SHAPE", shape)
    monkeypatch.setattr(fine_tune_runs, "LEARNING_RATES", (1e-3, 3e-3))
    monkeypatch.setattr(fine_tune_runs, "rows_for", lambda job, data: fold)
    return fold, shape


def test_a_boosted_start_is_the_boosted_model_and_a_random_one_is_not(small):
    pytest.importorskip("torch")
    fold, shape = small
    recipe = fine_tune_runs.recipe_for("regression", 3, None)
    curves = {}
    for start in (BOOSTED, RANDOM):
        scores = fine_tune_runs.tune(Job("strict", AIRFOIL, start, 0, recipe), Path())
        curves[start] = scores.details["curve"]
        assert len(curves[start]) == 4
        assert scores.test_score == curves[start][scores.details["best_epoch"]]
    fit, held = fine_tune_runs.cut(len(fold.y_train), 0, 0)
    assert sorted([*fit, *held]) == list(range(300))
    model = RFRBoostRegressor(**shape, random_state=0).fit(fold.X_train[fit], fold.y_train[fit])
    error = np.sqrt(np.mean((model.predict(fold.X_test) - fold.y_test) ** 2))
    assert curves[BOOSTED][0] == pytest.approx(error, rel=1e-4)
    assert curves[RANDOM][0] > 1.2 * error
    assert curves[RANDOM][-1] < curves[RANDOM][0]


def test_classes_are_scored_by_accuracy(small, monkeypatch):
    pytest.importorskip("torch")
    X, y = classification(400)
    codes = np.unique(y, return_inverse=True)[1]
    fold = Fold(X[:300], codes[:300], X[300:], codes[300:])
    monkeypatch.setattr(fine_tune_runs, "rows_for", lambda job, data: fold)
    recipe = fine_tune_runs.recipe_for("classification", 2, 200)
    scores = fine_tune_runs.tune(Job("strict", VEHICLE, BOOSTED, 0, recipe), Path())
    assert all(0.5 < score <= 1 for score in scores.details["curve"])
