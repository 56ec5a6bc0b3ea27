"""``coverage``: what is counted, the table by table report, and the command."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, in_this_process, untraceable
from numpy.random import default_rng

from experiments.__main__ import main
from experiments.commands import coverage
from experiments.data import shifted
from experiments.data.protocols import Fold
from experiments.data.tables import known_table
from experiments.models.scoring import Scores
from experiments.reports.coverage import (
    by_table,
    markdown_report,
    shifted_report,
    shifted_rows,
    summary_rows,
    table_rows,
)
from experiments.runs import measured
from experiments.runs.jobs import Result

BALANCE = 11


def fold_of(y):
    X = np.zeros((len(y), 1))
    return Fold(X, np.array([0.0, 2.0]), X, y)


def test_intervals_are_counted_with_their_ends():
    model = SimpleNamespace(
        predict_interval=lambda X, share: np.tile([0.0, 3.0], (len(X), 1)),
        predict=lambda X, return_std=False: (
            (np.ones(len(X)), np.full(len(X), 2.0)) if return_std else np.ones(len(X))
        ),
    )
    counts, prediction, _ = coverage.count_intervals(model, fold_of(np.array([0.0, 3.0, 3.1, 5.0])))
    assert counts["coverage"] == 0.5
    assert counts["width"] == 3.0
    assert counts["z_square"] == pytest.approx(np.mean(np.array([-1, 2, 2.1, 4]) ** 2) / 4)
    assert (prediction == 1).all()


def test_crossings_are_counted_one_by_one():
    levels = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 1.0, 0.0]])
    model = SimpleNamespace(predict=lambda X: levels[: len(X)])
    counts, middle, _ = coverage.count_quantiles(model, fold_of(np.array([0.5, 0.5, 9.0])))
    assert counts["crossings"] == 3
    assert counts["coverage"] == pytest.approx(1 / 3)
    assert counts["below"] == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    np.testing.assert_array_equal(middle, levels[:, 1])


def test_a_class_that_training_never_saw_is_in_no_set():
    sets = np.array([[True, False], [True, True], [True, True]])
    model = SimpleNamespace(
        classes_=np.array([0, 1]),
        predict_set=lambda X, share: sets,
        predict=lambda X: np.zeros(len(X), int),
    )
    counts, _, _ = coverage.count_sets(model, fold_of(np.array([1, 1, 2])))
    third = pytest.approx(1 / 3)
    assert counts["classes"] == 2
    assert counts["size"] == pytest.approx(5 / 3)
    assert (counts["coverage"], counts["single"]) == (third, third)


def result(kind, dataset, fold, **details):
    recipe = coverage.RECIPES[known_table(dataset).task][kind]
    job = coverage.Job(coverage.PROTOCOL, dataset, kind, fold, recipe)
    return Result(job, Scores(0.0, 0.5, 1.0, 0.1, {**details, "versions": {}}), None)


def test_a_table_is_the_mean_of_its_folds_and_the_least_is_named():
    results = [
        result("intervals", ENERGY, 0, coverage=0.8, width=1.0, z_square=1.0, rows=100),
        result("intervals", ENERGY, 1, coverage=0.9, width=2.0, z_square=1.0, rows=100),
        result("quantiles", ENERGY, 0, coverage=1.0, width=1.0, crossings=2, below=[0.0], rows=9),
        result("quantiles", ENERGY, 1, coverage=1.0, width=1.0, crossings=1, below=[0.5], rows=9),
        result("sets", BALANCE, 0, coverage=0.7, size=1.0, single=0.0, classes=3, rows=10),
    ]
    tables = by_table(table_rows(results))
    assert tables["coverage"].tolist() == pytest.approx([0.85, 1.0, 0.7])
    assert tables["least_fold"].tolist() == [0.8, 1.0, 0.7]
    summary = summary_rows(tables, 0.9).set_index("prediction")
    assert summary.loc["intervals", "least"] == "0.850 (energy_efficiency, 200 rows)"
    assert summary["crossings"].tolist() == ["–", 3, "–", "–"]
    # One table, where the most probable class is right half of the time.
    assert summary.loc["sets, accuracy below 0.9", "tables"] == 1
    assert len(summary_rows(tables, 0.4)) == 3
    text = markdown_report(table_rows(results), results, coverage.COVERAGE, coverage.LEVELS)
    assert "| 44960 | energy_efficiency | 200 | 0.850 | 0.800 | 1.500 |" in text
    assert "| 11 | balance-scale | 10 | 0.700 | 1.000 | 3 |" in text


def test_jobs_are_of_the_strict_protocol_and_know_their_levels():
    jobs = coverage.plan([known_table(ENERGY), known_table(BALANCE)], [0, 3])
    assert {job.protocol for job in jobs} == {"strict"}
    assert [(job.dataset, job.fold, job.model) for job in jobs] == [
        (ENERGY, 0, "intervals"), (ENERGY, 0, "quantiles"),
        (ENERGY, 3, "intervals"), (ENERGY, 3, "quantiles"),
        (BALANCE, 0, "sets"), (BALANCE, 3, "sets"),
    ]  # fmt: skip
    assert jobs[1].recipe.parameters == {"loss": "quantile", "quantile": coverage.LEVELS}


def small_fold(task):
    rng = default_rng(0)
    X = rng.standard_normal((160, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(160)
    y = y if task == "regression" else (y > 0).astype(int)
    return Fold(X[:100], y[:100], X[100:], y[100:])


def test_the_command_fits_counts_writes_and_continues(tmp_path, monkeypatch, capsys):
    fits = []

    def rows_of(protocol, dataset, data):
        fits.append(dataset)
        return SimpleNamespace(fold=lambda k: small_fold(known_table(dataset).task))

    monkeypatch.setattr(measured, "run_jobs", in_this_process)
    monkeypatch.setattr(coverage, "load_rows", rows_of)
    monkeypatch.setattr(coverage, "find_data_folder", lambda data: tmp_path)
    tables = [known_table(ENERGY), known_table(BALANCE)]
    monkeypatch.setattr(coverage, "select_tables", lambda data, ids: tables)
    words = ["coverage", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert (tmp_path / "out" / "coverage.md").read_text(encoding="utf-8") + "\n" == printed
    assert untraceable(tmp_path / "out") == []
    assert printed.count("energy_efficiency") >= 3
    assert fits == [ENERGY, ENERGY, BALANCE]
    assert main(words) == 0
    assert len(fits) == 3
    assert capsys.readouterr().out == printed


def shifted_frame():
    rng = default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 12, 200), "b": rng.standard_normal(200)})
    return frame.assign(target=rng.standard_normal(200))


def test_ordered_splits_test_the_last_rows_and_grouped_ones_other_groups():
    frame = shifted_frame()
    rows = shifted.cut(frame, shifted.Shift(0, shifted.ORDERED, ("a",)))
    assert rows.groups is None
    assert rows.X_train["a"].is_monotonic_increasing
    assert rows.X_train["a"].max() <= rows.X_test["a"].min()
    assert len(rows.y_test) == 60
    grouped = shifted.cut(frame, shifted.Shift(0, shifted.GROUPED, ("a",)))
    assert not set(grouped.X_train["a"]) & set(grouped.X_test["a"])
    assert len(set(grouped.X_test["a"])) == round(0.3 * 12)
    assert [len(set(part)) for _, part in grouped.X_train["a"].groupby(grouped.groups)] == [1] * 8


def test_a_table_that_is_split_whole_trains_on_its_first_rows():
    frame = pd.DataFrame({"a": np.arange(9000.0), "target": 1.0})
    rows = shifted.cut(frame, shifted.Shift(0, shifted.WHOLE))
    np.testing.assert_array_equal(rows.X_train["a"], np.arange(8000))
    np.testing.assert_array_equal(rows.X_test["a"], np.arange(8000, 9000))


def test_ten_shifts_are_fitted_with_both_kinds_of_folds_and_one_whole_table_with_five_seeds():
    jobs = coverage.plan_shifted(list(shifted.SHIFTS))
    assert [shift.kind for shift in shifted.SHIFTS].count(shifted.WHOLE) == 1
    assert len(shifted.SHIFTS) == 11
    assert len({job.result_path(Path("out")) for job in jobs}) == 25


def test_the_report_of_shifts_has_the_means_of_both_kinds():
    shifts = [shifted.Shift(ENERGY, shifted.GROUPED, ("X1",)), shifted.Shift(ENERGY, "ordered")]
    jobs = coverage.plan_shifted(shifts)
    found = {"width": 2.0, "oof_score": 0.5, "r2": 0.25, "LightGBM r2": 0.125, "rows": 60}
    results = [
        Result(job, Scores(0.0, 0.5, 1.0, 0.1, {"coverage": c, **found}), None)
        for job, c in zip(jobs, (0.875, 0.5, 0.625, 0.75), strict=True)
    ]
    text = shifted_report(shifted_rows(results), results, 0.9)
    assert "| own | 2 | 0.7500 | 0.6250 | 2.0000 | 0.5000 | 0.2500 |" in text
    assert "| random | 2 | 0.6250 | 0.5000 |" in text
    assert "Miami" not in text
    whole = [
        Result(job, Scores(0.0, 0.5, 1.0, 0.1, {"coverage": 0.5, **found, "r2": job.fold}), None)
        for job in coverage.plan_shifted([shifted.Shift(ENERGY, shifted.WHOLE)])
    ]
    both = results + whole
    text = shifted_report(shifted_rows(both), both, 0.9)
    assert "| random | 2 | 0.6250 | 0.5000 |" in text, "the whole table is not in these means"
    assert "| mean | 60 | 0.5000 | 2.0000 | 0.5000 | 2.0000 | 0.1250 |" in text


def test_shifted_splits_are_fitted_written_and_not_fitted_again(tmp_path, monkeypatch, capsys):
    shift = shifted.Shift(ENERGY, shifted.GROUPED, ("a",))
    fits = []

    def load(shift, data):
        fits.append(shift.dataset)
        return shifted.cut(shifted_frame(), shift)

    monkeypatch.setattr(measured, "run_jobs", in_this_process)
    monkeypatch.setattr(coverage, "SHIFTS", (shift,))
    monkeypatch.setattr(coverage, "load_shift", load)
    monkeypatch.setattr(coverage, "find_data_folder", lambda data: tmp_path)
    words = ["coverage", "--shifted", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert untraceable(tmp_path / "out") == []
    rows = pd.read_csv(tmp_path / "out" / "coverage-shifted.csv", comment="#")
    assert rows["folds"].tolist() == ["own", "random"]
    assert rows["coverage"].between(0.5, 1).all()
    assert main(words) == 0
    assert len(fits) == 2
    assert capsys.readouterr().out == printed
