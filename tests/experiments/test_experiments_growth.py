"""The ``growth`` command: sizes, scores of four libraries, memory, figures, report."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import untraceable

from experiments.__main__ import main
from experiments.commands import growth
from experiments.data import whole_tables
from experiments.data.synthetic import MIXED_NOISE, mixed_block, mixed_function, mixed_table
from experiments.data.whole_tables import first_rows, split_table, training_sizes
from experiments.reports.growth import summary_rows, time_rows
from experiments.runs.files import read_table
from experiments.runs.jobs import execute
from experiments.runs.peak_memory import PeakMemory

for library in ("xgboost", "lightgbm", "catboost"):
    pytest.importorskip(library)


@pytest.fixture
def small_covtype(tmp_path, monkeypatch):
    """A table of CoverType's name and kind with 700 rows, in a data folder of its own."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(2000, 300, 700), "slope": rng.normal(size=700)})
    frame["soil"] = pd.Categorical(rng.choice(["clay", "sand"], 700))
    frame.loc[::9, "slope"] = np.nan
    kinds = frame["height"] // 300 % 3
    frame["target"] = pd.Categorical(kinds.astype(int).astype(str))
    (tmp_path / "data" / "classification").mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "classification" / "covtype.parquet")
    monkeypatch.setattr(whole_tables, "COVERTYPE_ROWS", 700)
    monkeypatch.setattr(growth, "run_jobs", run_here)
    monkeypatch.setattr(growth, "PREDICTING_SECONDS", 0.01)
    split_table.cache_clear()
    yield tmp_path / "data"
    split_table.cache_clear()


def run_here(jobs, work, out, n_processes, threads, mix_commits):
    """A worker would be another process, without the small table."""
    return [execute(job, work, out) for job in jobs]


def test_the_command_end_to_end(small_covtype, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["growth", "--data", str(small_covtype), "--tables", "covtype", "--threads", "1"]
    assert main([*words, "--rows", "200,all,9000", "--out", str(out)]) == 0
    assert untraceable(out) == []
    rows = read_table(out / "growth.csv")
    assert sorted(rows["rows"]) == [200] * 4 + [560] * 4, "9,000 rows are more than there are"
    assert set(rows["model"]) == {"rfrboost", "catboost", "lightgbm", "xgboost"}
    assert (rows["score"] > 0.85).all()
    assert (rows["log_loss"] < 1.0).all()
    assert (rows[["fit_seconds", "predict_microseconds"]] > 0).all(axis=None)
    shown = capsys.readouterr().out
    assert "| covtype | 560 |" in shown
    assert "CatBoost, default" in shown
    for name in ("growth-error", "growth-seconds"):
        assert (out / f"{name}.png").stat().st_size > 10_000


def test_sizes_are_powers_of_ten_and_all_and_each_has_the_rows_of_the_smaller(small_covtype):
    assert training_sizes("electricity") == [1000, 10_000, 45_312 - 9063]
    assert training_sizes("generated")[-2:] == [1_000_000, 10_000_000]
    fold = split_table("covtype", small_covtype)
    few, more = first_rows(fold, 50), first_rows(fold, 80)
    assert few.X_train.equals(more.X_train[:50])
    assert few.X_test.equals(more.X_test)
    assert not set(fold.X_train.index) & set(fold.X_test.index)
    assert len(fold.X_test) == 140


def test_words_that_are_no_sizes_are_refused(small_covtype, capsys):
    words = ["growth", "--data", str(small_covtype), "--tables", "covtype", "--rows", "some"]
    assert main(words) == 2
    assert "'all'" in capsys.readouterr().err


def made_up_rows(**values):
    facts = {"table": "t", "task": "regression", "log_loss": np.nan, "rows": 100}
    return pd.DataFrame(values).assign(**facts)


def test_the_summary_ranks_errors_and_compares_times():
    rows = pd.concat(
        [
            made_up_rows(model=["rfrboost", "xgboost"], score=[0.1, 0.2], fit_seconds=[8.0, 2.0]),
            made_up_rows(
                model=["rfrboost", "xgboost"], score=[0.9, 0.8], fit_seconds=[4.0, 2.0]
            ).assign(table="u", task="classification", log_loss=[0.5, 0.4]),
        ]
    )
    ours, other = summary_rows(rows).to_dict("records")
    assert (ours["mean rank"], other["mean rank"]) == ("1.00", "2.00")
    assert (ours["mean rank by log loss"], other["mean rank by log loss"]) == ("2.00", "1.00")
    assert other["tables where ours is ahead"] == "2"
    assert other["our fit time ÷ its, median"] == "3.00"


def test_times_per_row_are_of_ours_alone():
    rows = made_up_rows(model=["rfrboost", "xgboost"], score=[1.0, 1.0], fit_seconds=[0.02, 9.0])
    (row,) = time_rows(rows).to_dict("records")
    assert row == {"table": "t", "µs by rows": "100: 200"}


def test_the_generated_table_is_the_function_and_noise_and_begins_alike_at_every_size():
    frame = mixed_table(3000, 0)
    X = frame.drop(columns="target").to_numpy()
    noise = frame["target"].to_numpy() - mixed_function(X)
    assert X.shape == (3000, 20)
    assert noise.std() == pytest.approx(MIXED_NOISE, rel=0.05)
    assert abs(noise.mean()) < 0.05
    assert not mixed_block(0, 10, 0).equals(mixed_block(1, 10, 0))


def test_the_peak_of_memory_counts_what_was_given_back():
    memory = PeakMemory()
    if np.isnan(memory.before):
        pytest.skip("the system does not let a process reset its peak")
    np.ones(30_000_000).sum()
    assert 200 < memory.grown_by() < 400
    assert PeakMemory().grown_by() < 20, "a new beginning forgets the old peak"


def test_a_failed_fit_is_in_the_report_and_makes_the_exit_code_one(
    small_covtype, tmp_path, capsys, monkeypatch
):
    def fails(job, data):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(growth, "fit_and_measure", fails)
    words = ["growth", "--data", str(small_covtype), "--tables", "covtype", "--rows", "200"]
    assert main([*words, "--out", str(tmp_path)]) == 1
    assert "no luck" in capsys.readouterr().out
