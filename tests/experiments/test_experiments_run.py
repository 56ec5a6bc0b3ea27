"""``run``: searches, what is stored of them, and requests that cannot be met."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from experiment_runs import ENERGY, command

from experiments.commands import run
from experiments.data import protocols
from experiments.data.tables import known_table, load_table
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import fit_and_score, held_out_score
from experiments.models.spaces import LINEAR, SEARCHED_MODELS, Search
from experiments.runs import search
from experiments.runs.jobs import Result


@pytest.fixture
def rows(made_up) -> protocols.Rows:
    return protocols.paper(load_table(known_table(ENERGY), made_up / "data"), "regression")


def ridge_search(trials: int) -> Search:
    return Search("Ridge", {}, LINEAR, trials, inner_folds=3)


def result_file(folder: Path, model: str, fold: int) -> Path:
    return folder / "out" / "paper" / str(ENERGY) / model / f"fold{fold}.json"


# --- the search -------------------------------------------------------------------------------


def test_the_inner_score_is_the_mean_of_the_chosen_parameters(rows):
    inner = rows.inner_folds(0, 3)
    found = search.search(ridge_search(5), inner, "regression", seed=0)
    scores = [
        held_out_score(build(found.recipe, len(f.y_train), 0), f, "regression") for f in inner
    ]
    assert found.inner_score == pytest.approx(np.mean(scores), rel=1e-12)
    assert (found.done, found.pruned, found.failed) == (5, 0, 0)


def test_a_search_repeats_itself_and_another_seed_looks_elsewhere(rows):
    inner = rows.inner_folds(0, 3)
    first, again, other = (
        search.search(ridge_search(4), inner, "regression", seed) for seed in (1, 1, 2)
    )
    assert first.recipe == again.recipe
    assert first.recipe != other.recipe


def test_more_trials_never_choose_worse(rows):
    inner = rows.inner_folds(0, 3)
    few, many = (search.search(ridge_search(n), inner, "regression", 0) for n in (2, 30))
    assert many.inner_score <= few.inner_score


def test_hopeless_trials_are_given_up(rows):
    found = search.search(ridge_search(40), rows.inner_folds(0, 3), "regression", seed=0)
    assert found.pruned > 0
    assert found.done >= search.TRIALS_BEFORE_PRUNING
    assert found.done + found.pruned + found.failed == 40


def test_accuracy_is_maximised(monkeypatch):
    # The score is the penalty itself: the largest of those tried must be chosen.
    tried = []

    def penalty(recipe: Recipe, fold: object, task: str) -> float:
        tried.append(recipe.parameters["l2_head"])
        return tried[-1]

    monkeypatch.setattr(search, "build", lambda recipe, n_train, random_state: recipe)
    monkeypatch.setattr(search, "held_out_score", penalty)
    fold = protocols.Fold(*[np.zeros(1)] * 4)
    found = search.search(ridge_search(8), [fold], "classification", seed=0)
    assert found.inner_score == found.recipe.parameters["l2_head"] == max(tried)


def test_failed_trials_are_counted_and_never_chosen(rows, monkeypatch):
    def fussy(recipe: Recipe, n_train: int, random_state: int):
        if recipe.parameters["l2_head"] < 1e-2:
            raise FloatingPointError("singular")
        return build(recipe, n_train, random_state)

    monkeypatch.setattr(search, "build", fussy)
    found = search.search(ridge_search(12), rows.inner_folds(0, 3), "regression", seed=0)
    assert found.failed > 0
    assert found.recipe.parameters["l2_head"] >= 1e-2

    def broken(recipe: Recipe, n_train: int, random_state: int):
        raise FloatingPointError("always singular")

    monkeypatch.setattr(search, "build", broken)
    with pytest.raises(FloatingPointError, match="always singular"):
        search.search(ridge_search(3), rows.inner_folds(0, 3), "regression", seed=0)


# --- the command ------------------------------------------------------------------------------


def test_run_stores_what_was_chosen_and_another_budget_is_another_job(made_up, capsys):
    words = ["--models", "ridge,rfnn-swim", "--folds", "1", "--inner-folds", "2"]
    assert command("run", made_up, *words, "--trials", "3") == 0
    shown = capsys.readouterr()
    assert "2 jobs to run, 0 already done" in shown.err
    record = json.loads(result_file(made_up, "ridge", 1).read_text())
    assert record["job"]["recipe"]["trials"] == 3
    assert record["job"]["recipe"]["space"] == {"l2_head": {"low": 1e-5, "high": 10, "log": True}}
    details = record["scores"]["details"]
    assert details["trials"] == {"done": 3, "pruned": 0, "failed": 0}
    assert details["seeds"] == {"search": 1, "model": 1}
    assert {"rfrboost", "numpy", "scikit-learn", "optuna"} <= set(record["provenance"]["versions"])
    assert details["search_seconds"] > 0

    # The stored score is that of a fit with the stored parameters, on the same fold.
    rows = protocols.load_rows("paper", ENERGY, made_up / "data")
    model = build(Recipe("Ridge", details["parameters"]), len(rows.fold(1).y_train), 1)
    expected = fit_and_score(model, rows.fold(1), "regression").test_score
    assert record["scores"]["test_score"] == pytest.approx(expected, rel=1e-12)
    assert f"{expected:.4f}" in shown.out

    before = result_file(made_up, "ridge", 1).stat().st_mtime_ns
    assert command("run", made_up, *words, "--trials", "3") == 0
    repeated = capsys.readouterr()
    assert repeated.out == shown.out
    assert "jobs to run" not in repeated.err, "nothing is left to do"
    assert result_file(made_up, "ridge", 1).stat().st_mtime_ns == before
    assert command("run", made_up, *words, "--models", "ridge", "--trials", "2") == 0
    assert "1 jobs to run, 0 already done" in capsys.readouterr().err


def test_strict_has_results_of_its_own(made_up):
    words = ["--models", "ridge", "--folds", "0", "--inner-folds", "2", "--trials", "1"]
    assert command("run", made_up, *words, "--protocol", "strict") == 0
    path = result_file(made_up, "ridge", 0)
    assert not path.exists()
    assert Path(str(path).replace("/paper/", "/strict/")).is_file()


def test_a_failed_job_is_listed_has_no_score_and_makes_the_exit_code_1(
    made_up, monkeypatch, capsys
):
    def fail(jobs, work, out, n_processes, mix_commits) -> list[Result]:
        return [Result(job, None, "LinAlgError: singular") for job in jobs]

    monkeypatch.setattr(run, "run_jobs", fail)
    assert command("run", made_up, "--models", "ridge", "--folds", "0,1") == 1
    shown = capsys.readouterr().out
    assert "| 44960 | energy_efficiency | – |" in shown
    assert "- 44960 ridge fold 1: LinAlgError: singular" in shown


def test_every_model_of_the_task_is_planned_when_none_is_named(made_up, monkeypatch):
    planned = []

    def remember(jobs, work, out, n_processes, mix_commits) -> list[Result]:
        planned.extend(jobs)
        return [Result(job, None, "not run") for job in jobs]

    monkeypatch.setattr(run, "run_jobs", remember)
    monkeypatch.setattr(run, "check_libraries", lambda models: None)
    command("run", made_up, "--folds", "0,3")
    command("run", made_up, "--models", "all", "--folds", "0,3")
    names = [model.name for model in SEARCHED_MODELS if model.task == "regression"]
    assert len(names) == 16
    once = [(name, fold) for name in names for fold in (0, 3)]
    assert [(job.model, job.fold) for job in planned] == once * 2
    assert {(job.recipe.trials, job.recipe.inner_folds) for job in planned} == {(100, 5)}


class Blocker:
    """An import system without one library."""

    def __init__(self, library: str) -> None:
        self.library = library

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name.partition(".")[0] == self.library:
            raise ModuleNotFoundError(f"No module named {name!r}")


@pytest.mark.parametrize(
    ("library", "model", "extra"),
    [
        ("torch", "mlp", "torch"),
        ("torch", "all", "torch"),
        ("optuna", "ridge", "experiments"),
        ("xgboost", "xgboost", "experiments"),
        ("catboost", "ridge,catboost", "experiments"),
    ],
)
def test_a_missing_library_is_one_sentence_that_names_the_extra(
    made_up, monkeypatch, capsys, library, model, extra
):
    monkeypatch.delitem(sys.modules, library, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Blocker(library), *sys.meta_path])
    assert command("run", made_up, "--models", model) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert f"needs the library {library}" in shown.err
    assert f".[{extra}]" in shown.err
    assert not (made_up / "out").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--models", "ridge,forest"], "Unknown model forest"),
        (["--models", "logistic"], "Nothing to run"),
        (["--tables", "44960,123"], "Unknown table 123"),
        (["--tables", "44956"], "Table 44956 (abalone) has no file"),
        (["--trials", "0"], "--trials must be at least 1"),
        (["--inner-folds", "1"], "--inner-folds must be at least 2"),
        (["--data", "nowhere"], "No data folder at nowhere"),
    ],
)
def test_a_run_that_cannot_be_met_is_one_sentence_and_writes_nothing(
    made_up, capsys, words, sentence
):
    assert command("run", made_up, "--models", "ridge", *words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(sentence)
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (made_up / "out").exists()
