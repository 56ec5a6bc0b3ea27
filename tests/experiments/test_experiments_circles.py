"""Concentric circles: the generator, the grid search, the command and its picture."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import untraceable
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from experiments.__main__ import main
from experiments.commands import circles
from experiments.data import synthetic
from experiments.data.protocols import Fold
from experiments.models.grids import candidates, combinations, grid, with_choice
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import Scores
from experiments.reports.circles import rfrboost_layers, run_rows, summary_row
from experiments.runs import jobs, search
from experiments.runs.files import read_table


def test_nine_rings_whose_classes_take_turns():
    X, y = synthetic.concentric_rings(0)
    assert X.shape == (9999, 2)
    assert X.max() == 1
    # The noise lies in [0, 0.4): its centre moves the rings, its size is below half a gap.
    scale = 1 / np.abs(X).max() * (9 + 0.4)
    radius = np.hypot(*(X * scale - 0.2).T)
    ring = np.rint(radius).astype(int)
    assert set(ring) == set(range(1, 10))
    assert np.abs(radius - ring).max() < 0.45
    np.testing.assert_array_equal(y, (ring - 1) % 3)
    assert set(np.bincount(ring)[1:]) == {1111}


def test_a_run_has_rings_of_its_own_and_halves_that_do_not_meet():
    first, again, other = synthetic.rings_fold(0), synthetic.rings_fold(0), synthetic.rings_fold(1)
    np.testing.assert_array_equal(first.X_train, again.X_train)
    assert not np.array_equal(first.X_train, other.X_train)
    assert (len(first.y_train), len(first.y_test)) == (4999, 5000)
    points = {tuple(point) for point in np.vstack([first.X_train, first.X_test])}
    assert len(points) == 9999


def test_the_inputs_alone_cannot_be_separated():
    fold = synthetic.rings_fold(0)
    assert (
        LogisticRegression().fit(fold.X_train, fold.y_train).score(fold.X_test, fold.y_test) < 0.4
    )


# --- grid search ------------------------------------------------------------------------------


def small_fold(seed: int = 0) -> Fold:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    return Fold(X[:200], y[:200], X[200:], y[200:])


def splits(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(KFold(3, shuffle=True, random_state=0).split(np.empty(n_rows)))


def test_combinations_are_all_of_them():
    rows = combinations({"a": [1, 2], "b": [3, 4]})
    assert rows == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]


@pytest.mark.parametrize("criterion", ["error rate", "log loss"])
def test_depths_from_one_fit_are_those_of_fits_of_their_own(criterion):
    fixed = {"n_features": (32, 32), "l2_head": 1e-3}
    varied = combinations({"l2_step": [1e-1, 1e-3], "n_layers": [1, 3]})
    recipes = candidates(grid("RFRBoostClassifier", fixed, varied, criterion))
    rule = search.CRITERIA[criterion]
    shared = search.split_losses(recipes, small_fold(), rule, seed=0)
    alone = [search.group_losses([recipe], small_fold(), rule, seed=0)[0] for recipe in recipes]
    assert [len(group) for group in search.depth_groups(recipes)] == [2, 2]
    np.testing.assert_allclose(shared, alone, rtol=1e-9)


def test_the_search_sees_training_rows_only_and_takes_the_least_loss():
    fold = small_fold()
    varied = combinations({"l2_head": [100.0, 1e-3]})
    rfnn = grid("RFNNClassifier", {"n_features": 64}, varied, "log loss")
    chosen, loss = search.best_candidate(rfnn, fold, splits(200), seed=0)
    spoilt = Fold(fold.X_train, fold.y_train, fold.X_test * np.nan, fold.y_test)
    assert (chosen, loss) == search.best_candidate(rfnn, spoilt, splits(200), seed=0)
    assert chosen == {"l2_head": 1e-3}
    losses = search.split_losses(
        candidates(rfnn),
        Fold(*(part[rows] for rows in splits(200)[0] for part in (fold.X_train, fold.y_train))),
        search.CRITERIA["log loss"],
        seed=0,
    )
    assert losses[1] < losses[0]


def test_a_diverged_candidate_is_left_out_and_all_diverged_is_an_error(monkeypatch):
    def build_or_diverge(recipe: Recipe, n_train: int, seed: int):
        if recipe.parameters["l2_head"] == 1.0:
            raise FloatingPointError("diverged")
        return build(recipe, n_train, seed)

    monkeypatch.setattr(search, "build", build_or_diverge)
    both, bad = (
        grid("LogisticRegression", {}, combinations({"l2_head": l2}), "error rate")
        for l2 in ([1.0, 0.1], [1.0])
    )
    assert search.best_candidate(both, small_fold(), splits(200), 0)[0] == {"l2_head": 0.1}
    with pytest.raises(ArithmeticError, match="Every candidate"):
        search.best_candidate(bad, small_fold(), splits(200), 0)


def test_fit_seconds_are_those_of_search_and_refit():
    logistic = circles.GRIDS["logistic"]
    scores = search.tuned_scores(logistic, small_fold(), "classification", splits(200), seed=0)
    assert scores.fit_seconds > scores.details["refit_seconds"]
    assert scores.details["chosen"] in logistic.parameters["candidates"]


# --- the command ------------------------------------------------------------------------------


def test_rfrboost_separates_the_circles():
    """One run, with a candidate of the grid, without the search: above what the paper reports."""
    model = circles.GRIDS["rfrboost-swim"]
    choice = {"l2_step": 1e-6, "l2_head": 1e-5}
    assert choice in model.parameters["candidates"]
    fold = synthetic.rings_fold(0)
    fitted = build(with_choice(model, choice), len(fold.y_train), 0)
    assert fitted.fit(fold.X_train, fold.y_train).score(fold.X_test, fold.y_test) > 0.995


def test_the_command_writes_table_and_picture_and_continues(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(
        circles.GRIDS,
        "rfrboost-swim",
        grid(
            "RFRBoostClassifier",
            {"n_layers": 2, "n_features": (64, 64), "normalize": True, "l2_head": 1e-4},
            [{"l2_step": 1e-4}],
            "log loss",
        ),
    )
    words = ["circles", "--models", "logistic,rfrboost-swim", "--runs", "1", "--jobs", "1"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "0 already done" in capsys.readouterr().err
    assert untraceable(tmp_path) == []
    rows = read_table(tmp_path / "circles.csv")
    assert rows["model"].tolist() == ["rfrboost-swim", "logistic"]
    assert (tmp_path / "circles-layers.svg").read_text().startswith("<?xml")
    assert (tmp_path / "circles-layers.png").stat().st_size > 10_000
    before = (tmp_path / "circles-layers.svg").read_bytes()
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "jobs to run" not in capsys.readouterr().err
    assert (tmp_path / "circles-layers.svg").read_bytes() == before


def test_spread_and_published_runs_stand_side_by_side(tmp_path):
    theirs = tmp_path / "runs.csv"
    theirs.write_text("RFRBoost SWIM,RFNN\n0.9,0.5\n1.0,0.7\n")
    results = [
        jobs.Result(
            jobs.Job("rings", "circles", "rfrboost-swim", k, circles.GRIDS["rfrboost-swim"]),
            Scores(1.0, accuracy, 1.0, 0.1, {"chosen": {"l2_head": 0.1}}),
            None,
        )
        for k, accuracy in enumerate([0.98, 1.0])
    ]
    row = summary_row("rfrboost-swim", run_rows(results), pd.read_csv(theirs))
    assert row["mean"] == pytest.approx(0.99)
    assert row["std"] == pytest.approx(0.01)
    assert (row["worst"], row["published mean"]) == (0.98, pytest.approx(0.95))
    assert row["published std"] == pytest.approx(0.05)


def test_the_layers_drawn_are_those_the_head_sees():
    fold = synthetic.rings_fold(0)
    recipe = Recipe(
        "RFRBoostClassifier", {"n_layers": 2, "n_features": (16, 16), "normalize": True}
    )
    model = build(recipe, 1000, 0).fit(fold.X_train[:1000], fold.y_train[:1000])
    layers = rfrboost_layers(model, fold.X_test)
    assert [layer.shape for layer in layers] == [(5000, 2)] * 3
    np.testing.assert_allclose(layers[-1], model.transform(fold.X_test), atol=1e-9)
    assert not np.allclose(layers[1], layers[2])


@pytest.mark.parametrize(
    "words",
    [["--tables", "44956"], ["--models", "forest"], ["--published-runs", "nowhere.csv"]],
    ids=["table", "model", "published"],
)
def test_what_cannot_be_done_is_one_sentence_and_nothing_is_written(tmp_path, capsys, words):
    out = tmp_path / "out"
    if words[0] != "--models":
        words = [*words, "--models", "logistic"]
    assert main(["circles", *words, "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


def test_without_torch_the_mlp_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("experiments.requests._is_installed", lambda name: name != "torch")
    assert main(["circles", "--models", "mlp", "--out", str(tmp_path / "out")]) == 2
    assert "torch" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
