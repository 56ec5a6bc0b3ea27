"""``importances``: rank correlations, their report, and the command."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, in_this_process, untraceable

from experiments.__main__ import main
from experiments.commands import importances
from experiments.data.tables import known_table
from experiments.models.scoring import Scores
from experiments.runs import measured
from experiments.runs.jobs import Job, Result

BALANCE = 11


def test_ranks_are_compared_and_a_constant_has_none():
    assert importances.rank_correlation(np.arange(4), np.exp(np.arange(4.0))) == pytest.approx(1)
    assert importances.rank_correlation(np.arange(4), -np.arange(4)) == pytest.approx(-1)
    assert np.isnan(importances.rank_correlation(np.zeros(4), np.arange(4)))


def result(dataset, **found):
    recipe = importances.RECIPES[known_table(dataset).task]
    job = Job(importances.PROTOCOL, dataset, importances.NAME, 0, recipe)
    details = {"rows": 9, "columns": 3, "loss": 0.5, "repeats": 1.0, **found}
    return Result(job, Scores(0.0, 0.0, 1.0, 1.0, details), None)


def test_the_summary_has_medians_of_what_is_defined():
    results = [result(ENERGY, score=0.8, seeds=0.9), result(BALANCE, score=np.nan, seeds=1.0)]
    summary = importances.summary_rows(importances.table_rows(results)).set_index("correlation")
    assert summary.loc["permutation", ["tables", "median"]].tolist() == [1, 0.8]
    assert summary.loc["seeds", ["tables", "median"]].tolist() == [2, pytest.approx(0.95)]
    text = importances.report(importances.table_rows(results), results)
    assert text.index("energy_efficiency") < text.index("balance-scale")


class Oracle:
    """Predicts the first column, and class 1 with the probability in it."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return X[:, 0]

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_scores_are_those_of_all_rows_and_of_both_halves():
    X = np.array([[0.9], [0.1], [0.8], [0.6]])
    found = importances.class_scores(Oracle(), X, np.array([1, 0, 1, 0]))
    assert found["score"] == 0.75
    assert (found["score, even"], found["score, odd"]) == (1.0, 0.5)
    assert found["loss"] == pytest.approx((found["loss, even"] + found["loss, odd"]) / 2)
    numbers = importances.regression_scores(Oracle(), X, np.array([0.9, 0.1, 0.8, 0.0]))
    assert numbers["score, even"] == 1.0 > numbers["score"] > numbers["score, odd"]


def test_wide_tables_hold_out_fewer_rows_and_narrow_ones_all():
    assert importances.held_out_rows(2500, 4) == 2500
    assert importances.held_out_rows(2500, 10) == 1000
    assert importances.held_out_rows(2500, 3000) == importances.FEWEST_HELD_OUT
    assert importances.held_out_rows(60, 3000) == 60


def test_the_command_fits_compares_writes_and_continues(made_up, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measured, "run_jobs", in_this_process)
    monkeypatch.setattr(importances, "REPEATS", 2)
    words = ["importances", "--data", str(made_up / "data"), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert untraceable(tmp_path / "out") == []
    rows = pd.read_csv(tmp_path / "out" / "importances.csv", comment="#")
    # y is the sum of all columns and noise: their ranks are chance, and seeds agree all the same.
    assert rows["columns"].tolist() == [8]
    assert rows["seeds"].item() > 0.7
    monkeypatch.setattr(importances, "compared", None)
    assert main(words) == 0
    assert capsys.readouterr().out == printed
