"""Replay: the comparison with the published runs, and the command."""

import numpy as np
import pandas as pd
import pytest
from experiment_runs import ENERGY, command, job, published_frame, results_of, variant
from scipy import stats

from experiments.commands import replay
from experiments.data import tables
from experiments.data.published import FILE_NAME
from experiments.models import variants
from experiments.reports.replay import dataset_rows, fold_rows, markdown_report, variant_rows
from experiments.runs import jobs
from experiments.runs.files import read_table

SIX = [44956, 44957, 44958, 44959, 44962, 44963]


def test_comparison_figures():
    theirs = pd.concat(
        [
            published_frame("regression", ENERGY, "Ridge", [0.1, 0.2, 0.3, 0.4, 0.5], {}),
            published_frame("regression", 44956, "Ridge", [0.2, 0.3], {}),
            published_frame("classification", 11, "RFNN", [0.8, 0.9, 0.8, 0.9, 0.85], {}),
        ]
    )
    ours = results_of(ENERGY, "ridge", [0.2, 0.3]) + results_of(11, "rfnn-swim", [0.8] * 5)
    ours += results_of(44956, "ridge", [0.2, 0.3])
    rows = dataset_rows(fold_rows(ours, theirs, variants.VARIANTS))
    energy, balance = (rows[rows["dataset"] == dataset].iloc[0] for dataset in (ENERGY, 11))
    # Two folds were run: the published mean is over the same two, its spread over all five.
    assert (energy["ours"], energy["published"]) == (pytest.approx(0.25), pytest.approx(0.15))
    assert energy["ratio"] == pytest.approx(0.25 / 0.15)
    assert energy["z"] == pytest.approx(0.1 / np.std([0.1, 0.2, 0.3, 0.4, 0.5], ddof=1))
    assert balance["difference"] == pytest.approx(-0.05)
    assert balance["z"] > 0, "a lower accuracy is worse"
    summary = variant_rows(rows).set_index("variant")
    assert summary.loc["ridge", "agreement"] == pytest.approx((0.25 / 0.15 + 1) / 2)
    assert summary.loc["ridge", "worst dataset"] == "energy_efficiency"
    assert summary.loc["rfnn-swim", "agreement"] == pytest.approx(-0.05)
    assert summary.loc["rfnn-swim", "worst dataset"] == "balance-scale"


def test_differences_come_with_their_significance():
    spread = [0.1, 0.2, 0.3, 0.4, 0.5]
    worse = [score + gap for score, gap in zip(spread, [0.02, 0.03, 0.02, 0.04, 0.03], strict=True)]
    theirs = [published_frame("regression", ENERGY, "Ridge", spread, {})]
    theirs += [published_frame("regression", id, "RFNN", spread, {}) for id in SIX]
    ours = results_of(ENERGY, "ridge", spread)
    for id in SIX:
        ours += results_of(id, "rfnn-swim", worse)
    rows = dataset_rows(fold_rows(ours, pd.concat(theirs), variants.VARIANTS))
    by_variant = rows.set_index("variant")
    assert np.isnan(by_variant.loc["ridge", "p"]), "equal folds leave nothing to test"
    # scipy's own paired test is the reference.
    assert by_variant.loc["rfnn-swim", "p"].tolist() == pytest.approx(
        [stats.ttest_rel(worse, spread).pvalue] * len(SIX)
    )
    summary = variant_rows(rows).set_index("variant")
    assert summary.loc["rfnn-swim", ["better", "worse"]].tolist() == [0, 6]
    assert summary.loc["ridge", ["better", "worse", "p"]].tolist() == [0, 0, 1]
    # Six of six worse: of the 64 equally likely signs, two are as extreme; two variants.
    assert summary.loc["rfnn-swim", "p"] == pytest.approx(2 / 64)
    assert summary.loc["rfnn-swim", "p Holm"] == pytest.approx(4 / 64)


def test_a_failed_fold_is_named_and_left_out():
    theirs = published_frame("regression", ENERGY, "Ridge", [0.1, 0.2, 0.3], {})
    failed = jobs.Result(job(2), None, "LinAlgError: singular")
    rows = dataset_rows(
        fold_rows([*results_of(ENERGY, "ridge", [0.1, 0.2]), failed], theirs, variants.VARIANTS)
    )
    assert rows["ratio"].tolist() == [1.0]
    assert rows["folds"].tolist() == [2]
    assert "- 44960 ridge fold 2: LinAlgError: singular" in markdown_report(rows, [failed])


def test_replay_runs_reports_and_resumes(made_up, capsys):
    assert command("replay", made_up, "--models", "ridge", "--folds", "0,1") == 0
    assert "2 jobs to run, 0 already done" in capsys.readouterr().err
    first = job(0).result_path(made_up / "out")
    before = first.stat().st_mtime_ns
    job(1).result_path(made_up / "out").write_text('{"job": {')

    assert command("replay", made_up, "--models", "ridge", "--folds", "0,1") == 0
    shown = capsys.readouterr()
    assert "1 jobs to run, 1 already done" in shown.err
    assert first.stat().st_mtime_ns == before
    assert shown.out.rstrip() == (made_up / "out" / "replay.md").read_text().rstrip()
    rows = read_table(made_up / "out" / "replay.csv")
    assert rows[["dataset", "variant", "folds"]].values.tolist() == [[ENERGY, "ridge", 2]]
    # Unit noise, and a label of variance 9: the true RMSE is a third.
    assert rows["ours"][0] == pytest.approx(1 / 3, abs=0.05)


def test_replay_of_failing_fits_reports_them_and_exits_with_1(made_up, capsys):
    runs = published_frame("regression", ENERGY, "Ridge", [0.3] * 5, {"l2_reg": "much"})
    runs.to_parquet(made_up / "paper" / FILE_NAME)
    assert command("replay", made_up, "--folds", "0") == 1
    assert "44960 ridge fold 0: " in capsys.readouterr().out
    assert (made_up / "out" / "replay.csv").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--models", "ridge,forest"], "Unknown model forest"),
        (["--tables", "44960,123"], "Unknown table 123"),
        (["--tables", "44956"], "Table 44956 (abalone) has no file"),
        (["--models", "logistic"], "No published run matches"),
        (["--folds", "0,5"], "The folds are 0 to 4"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--data", "nowhere"], "No data folder at nowhere"),
        (["--out", __file__], f"--out {__file__} is a file"),
        (["--published-runs", __file__], f"{__file__} does not hold the published runs"),
        (["--published-runs", "nothing.parquet"], "No published runs at nothing.parquet"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence_and_writes_nothing(
    made_up, capsys, words, sentence
):
    assert command("replay", made_up, *words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(sentence)
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (made_up / "out").exists()


def test_ctrl_c_says_how_to_continue(made_up, monkeypatch, capsys):
    def interrupted(jobs, work, out, n_processes, mix_commits):
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "run_jobs", interrupted)
    assert command("replay", made_up) == 130
    assert "Run the same command again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dataset", "model", "tolerance"),
    [
        # Scores are stored in single precision; the published ridge was solved in it as well.
        (41021, "ridge", 1e-6),  # missing values, nominal columns
        (44956, "ridge", 2e-6),
        (44960, "ridge", 1e-5),
        (44967, "ridge", 1e-6),  # mostly nominal columns
        (11, "logistic", 1e-7),
        (29, "logistic", 1e-7),  # missing values, a declared but unused level
        (23381, "logistic", 1e-7),  # missing values in nominal columns
        (188, "logistic", 1e-7),  # agrees only when float32 comes before standardising
    ],
)
def test_paper_protocol_repeats_the_published_baselines(real, dataset, model, tolerance):
    folder, runs = real
    table = tables.known_table(dataset)
    tables.select_tables(folder, [dataset])
    plan = replay.plan(runs, [table], variants.select_variants([model]), list(range(5)))
    assert [j.fold for j in plan] == [0, 1, 2, 3, 4]
    ours = [replay.refit(j, folder).test_score for j in plan]
    theirs = runs[
        (runs["dataset"] == dataset) & (runs["model"] == variant(model, table.task).published)
    ]
    np.testing.assert_allclose(
        ours, theirs.sort_values("fold")["test_score"], rtol=0, atol=tolerance
    )
