"""The ``growth`` command: sizes, scores of ours, XGBoost and the published, figure, report."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import untraceable

from experiments.__main__ import main
from experiments.commands import growth
from experiments.data import large_tables
from experiments.data.large_tables import LARGE_TABLES, prepared
from experiments.reports.growth import size_rows
from experiments.runs.files import read_table
from experiments.runs.jobs import execute

pytest.importorskip("xgboost")


@pytest.fixture
def small_covtype(tmp_path, monkeypatch):
    """A table of CoverType's name and kind with 700 rows, in a data folder of its own."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(2000, 300, 700), "slope": rng.normal(size=700)})
    kinds = frame["height"] // 300 % 3
    frame["target"] = pd.Categorical(kinds.astype(int).astype(str))
    (tmp_path / "data" / "classification").mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "classification" / "covtype.parquet")
    split, path = large_tables.random_split(0.2), "covtype.parquet"
    small = large_tables.LargeTable(
        "covtype", "CoverType", "classification", 700, 2, path, split, "CoverType"
    )
    monkeypatch.setitem(LARGE_TABLES, "covtype", small)
    monkeypatch.setattr(growth, "run_jobs", run_here)
    return tmp_path / "data"


def run_here(jobs, work, out, n_processes, threads, mix_commits):
    """A worker would be another process, without the small table."""
    prepared.cache_clear()
    return [execute(job, work, out) for job in jobs]


def test_the_command_end_to_end(small_covtype, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["growth", "--data", str(small_covtype), "--rows", "200,560", "--threads", "1"]
    assert main([*words, "--out", str(out)]) == 0
    assert untraceable(out) == []
    rows = read_table(out / "growth.csv")
    # All training rows but one, as the published runs had them.
    assert sorted(rows["rows"]) == [200, 200, 559, 559]
    assert (rows["score"] > 0.9).all()
    assert (rows["log_loss"] < 1.0).all()
    assert (rows[["fit_seconds", "predict_seconds"]] > 0).all(axis=None)
    assert "RFRBoost, default" in capsys.readouterr().out
    assert (out / "growth-covtype.png").stat().st_size > 10_000


def test_published_scores_stand_at_their_sizes():
    ours = pd.DataFrame(
        {
            "model": ["rfrboost", "xgboost"],
            "rows": [4000, 4000],
            "score": [0.8, 0.7],
            "log_loss": [0.5, 0.6],
            "fit_seconds": [1.0, 2.0],
            "predict_seconds": [0.1, 0.2],
        }
    )
    theirs = pd.DataFrame(
        {"model": ["mlp", "mlp", "mlp"], "rows": [2000, 4000, 4000], "score": [0.1, 0.4, 0.6]}
    )
    (row,) = size_rows(ours, theirs).to_dict("records")
    assert row["RFRBoost, default"] == "0.8000"
    assert row["XGBoost, 500 trees: fit seconds"] == "2.0"
    assert row["E2E MLP ResNet, published"] == "0.5000"


def test_a_failed_fit_is_in_the_report_and_makes_the_exit_code_one(
    small_covtype, tmp_path, capsys, monkeypatch
):
    def fails(job, data):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(growth, "fit_and_measure", fails)
    words = ["growth", "--data", str(small_covtype), "--rows", "200", "--out", str(tmp_path)]
    assert main(words) == 1
    assert "no luck" in capsys.readouterr().out
