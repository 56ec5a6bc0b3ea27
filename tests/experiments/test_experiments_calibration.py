"""``calibration``: errors of probabilities, their report, and the command."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import in_this_process, untraceable

from experiments.__main__ import main
from experiments.commands import calibration
from experiments.commands.calibration import ERROR, LOG_LOSS
from experiments.data.tables import known_table
from experiments.models.scoring import Scores
from experiments.models.untuned import select_untuned
from experiments.runs import measured
from experiments.runs.jobs import Job, Result

BALANCE = 11
OTHER = 37


def result(dataset, model, fold, error):
    (found,) = [m for m in select_untuned([model]) if m.task == "classification"]
    job = Job(calibration.PROTOCOL, dataset, model, fold, found.recipe(1))
    details = {ERROR: error, LOG_LOSS: 2 * error, "rows": 9}
    return Result(job, Scores(0.0, 0.5, 1.0, 1.0, details), None)


def test_means_are_over_folds_and_then_over_the_tables_of_all_models():
    results = [
        result(BALANCE, "rfrboost", 0, 0.1),
        result(BALANCE, "rfrboost", 1, 0.3),
        result(BALANCE, "catboost", 0, 0.3),
        result(OTHER, "rfrboost", 0, 0.9),
    ]
    summary = calibration.summary_rows(calibration.fold_rows(results)).set_index("model")
    ours = summary.loc["RFRBoost, default"]
    assert ours["tables"] == 1
    assert ours[ERROR] == pytest.approx(0.2)
    assert ours[LOG_LOSS] == pytest.approx(0.4)
    assert summary["least error"].tolist() == [1, 0]
    text = calibration.report(calibration.fold_rows(results), results)
    assert "diabetes" in text


def test_a_fit_that_failed_is_named_in_the_report_and_in_no_row():
    good = result(BALANCE, "rfrboost", 0, 0.1)
    failed = Result(result(BALANCE, "catboost", 0, 0.3).job, None, "ValueError: too few rows")
    rows = calibration.fold_rows([good, failed])
    assert rows["model"].tolist() == ["rfrboost"]
    text = calibration.report(rows, [good, failed])
    assert "## Failed: 1 of 2" in text
    assert "catboost fold 0: ValueError: too few rows" in text


@pytest.fixture
def classes(tmp_path):
    """A data folder with one table shaped as balance-scale, whose classes are drawn as it says."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(625, 4)), columns=list("abcd"))
    noise = rng.gumbel(size=(625, 3))
    frame["target"] = np.array(["x", "y", "z"])[np.argmax(frame.to_numpy()[:, :3] + noise, axis=1)]
    path = known_table(BALANCE).path(tmp_path / "data")
    path.parent.mkdir(parents=True)
    frame.to_parquet(path)
    return tmp_path / "data"


def test_the_command_fits_measures_writes_and_continues(classes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measured, "run_jobs", in_this_process)
    words = ["calibration", "--data", str(classes), "--out", str(tmp_path / "out")]
    words += ["--models", "rfrboost", "--folds", "0"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert untraceable(tmp_path / "out") == []
    rows = pd.read_csv(tmp_path / "out" / "calibration.csv", comment="#")
    assert rows[["dataset", "fold", "rows"]].to_numpy().tolist() == [[BALANCE, 0, 125]]
    # 125 rows in ten bins are off by about 0.05 for a perfect model.
    assert 0 < rows[ERROR].item() < 0.15
    monkeypatch.setattr(calibration, "fit_and_score", None)
    assert main(words) == 0
    assert capsys.readouterr().out == printed
