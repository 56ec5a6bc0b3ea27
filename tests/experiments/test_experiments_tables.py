"""Tables and ablation: every number of the paper from the published runs, and honest means."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.__main__ import main
from experiments.commands.stored.tables import dataset_text, summary_text
from experiments.data import tables
from experiments.data.published import FILE_NAME, read_published
from experiments.models.naming import LOOKS, label, with_our_names
from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.reports.ablation import ablation_tables
from experiments.reports.significance import (
    holm,
    paired_t_p_value,
    pairwise_p_values,
    signed_rank_p_value,
)
from experiments.reports.summaries import complete_part, dataset_rows, summary_rows, without_iid
from experiments.requests import UsageError
from experiments.runs.files import read_table
from experiments.runs.jobs import Job, Result, write_result

REGRESSION = [44956, 44957, 44958, 44960, 44962, 44970]

# The paper's names (markup and white space removed), in lower case, and ours.
PAPER_NAMES = {
    ("regression", "gradientrfrboost"): "gradient-swim",
    ("regression", "greedyrfrboostadense"): "dense-swim",
    ("regression", "greedyrfrboostadiag"): "diagonal-swim",
    ("regression", "greedyrfrboostascalar"): "scalar-swim",
    ("regression", "xgboost"): "xgboost",
    ("regression", "e2emlpresnet"): "mlp",
    ("regression", "rfnn"): "rfnn-swim",
    ("regression", "ridgeregression"): "ridge",
    ("classification", "rfrboost"): "rfrboost-swim",
    ("classification", "gradientrfrboost"): "rfrboost-swim",
    ("classification", "xgboost"): "xgboost",
    ("classification", "e2emlpresnet"): "mlp",
    ("classification", "rfnn"): "rfnn-swim",
    ("classification", "logisticregression"): "logistic",
}


# --- the paper's text -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper() -> Path:
    try:
        folder = tables.find_data_folder(None).resolve().parent / "paper"
    except UsageError as error:
        pytest.skip(str(error))
    if not (folder / "rfrboost.tex").is_file() or not (folder / FILE_NAME).is_file():
        pytest.skip(f"no paper and published runs in {folder}")
    return folder


@pytest.fixture(scope="module")
def tex(paper: Path) -> str:
    return (paper / "rfrboost.tex").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def published(paper: Path) -> pd.DataFrame:
    return with_our_names(read_published(paper / FILE_NAME, paper))


def table_lines(tex: str, name: str) -> list[list[str]]:
    """The cells of the rows of the table with this label, the header first."""
    body = tex.split(rf"\label{{tab:{name}}}")[1].split(r"\end{tabular}")[0]
    body = re.sub(r"\\hspace\{[^}]*\}|\\midrule|\\bottomrule", "", body.split(r"\toprule")[1])
    lines = re.split(r"\\\\\s*\n", body)
    return [[cell.strip() for cell in line.split("&")] for line in lines if "&" in line]


def paper_model(task: str, cell: str) -> str:
    words = re.sub(r"\\makecell|\\\\|\\text|[${}_\s]", "", cell)
    return PAPER_NAMES[task, words.lower()]


@pytest.mark.parametrize(("task", "rows"), [("regression", 8), ("classification", 5)])
def test_the_summary_is_the_papers_number_by_number(tex, published, task, rows):
    part = complete_part(without_iid(published, None), task)
    ours = summary_text(part).set_index("model").drop(columns="mean rank")
    theirs = table_lines(tex, f"openml-{task}")[1:]
    assert len(theirs) == len(ours) == rows
    for name, *numbers in theirs:
        assert ours.loc[label(paper_model(task, name))].tolist() == numbers, name


@pytest.mark.parametrize(
    ("task", "tables", "rows"),
    [
        ("regression", ["appendix-regression"], 34),
        ("classification", ["appendix-classification1", "appendix-classification2"], 57),
    ],
)
def test_the_dataset_wise_tables_are_the_papers_cell_by_cell(tex, published, task, tables, rows):
    part = complete_part(without_iid(published, None), task)
    ours = dataset_text(part).set_index("dataset")
    seen = set()
    for table in tables:
        header, *lines = table_lines(tex, table)
        models = [label(paper_model(task, cell)) for cell in header[1:]]
        assert set(models) == set(ours.columns) - {"name"}
        for dataset, *cells in lines:
            expected = [re.sub(r"\\textbf\{(.*?)\}", r"**\1**", cell) for cell in cells]
            assert ours.loc[int(dataset), models].tolist() == expected, dataset
            seen.add(int(dataset))
    assert seen == set(ours.index)
    assert len(seen) == rows


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_ablation_tables_are_the_papers_with_wins_and_times(tex, published, task):
    tables, notes = ablation_tables(published)
    ours = tables[f"SWIM against i.i.d., {task}"].set_index(["model", "features"])
    assert notes == []
    theirs = table_lines(tex, f"swim-iid-comparison-{task}")[1:]
    assert len(theirs) == len(ours)
    model = None
    for name, features, score, wins, seconds in theirs:
        model = label(paper_model(task, name)) if name else model  # named once for its two rows
        row = ours.loc[(model, features)]
        assert f"{row.iloc[1]:.3f}" == score
        assert row["wins"] == int(wins)
        assert f"{row['fit seconds']:.3f}" == seconds


def test_the_command_prints_and_writes_all_published_tables(paper, tmp_path, capsys):
    words = ["tables", "--published", "--out", str(tmp_path)]
    assert main([*words, "--published-runs", str(paper / FILE_NAME)]) == 0
    text = capsys.readouterr().out
    assert (tmp_path / "published" / "tables.md").read_text(encoding="utf-8") in text
    assert "| Gradient RFRBoost | 0.408 | 2.65 | 1.688 |" in text
    assert "| RFRBoost | 0.853 | 2.26 | 2.519 |" in text
    rows = read_table(tmp_path / "published" / "regression-datasets.csv")
    assert rows["dataset"].nunique() == 34
    assert "44964" in text, "a published table without a data file"


# --- honest means -----------------------------------------------------------------------------


def make_runs(scores: dict[str, list[float]], folds: int = 2) -> pd.DataFrame:
    """Runs of the regression tables: a model's k-th score on the k-th table, the same each fold."""
    return pd.DataFrame(
        [
            ("paper", "regression", dataset, model, fold, score + 0.01 * fold, 1.0 + fold)
            for model, values in scores.items()
            for dataset, score in zip(REGRESSION, values, strict=False)
            for fold in range(folds)
        ],
        columns=["protocol", "task", "dataset", "model", "fold", "test_score", "fit_seconds"],
    )


def test_a_dataset_that_one_model_lacks_is_in_no_mean_and_is_named():
    runs = make_runs({"ridge": [0.5, 0.7, 0.9], "xgboost": [0.4, 0.6]})
    part = complete_part(runs, "regression")
    assert part.left_out == {REGRESSION[2]: ["xgboost"]}
    summary = summary_rows(part).set_index("model")
    assert summary["datasets"].tolist() == [2, 2]
    assert summary.loc["ridge", "mean_score"] == pytest.approx(0.605)
    assert summary.loc["xgboost", "mean_rank"] == 1


def test_a_missing_fold_makes_a_dataset_incomplete():
    runs = make_runs({"ridge": [0.5, 0.7], "xgboost": [0.4, 0.6]})
    last = runs[(runs["model"] == "xgboost") & (runs["dataset"] == REGRESSION[1])].index[-1]
    part = complete_part(runs.drop(last), "regression")
    assert part.left_out == {REGRESSION[1]: ["xgboost"]}
    assert part.datasets == [REGRESSION[0]]


def test_models_without_a_common_dataset_are_refused():
    runs = make_runs({"ridge": [0.5, 0.7], "xgboost": [0.4, 0.6]})
    apart = runs[(runs["model"] == "ridge") == (runs["dataset"] == REGRESSION[0])]
    with pytest.raises(UsageError, match="has all folds"):
        complete_part(apart, "regression")


def test_ranks_share_ties_and_the_best_of_a_tie_are_all_bold():
    runs = make_runs({"ridge": [0.5, 0.7], "xgboost": [0.5, 0.6], "mlp": [0.9, 0.8]})
    part = complete_part(runs, "regression")
    assert part.ranks()[["ridge", "xgboost", "mlp"]].to_numpy().tolist() == [
        [1.5, 1.5, 3],
        [2, 1, 3],
    ]
    best = dataset_rows(part).query("best")
    assert set(zip(best["dataset"], best["model"], strict=True)) == {
        (REGRESSION[0], "ridge"),
        (REGRESSION[0], "xgboost"),
        (REGRESSION[1], "xgboost"),
    }


def test_every_model_has_its_own_label():
    labels = [look.label for look in LOOKS.values()]
    assert len(set(labels)) == len(labels)


# --- tests of significance -------------------------------------------------------------------


def test_pairwise_p_values_are_scipys_with_holms_steps():
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.normal([0, 0.1, 0.2], 0.1, (20, 3)), columns=["a", "b", "c"])
    table = pairwise_p_values(scores)
    raw = {
        pair: stats.wilcoxon(scores[pair[0]], scores[pair[1]]).pvalue for pair in ("ab", "ac", "bc")
    }
    # Holm: the k-th smallest of m times (m − k + 1), never less than the one before it.
    order = sorted(raw, key=raw.get)
    steps = np.maximum.accumulate([raw[pair] * (3 - k) for k, pair in enumerate(order)])
    for pair, p in zip(order, np.minimum(steps, 1), strict=True):
        assert table.loc[pair[0], pair[1]] == table.loc[pair[1], pair[0]] == pytest.approx(p)
    assert np.diag(table).tolist() == [1, 1, 1]


def test_equal_models_are_not_significantly_different():
    scores = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.1, 0.2, 0.3], "c": [0.4, 0.6, 0.8]})
    assert pairwise_p_values(scores).loc["a", "b"] == 1
    assert signed_rank_p_value(np.zeros(5)) == 1
    assert np.isnan(paired_t_p_value(np.full(5, 0.25)))
    assert holm([0.01, 0.04]) == pytest.approx([0.02, 0.04])


def test_paired_t_is_scipys():
    ours, theirs = np.array([0.1, 0.3, 0.2, 0.5, 0.4]), np.array([0.2, 0.3, 0.4, 0.4, 0.6])
    assert paired_t_p_value(ours - theirs) == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)


# --- the command on results of our own --------------------------------------------------------


def store(out: Path, dataset: int, model: str, fold: int, score: float) -> None:
    job = Job("paper", dataset, model, fold, Recipe("Ridge", {"l2_head": 0.01}))
    write_result(Result(job, Scores(score, score, 0.5, 0.1), None), out)


def test_tables_of_our_results_say_what_is_missing(tmp_path, capsys):
    for dataset in REGRESSION[:3]:
        for fold in (0, 1):
            store(tmp_path, dataset, "ridge", fold, 0.5)
            store(tmp_path, dataset, "gradient-swim", fold, 0.25 + dataset % 2)
    (tmp_path / "paper" / str(REGRESSION[2]) / "ridge" / "fold1.json").write_text("{", "utf-8")
    assert main(["tables", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "2 datasets, 2 folds" in text
    assert f"- {REGRESSION[2]} auction_verification: ridge" in text
    assert read_table(tmp_path / "paper" / "regression-summary.csv")["datasets"].eq(2).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tables"], "No results of the protocol"),
        (["figures"], "No results of the protocol"),
        (["ablation"], "No results of the protocol"),
        (["tables", "--models", "nothing"], "no runs of model nothing"),
        (["tables", "--tables", "1"], "no runs of table 1"),
        (["ablation", "--models", "ridge"], "An ablation needs"),
    ],
)
def test_what_cannot_be_made_is_one_sentence_and_nothing_is_written(
    tmp_path, capsys, words, message
):
    out = tmp_path / "results"
    if len(words) > 1:
        store(out, REGRESSION[0], "ridge", 0, 0.5)
    before = sorted(tmp_path.rglob("*"))
    assert main([*words, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
