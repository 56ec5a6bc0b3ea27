"""``defaults``: the models and their threads, the command, and requests that cannot be met."""

import importlib
import os
from pathlib import Path

import pytest
import sklearn.metrics
from experiment_runs import ENERGY, untraceable
from threadpoolctl import threadpool_info, threadpool_limits

from experiments import requests
from experiments.__main__ import main, parser
from experiments.commands import defaults
from experiments.data.protocols import load_rows
from experiments.data.tables import known_table
from experiments.models import untuned
from experiments.models.baselines import SOURCES
from experiments.models.scoring import Scores
from experiments.models.untuned import OURS, VARIANTS, TimedRecipe, build_untuned, select_untuned
from experiments.runs import pool
from experiments.runs.files import read_table
from experiments.runs.jobs import Job, Result, read_result, write_result

RECIPE = TimedRecipe("made up", {}, threads=2)
BALANCE = 11  # 625 rows, classification


# --- models and threads -----------------------------------------------------------------------


def test_unless_they_are_named_only_the_four_are_fitted_in_the_same_order_on_every_fold(made_up):
    words = ["defaults", "--data", str(made_up / "data"), "--folds", "2,0", "--threads", "3"]
    arguments = parser().parse_args(words)
    jobs = defaults.plan(arguments, [known_table(BALANCE)], select_untuned(None))
    models = ["rfrboost", "catboost", "lightgbm", "xgboost"]
    assert [(job.fold, job.model) for job in jobs] == [(k, m) for k in (2, 0) for m in models]
    assert [job.recipe.estimator for job in jobs[:4]] == [
        "RFRBoostClassifier", "CatBoostClassifier", "LGBMClassifier", "XGBClassifier"
    ]  # fmt: skip
    assert {job.recipe.threads for job in jobs} == {3}
    assert all(job.recipe.parameters == {} for job in jobs)


@pytest.mark.parametrize("name", [OURS, *VARIANTS])
def test_ours_differs_from_the_estimator_as_it_comes_by_what_the_variant_says(name):
    import rfrboost

    for model in select_untuned([name]):
        built = build_untuned(model.recipe(threads=2), n_train=10, random_state=5).get_params()
        plain = getattr(rfrboost, model.estimator)().get_params()
        changed = {key: value for key, value in built.items() if value != plain[key]}
        assert changed == VARIANTS.get(name, {}) | {"random_state": 5}


@pytest.mark.parametrize("name", ["catboost", "lightgbm", "xgboost"])
def test_other_libraries_get_threads_seed_and_silence_only(name):
    pytest.importorskip(name)
    for model in select_untuned([name]):
        built = build_untuned(model.recipe(threads=2), n_train=10, random_state=5)
        source = SOURCES[model.estimator]
        plain = getattr(importlib.import_module(source.module), model.estimator)().get_params()
        # As text, because XGBoost has a NaN among its defaults.
        as_it_comes = {key: repr(value) for key, value in plain.items()}
        changed = {
            key: value
            for key, value in getattr(built, "classifier", built).model.get_params().items()
            if repr(value) != as_it_comes.get(key)
        }
        assert changed == source.settings | {source.threads: 2, "random_state": 5}


def count_threads(job: Job) -> Scores:
    """Test score: the threads of the widest library; train score: of the environment."""
    widest = max(library["num_threads"] for library in threadpool_info())
    return Scores(float(os.environ.get("OMP_NUM_THREADS", 0)), widest, 0.0, 0.0)


@pytest.mark.usefixtures("worker_processes")
def test_a_worker_has_as_many_threads_as_asked(tmp_path):
    job = Job("paper", ENERGY, "rfrboost", 0, RECIPE)
    (result,) = pool.run_jobs([job], count_threads, tmp_path, n_processes=1, threads=2)
    assert result.scores.train_score == 2
    with threadpool_limits(limits=1):
        job = Job("paper", ENERGY, "rfrboost", 1, RECIPE)
        result = pool.run_claimed(job, count_threads, tmp_path, wait=False, threads=2)
    assert result.scores.test_score == 2


def test_a_library_is_warmed_up_once_a_process_and_before_the_clock_starts(made_up, monkeypatch):
    fits = []

    def remember(recipe: TimedRecipe, n_train: int, random_state: int):
        fits.append(n_train)
        return build_untuned(recipe, n_train, random_state)

    monkeypatch.setattr(untuned, "build_untuned", remember)
    monkeypatch.setattr(defaults, "build_untuned", remember)
    untuned.warm_up.cache_clear()
    recipe = TimedRecipe("RFRBoostRegressor", {"n_layers": 1, "n_features": 8}, threads=1)
    for fold in (0, 1):
        defaults.fit_untuned(Job("paper", ENERGY, "rfrboost", fold, recipe), made_up / "data")
    assert fits[0] == untuned.WARM_UP_ROWS
    assert fits[1:] == [614, 614], "768 rows less a fifth, rounded"


# --- the command ------------------------------------------------------------------------------


def command(folder: Path, *words: str) -> int:
    """The exit code of the command on the made-up folder."""
    places = ["--data", str(folder / "data"), "--out", str(folder / "out")]
    return main(["defaults", *places, *words])


def store(folder: Path, scores: dict[str, float], threads: int) -> None:
    """Result files as the command would write them, for fold 0 of the made-up table."""
    for model in select_untuned(list(scores)):
        if model.task == "regression":
            details = {"processor": "made up", "versions": {"numpy": "0"}}
            made = Scores(0.0, scores[model.name], 1.0, 0.5, details)
            job = Job("paper", ENERGY, model.name, 0, model.recipe(threads))
            write_result(Result(job, made, None), folder / "out")


def test_stored_results_are_compared_and_written_without_a_fit(made_up, capsys, monkeypatch):
    def refuse(job: Job, data: Path) -> Scores:
        raise AssertionError("nothing is left to fit")

    monkeypatch.setattr(defaults, "fit_untuned", refuse)
    variant = next(iter(VARIANTS))
    store(made_up, {"rfrboost": 0.25, "catboost": 0.5, variant: 0.2}, threads=2)
    words = ["--models", f"catboost,rfrboost,{variant}", "--folds", "0"]
    assert command(made_up, *words) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    folder = made_up / "out" / "paper"
    files = ("defaults.md", "summary.csv", "comparisons.csv", "datasets.csv")
    written = {name: (folder / name).read_text() for name in files}
    assert shown.out == written["defaults.md"] + "\n"
    summary = read_table(folder / "summary.csv").query("half == 'all'").set_index("model")
    assert summary["mean_rank"].to_dict() == {
        f"RFRBoost, {variant}": 1.0,
        "RFRBoost, default": 2.0,
        "Ridge regression, tuned": 3.0,
        "CatBoost, default": 4.0,
    }
    assert command(made_up, *words) == 0
    assert {name: (folder / name).read_text() for name in files} == written


def test_other_threads_are_other_jobs_and_a_failure_makes_the_exit_code_1(
    made_up, capsys, monkeypatch
):
    def fail(jobs, work, out, n_processes, threads, mix_commits) -> list[Result]:
        assert (n_processes, threads) == (1, 1)
        assert [read_result(job, out) for job in jobs] == [None]
        return [Result(job, None, "LinAlgError: singular") for job in jobs]

    store(made_up, {"rfrboost": 0.25}, threads=2)
    monkeypatch.setattr(defaults, "run_jobs", fail)
    words = ["--models", "rfrboost", "--folds", "0", "--threads", "1"]
    assert command(made_up, *words) == 1
    shown = capsys.readouterr().out
    assert "## Failed: 1 fits" in shown
    assert f"- {ENERGY} rfrboost fold 0: LinAlgError: singular" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--models", "rfrboost,forest"], "Unknown model forest"),
        (["--tables", "44960,123"], "Unknown table 123"),
        (["--folds", "5"], "The folds are 0 to 4"),
        (["--threads", "0"], "--threads must be at least 1"),
        (["--data", "nowhere"], "No data folder at nowhere"),
        (["--published-runs", "nowhere"], "No published runs at nowhere"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence_and_writes_nothing(
    made_up, capsys, words, sentence
):
    assert command(made_up, "--models", "rfrboost", *words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(sentence)
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (made_up / "out").exists()


def test_a_missing_library_is_one_sentence_that_names_the_extra(made_up, capsys, monkeypatch):
    monkeypatch.setattr(requests, "_is_installed", lambda library: library != "lightgbm")
    assert command(made_up) == 2
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert "needs the library lightgbm" in shown.err
    assert ".[experiments]" in shown.err
    assert not (made_up / "out").exists()


def test_two_real_tables(real, tmp_path, capsys):
    xgboost = pytest.importorskip("xgboost")
    for library in ("lightgbm", "catboost"):
        pytest.importorskip(library)
    data, published = real
    words = ["--tables", f"{ENERGY},{BALANCE}", "--folds", "1", "--threads", "1"]
    places = ["--data", str(data), "--out", str(tmp_path)]
    field = ["--models", "one-member,catboost,lightgbm,xgboost"]
    assert main(["defaults", *places, *words, *field]) == 0
    shown = capsys.readouterr().out
    assert untraceable(tmp_path) == []
    rows = read_table(tmp_path / "paper" / "datasets.csv").set_index(["dataset", "model"])
    folds = read_table(tmp_path / "paper" / "folds.csv").set_index(["dataset", "model"])
    assert folds["test_score"].to_dict() == pytest.approx(rows["mean_score"].to_dict())

    fold = load_rows("paper", BALANCE, data).fold(1)
    trees = xgboost.XGBClassifier(n_jobs=1, random_state=1).fit(fold.X_train, fold.y_train)
    row = rows.loc[(BALANCE, "XGBoost, default")]
    expected = sklearn.metrics.log_loss(fold.y_test, trees.predict_proba(fold.X_test))
    assert row["mean_score"] == pytest.approx(trees.score(fold.X_test, fold.y_test), abs=1e-6)
    assert row["mean_log_loss"] == pytest.approx(expected, rel=1e-5)
    assert row["fit_seconds"] > 0

    tuned = published[(published["dataset"] == ENERGY) & (published["fold"] == 1)]
    ridge = tuned.loc[tuned["model"] == "Ridge", "test_score"].item()
    stored = rows.loc[(ENERGY, "Ridge regression, tuned"), "mean_score"]
    assert stored == pytest.approx(ridge, abs=1e-6)
    assert f"{ridge:.4f}" in shown

    # Under another protocol the published scores would be of other labels.
    words += ["--protocol", "strict", "--models", "xgboost"]
    assert main(["defaults", *places, *words]) == 0
    assert "tuned" not in capsys.readouterr().out


def test_the_shortest_of_short_fits_counts(monkeypatch):
    clock = iter([0.0, 0.5, 1.0, 1.9])
    monkeypatch.setattr(defaults.time, "perf_counter", clock.__next__)
    assert defaults.shortest(0.7, lambda: None) == 0.5
    assert defaults.shortest(2.1, lambda: pytest.fail("a long fit is not repeated")) == 2.1
