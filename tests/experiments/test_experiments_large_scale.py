"""Larger-scale curves: tables, sizes, grids, the time limit, the report and the figure."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiment_runs import untraceable

from experiments.__main__ import main
from experiments.commands import large_scale
from experiments.data import large_tables, tables
from experiments.data.large_tables import LARGE_TABLES, prepared
from experiments.data.protocols import Fold
from experiments.models import grids
from experiments.models.grids import candidates
from experiments.models.scoring import Scores
from experiments.reports.large_scale import (
    curve,
    draw_curves,
    markdown_report,
    read_published,
    result_rows,
)
from experiments.runs.files import read_table
from experiments.runs.jobs import Job, Result, write_result

SHARED = tables.REPOSITORY.parent / "shared"
needs_covtype = pytest.mark.skipif(
    not LARGE_TABLES["covtype"].path(SHARED / "data").is_file(),
    reason="CoverType is not on this machine",
)


@pytest.fixture
def small_covtype(tmp_path, monkeypatch):
    """A table of CoverType's name and kind with 9,000 rows, in a data folder of its own."""
    rng = np.random.default_rng(0)
    n = 9000
    frame = pd.DataFrame(
        {"height": rng.normal(2000, 300, n), "flag": rng.integers(0, 2, n).astype(np.int16)}
    )
    frame["target"] = pd.Categorical(np.where(frame["height"] > 2100, "2", "1"))
    (tmp_path / "data" / "classification").mkdir(parents=True)
    frame.to_parquet(tmp_path / "data" / "classification" / "covtype.parquet")
    small = large_tables.LargeTable(
        "covtype",
        "CoverType",
        "classification",
        n,
        2,
        "covtype.parquet",
        large_tables.random_split(0.2),
        "CoverType",
    )
    monkeypatch.setitem(LARGE_TABLES, "covtype", small)
    return small, tmp_path / "data"


# --- tables -----------------------------------------------------------------------------------


def test_sizes_double_and_end_with_all_training_rows():
    sizes = {name: large_tables.training_sizes(table) for name, table in LARGE_TABLES.items()}
    doubled = [2000 * 2**k for k in range(8)]
    assert sizes["covtype"] == [*doubled, 464_809]
    assert sizes["year"] == [*doubled, 463_715]
    assert sizes["44975"] == doubled[:6]
    assert sizes["23517"] == [*doubled[:5], 63_956]


def test_scales_come_from_the_training_rows_and_indicators_stay(small_covtype):
    table, data = small_covtype
    fold = large_tables.prepare(table, data)
    assert (len(fold.y_train), len(fold.y_test)) == (7200, 1800)
    assert abs(fold.X_train[:, 0].mean()) < 1e-5
    assert fold.X_train[:, 0].std() == pytest.approx(1, abs=1e-4)
    assert abs(fold.X_test[:, 0].mean()) > 1e-5, "the test rows had no say"
    assert set(np.unique(fold.X_train[:, 1])) == {0, 1}


def test_subsamples_are_of_their_size_and_seed():
    fold = Fold(np.arange(100.0)[:, None], np.arange(100), np.zeros((2, 1)), np.zeros(2))
    first, again, other = (large_tables.subsample(fold, 30, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.y_train, again.y_train)
    assert len(set(first.y_train)) == 30
    assert set(first.y_train) != set(other.y_train)
    assert len(large_tables.subsample(fold, 100, 0).y_train) == 99
    np.testing.assert_array_equal(first.X_train[:, 0], first.y_train)


@needs_covtype
def test_covtype_splits_as_published():
    fold = large_tables.prepare(LARGE_TABLES["covtype"], SHARED / "data")
    assert fold.X_train.shape == (464_809, 54)
    assert fold.X_test.shape == (116_203, 54)
    assert set(np.unique(fold.y_train)) == set(range(7))
    assert np.abs(fold.X_train[:, :10].mean(axis=0)).max() < 1e-3
    assert set(np.unique(fold.X_train[:, 10:])) == {0, 1}


# --- grids ------------------------------------------------------------------------------------


def test_grids_have_the_papers_sizes_and_one_penalty_for_head_and_steps():
    counts = {name: len(candidates(g)) for name, g in grids.grids("classification").items()}
    assert counts == {"logistic": 5, "rfnn-swim": 5, "rfrboost-swim": 15, "mlp": 9, "xgboost": 36}
    for recipe in candidates(grids.grids("regression")["rfrboost-swim"]):
        assert recipe.parameters["l2_head"] == recipe.parameters["l2_step"]


# --- time limit -------------------------------------------------------------------------------


def options(out, job_seconds, **others) -> SimpleNamespace:
    defaults = {"seeds": 1, "max_rows": None, "jobs": 1, "out": out, "mix_commits": False}
    return SimpleNamespace(**defaults | {"job_seconds": job_seconds} | others)


def fake_run_jobs(seconds_per_row: dict[str, float]):
    def run_jobs(jobs, work, out, n_processes, mix_commits, beside):
        results = []
        for job in jobs:
            seconds = seconds_per_row[job.model] * int(job.protocol.removeprefix("rows-"))
            details = {"refit_seconds": seconds / 2, "chosen": {"l2_head": 0.1}}
            results.append(Result(job, Scores(0.9, 0.8, seconds, 0.1, details), None))
            write_result(results[-1], out)
        return results

    return run_jobs


def test_a_model_stops_where_the_next_size_would_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(
        large_scale, "run_jobs", fake_run_jobs({"logistic": 1e-4, "rfnn-swim": 1e-2})
    )
    table, models = LARGE_TABLES["covtype"], ["logistic", "rfnn-swim"]

    def sizes(job_seconds):
        pairs = list(
            large_scale.run_sizes(table, models, options(tmp_path, job_seconds), tmp_path, [])
        )
        done = [result.job for results, _ in pairs for result in results]
        rows = {m: [int(j.protocol[5:]) for j in done if j.model == m] for m in models}
        return rows, [line for _, dropped in pairs for line in dropped]

    rows, left_out = sizes(job_seconds=100)
    assert len(rows["logistic"]) == 9
    assert rows["rfnn-swim"] == [2000, 4000, 8000]
    assert left_out == ["covtype rfnn-swim from 16000 rows on (1 of 1 seeds): about 160 s per job"]
    # With more time larger sizes run; with less time again, their stored results are still shown.
    assert len(sizes(job_seconds=1e6)[0]["rfnn-swim"]) == 9
    rows, left_out = sizes(job_seconds=100)
    assert len(rows["rfnn-swim"]) == 9
    assert left_out == []
    pairs = large_scale.run_sizes(
        table, models, options(tmp_path, 100, max_rows=2000, seeds=2), tmp_path, []
    )
    assert [len(results) for results, _ in pairs] == [4] + [2] * 8, "two seeds at 2,000 rows only"


# --- report -----------------------------------------------------------------------------------


def test_the_band_is_students_interval_of_the_mean():
    rows = pd.DataFrame({"rows": [2000] * 5 + [4000], "score": [1.0, 2, 3, 4, 5, 7]})
    points = curve(rows, "score")
    assert points.loc[2000, "mean"] == 3
    assert points.loc[2000, "half"] == pytest.approx(2.776445 * np.sqrt(2.5 / 5), rel=1e-6)
    assert points.loc[4000].tolist() == [7, 0]


@needs_covtype
def test_published_runs_come_in_our_names():
    runs = read_published(SHARED / "paper" / "large_scale_runs.parquet")
    assert set(runs["table"]) == {"covtype", "year", "44975"}
    assert set(runs["model"]) == set(grids.MODELS)
    part = runs[(runs["table"] == "covtype") & (runs["model"] == "rfrboost-swim")]
    assert curve(part, "score").loc[464_809, "mean"] == pytest.approx(0.797, abs=5e-4)


def test_the_command_end_to_end_and_again(small_covtype, tmp_path, capsys, monkeypatch):
    # The worker is another process: it has to find the small table too.
    monkeypatch.setattr(large_scale, "run_jobs", run_here)
    words = ["large-scale", "--data", str(small_covtype[1]), "--models", "logistic,rfnn-swim"]
    words += ["--seeds", "2", "--max-rows", "4000", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    assert untraceable(tmp_path / "out") == []
    rows = read_table(tmp_path / "out" / "large_scale.csv")
    assert sorted(set(rows["rows"])) == [2000, 4000]
    assert len(rows) == 8
    assert rows["score"].min() > 0.9
    record = json.loads(
        (tmp_path / "out" / "rows-4000" / "covtype" / "logistic" / "fold1.json").read_text()
    )
    assert record["scores"]["details"]["seed"] == 1
    assert (tmp_path / "out" / "large-scale-covtype.svg").stat().st_size > 10_000
    assert (tmp_path / "out" / "large-scale-covtype.png").stat().st_size > 10_000
    assert "CoverType" in capsys.readouterr().out


def run_here(jobs, work, out, n_processes, mix_commits, beside):
    from experiments.runs.jobs import execute

    prepared.cache_clear()
    return [execute(job, work, out) for job in jobs]


def test_an_empty_table_draws_nothing(tmp_path):
    draw_curves(LARGE_TABLES["year"], [], read_published(None), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_failures_and_what_was_left_out_are_in_the_report():
    failed = Result(Job("rows-2000", "covtype", "mlp", 3, None), None, "MemoryError: no room")
    text = markdown_report(
        result_rows([failed]),
        read_published(None),
        [failed],
        ["covtype xgboost at 64000 rows: about 9000 s"],
    )
    assert "failed: covtype mlp at 2000 rows, seed 3: MemoryError: no room" in text
    assert "left out for time: covtype xgboost at 64000 rows" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--tables", "year", "--models", "ridge"], "YearPredictionMSD.parquet"),
        (["--tables", "iris"], "Unknown table iris"),
        (["--models", "forest"], "Unknown model forest"),
        (["--max-rows", "100", "--models", "logistic"], "at least 2000"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(small_covtype, tmp_path, capsys, words, sentence):
    out = tmp_path / "out"
    assert main(["large-scale", *words, "--data", str(small_covtype[1]), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not out.exists()
