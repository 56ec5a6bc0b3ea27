"""The regret experiment: the problem, fresh rows for every layer, and the command."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import untraceable

from experiments.__main__ import main
from experiments.commands import regret
from experiments.data import synthetic
from experiments.runs.files import read_table
from experiments.runs.jobs import Job


def test_the_best_prediction_has_the_bayes_risk():
    X, y = synthetic.sample(200_000, np.random.default_rng(0))
    best = synthetic.regression_function(X)
    assert np.mean((y - best) ** 2) == pytest.approx(synthetic.BAYES_RISK, rel=0.01)
    assert synthetic.excess_risk(best, X) == 0
    assert abs(best.mean()) < 0.02
    assert best.std() == pytest.approx(1, abs=0.05)


def test_excess_risk_is_risk_above_the_bayes_risk():
    X, y = synthetic.sample(200_000, np.random.default_rng(1))
    prediction = X[:, 3]
    above = np.mean((y - prediction) ** 2) - synthetic.BAYES_RISK
    assert synthetic.excess_risk(prediction, X) == pytest.approx(above, abs=0.01)


def test_the_decay_is_one_the_theorem_allows():
    beta = 1.0
    assert (beta + 1) / (beta + 2) < regret.DECAY < 1
    for recipe in regret.RECIPES.values():
        assert recipe.parameters["learning_rate"] == (1.0, regret.DECAY)
        assert recipe.parameters["sample_splitting"] is True
        assert recipe.parameters["n_features"][1] == 0, "blocks see Φ and not x"


def small_job(n_rows: int, seed: int) -> Job:
    return Job(f"rows-{n_rows}", "friedman", "gradient-swim", seed, regret.RECIPES["gradient-swim"])


def test_excess_risk_falls_with_layers_and_with_rows():
    few, many = (
        regret.boost_on_fresh_rows(small_job(n_rows, seed=0)).details["excess_risk"]
        for n_rows in (128, 512)
    )
    assert few["64"] < few["1"]
    assert many["64"] < many["1"]
    assert many["64"] < few["64"]


def test_slope_is_the_exponent_of_a_power():
    layers = np.array([1, 2, 4, 8])
    rows = pd.DataFrame({"layers": layers, "excess_risk": 3 * layers**-0.3})
    assert regret.slope(rows, "layers") == pytest.approx(-0.3)


def test_the_command_writes_rows_rates_and_figure(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(regret, "ROWS_PER_LAYER", (32, 64))
    monkeypatch.setattr(regret, "N_SEEDS", 2)
    words = ["regret", "--models", "gradient-swim", "--jobs", "1", "--out", str(tmp_path)]
    assert main(words) == 0
    assert untraceable(tmp_path) == []
    rows = read_table(tmp_path / "regret.csv")
    assert len(rows) == 2 * 2 * len(regret.DEPTHS)
    assert (rows["excess_risk"] > 0).all()
    assert (tmp_path / "regret.svg").stat().st_size > 10_000
    assert (tmp_path / "regret.png").stat().st_size > 10_000
    assert "exponent in T, ñ = 64" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--tables", "44956"], ["--models", "forest"]])
def test_what_cannot_be_done_is_one_sentence(tmp_path, capsys, words):
    out = tmp_path / "out"
    assert main(["regret", *words, "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()
