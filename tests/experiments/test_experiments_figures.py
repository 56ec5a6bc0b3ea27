"""Figures: what they show is what the scores say, and the same scores give the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.__main__ import main
from experiments.commands.stored.figures import draw
from experiments.data.published import COLUMNS
from experiments.data.tables import REPOSITORY
from experiments.models.naming import LOOKS, label
from experiments.reports.ablation import ablation_tables
from experiments.reports.figures import COLOURS, INK, boxes, critical_difference, swim_against_iid
from experiments.reports.significance import ALPHA, pairwise_p_values
from experiments.reports.summaries import complete_part

DATASETS = [41021, 44956, 44957, 44958, 44959, 44960, 44962, 44963, 44965, 44966]
PUBLISHED_NAMES = {
    "gradient-swim": "GradientRFRBoost_ID_batchnormFalse",
    "gradient-iid": "GradientRFRBoost_ID_batchnormFalse_featiid",
    "xgboost": "XGBoostRegressor",
    "mlp": "End2End_cpu",
    "rfnn-swim": "RFNN",
    "ridge": "Ridge",
}


def make_runs(shifts: dict[str, float], names: dict[str, str], folds: int = 2) -> pd.DataFrame:
    """Regression runs: a score a dataset, the model's shift, and noise of 0.01."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        [
            ("regression", dataset, names.get(model, model), fold, score, 1.0, "{}")
            for model, shift in shifts.items()
            for k, dataset in enumerate(DATASETS)
            for fold, score in enumerate(0.1 + 0.05 * k + shift + rng.normal(0, 0.01, folds))
        ],
        columns=COLUMNS,
    )


SHIFTS = {"gradient-swim": 0.0, "gradient-iid": 0.003, "xgboost": 0.001, "ridge": 0.3}
LIKE = {"mlp": 0.0, "rfnn-swim": 0.0}  # more models that cannot be told apart


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    return make_runs(SHIFTS, {})


@pytest.fixture
def published_file(tmp_path: Path) -> Path:
    path = tmp_path / "published.parquet"
    make_runs(SHIFTS | LIKE, PUBLISHED_NAMES).to_parquet(path)
    return path


def test_the_diagram_shows_average_ranks_and_joins_what_cannot_be_told_apart(runs):
    part = complete_part(runs[runs["model"] != "gradient-iid"], "regression")
    axes = critical_difference(part).axes[0]
    ranks = part.ranks().mean()
    texts = " ".join(text.get_text() for text in axes.texts)
    for model in part.models:
        assert label(model) in texts
        assert f"{ranks[model]:.2f}" in texts

    joined = {
        tuple(sorted(np.round(line.get_xdata(), 6)))
        for line in axes.lines
        if line.get_color() == INK
    }
    p_values = pairwise_p_values(part.scores())
    expected = {
        tuple(sorted(np.round([ranks[a], ranks[b]], 6)))
        for a in part.models
        for b in part.models
        if a < b and p_values.loc[a, b] >= ALPHA
    }
    assert joined == expected == {tuple(sorted(np.round(ranks[["gradient-swim", "xgboost"]], 6)))}


def test_the_boxes_have_a_dot_for_every_dataset_and_skip_missing_values():
    values = pd.DataFrame({"ridge": [0.1, 0.2, 0.4], "xgboost": [0.3, np.nan, 0.5]})
    axes = boxes(values, "test RMSE", "title").axes[0]
    dots = [np.asarray(points.get_offsets())[:, 0].tolist() for points in axes.collections]
    assert dots == [[0.1, 0.2, 0.4], [0.3, 0.5]]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["Ridge regression", "XGBoost"]
    assert axes.get_xlabel() == "test RMSE"


def test_the_scatter_counts_the_wins_of_the_ablation_table(runs):
    part = complete_part(runs[runs["model"].str.startswith("gradient")], "regression")
    axes = swim_against_iid(part, [("gradient-swim", "gradient-iid")]).axes[0]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    wins = ablation_tables(runs)[0]["SWIM against i.i.d., regression"]["wins"].tolist()
    assert legend == [f"SWIM better: {wins[0]}", f"i.i.d. better: {wins[1]}"]
    assert sum(wins) == len(DATASETS)


def test_only_possible_figures_are_drawn(runs):
    assert set(draw(runs, None)) == {
        "scores-regression",
        "critical-difference-regression",
        "swim-iid-regression",
    }
    assert set(draw(runs[runs["model"] == "ridge"], None)) == {"scores-regression"}


def test_every_family_has_its_colour():
    families = {look.family for look in LOOKS.values()}
    assert families <= set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_another_process_writes_the_same_bytes(published_file, tmp_path):
    written = []
    # The order of a set of words depends on the hash seed: with these two it differs.
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "experiments", "figures", "--published"]
        options = ["--published-runs", str(published_file), "--out", str(tmp_path / seed)]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([*command, *options], check=True, env=environment, cwd=REPOSITORY)
        folder = tmp_path / seed / "published"
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    names = ("scores", "critical-difference", "swim-iid")
    assert set(written[0]) == {f"{n}-regression.{kind}" for n in names for kind in ("svg", "png")}
    assert written[0] == written[1]
    for name, content in written[0].items():
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml"), name


@pytest.mark.parametrize("library", ["matplotlib", "scikit_posthocs"])
@pytest.mark.parametrize("command", ["figures", "report"])
def test_a_missing_library_is_one_sentence(
    library, command, published_file, tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(sys.modules, library, None)
    out = tmp_path / "out"
    words = [command, "--published-runs", str(published_file), "--out", str(out)]
    assert main(words + ["--published"] * (command == "figures")) == 2
    message = capsys.readouterr().err
    assert library in message
    assert "[experiments]" in message
    assert not out.exists()
