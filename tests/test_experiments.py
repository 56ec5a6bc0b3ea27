"""The experiments harness: protocol laws, resumable jobs, translation, and the command line."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from experiments import comparison, datasets, files, jobs, pool, protocols, published, replay
from experiments.__main__ import main
from experiments.errors import ExperimentError, UsageError
from experiments.models import Recipe, build
from experiments.scoring import Scores, accuracy, fit_and_score, rmse

RIDGE = Recipe("Ridge", {"l2_head": 0.01})
SCORES = Scores(train_score=0.25, test_score=0.5, fit_seconds=1.0, predict_seconds=0.125)
ENERGY = 44960  # 768 rows, 8 inputs, regression


def job(fold: int = 0, recipe: Recipe = RIDGE, dataset: int = ENERGY) -> jobs.Job:
    return jobs.Job("paper", dataset, "ridge", fold, recipe)


def good_work(job: jobs.Job) -> Scores:
    return SCORES


def bad_work(job: jobs.Job) -> Scores:
    raise FloatingPointError("the Gram matrix is singular")


# --- protocol: laws on small frames ---------------------------------------------------------


def mixed_frame(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    colour = pd.Categorical(rng.choice(["red", "blue"], n), categories=["blue", "green", "red"])
    return pd.DataFrame(
        {"size": rng.normal(50, 10, n), "colour": colour, "target": rng.normal(7, 3, n)}
    )


def test_holes_get_the_median_and_the_most_frequent_level():
    frame = pd.DataFrame(
        {
            "size": [1.0, np.nan, 2.0, 9.0],
            "colour": pd.Categorical(["b", "a", "b", None]),
            "empty": [np.nan] * 4,
            "whole": [1, 2, 3, 4],
        }
    )
    filled = protocols.fill_holes(frame)
    assert filled["size"].tolist() == [1.0, 2.0, 2.0, 9.0]
    assert filled["colour"].tolist() == ["b", "a", "b", "b"]
    assert filled["empty"].tolist() == [0.0] * 4
    assert list(filled.columns) == list(frame.columns)


def test_one_hot_counts_declared_levels_that_no_row_uses():
    encoded = protocols.one_hot(mixed_frame()[["size", "colour"]])
    assert encoded.shape == (40, 4)
    assert encoded.dtype == np.float32
    assert (encoded[:, 2] == 0).all(), "green is declared but never used"
    assert (encoded[:, 1:].sum(axis=1) == 1).all()


def test_kept_rows_are_the_first_5000_of_the_fixed_permutation():
    rows = protocols.kept_rows(6000)
    assert rows.tolist() == np.random.RandomState(42).permutation(6000)[:5000].tolist()
    assert sorted(protocols.kept_rows(100)) == list(range(100))


def test_standardise_uses_the_population_deviation_and_the_offset():
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    expected = [[-1 / (1 + 1e-5), 0.0], [1 / (1 + 1e-5), 0.0]]
    np.testing.assert_allclose(protocols.standardise(values), expected, rtol=1e-12)


def test_labels_are_coded_in_sorted_order():
    assert protocols.label_codes(pd.Series(["won", "lost", "draw", "won"])).tolist() == [2, 1, 0, 2]
    declared_otherwise = pd.Series(pd.Categorical(["b", "a"], categories=["b", "a"]))
    assert protocols.label_codes(declared_otherwise).tolist() == [1, 0]


def test_paper_protocol_scales_over_all_rows_and_clips():
    frame = mixed_frame()
    frame.loc[0, ["size", "target"]] = [1e4, -1e4]
    folds = protocols.paper(frame, "regression")
    X = np.concatenate([fold.X_test for fold in folds])
    y = np.concatenate([fold.y_test for fold in folds])
    assert X.dtype == np.float32
    assert X.shape == (40, 4)
    assert (X.max(), y.min()) == (3, -3), "the outlier is clipped"
    # Before clipping the means are zero over all 40 rows: the outlier alone accounts for the rest.
    raw = frame["size"].to_numpy()
    np.testing.assert_allclose(X[:, 0].sum(), 3 - (raw[0] - raw.mean()) / raw.std(), atol=1e-3)


def test_paper_protocol_folds_are_the_published_ones():
    n = 23
    frame = pd.DataFrame({"row": np.arange(n, dtype=float), "target": np.arange(n, dtype=float)})
    folds = protocols.paper(frame, "regression")
    # Undo the monotone scaling to learn which row went where.
    order = np.random.RandomState(42).permutation(n)
    positions = np.random.RandomState(42).permutation(
        n
    )  # KFold shuffles positions with the same seed
    sizes = [5, 5, 5, 4, 4]
    start = 0
    for fold, size in zip(folds, sizes, strict=True):
        rows = order[np.sort(positions[start : start + size])]
        back = np.rint(fold.y_test * (np.arange(n).std() + 1e-5) + np.arange(n).mean())
        assert back.tolist() == rows.tolist()
        assert len(fold.y_train) == n - size
        start += size


# --- scores ---------------------------------------------------------------------------------


def test_scores_are_rmse_and_accuracy():
    assert rmse(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == pytest.approx(np.sqrt(12.5))
    assert accuracy(np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])) == 0.75


@pytest.mark.parametrize("metric", [rmse, accuracy])
def test_a_column_of_predictions_is_refused_and_not_broadcast(metric):
    with pytest.raises(ValueError, match=r"shape \(3, 1\)"):
        metric(np.zeros(3), np.zeros((3, 1)))


def test_ridge_penalty_weighs_the_mean_squared_error():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)).astype(np.float32), rng.normal(size=60)
    l2 = 0.3
    model = build(Recipe("Ridge", {"l2_head": l2}), len(y), random_state=0).fit(X, y)
    Xc = X.astype(float) - X.astype(float).mean(axis=0)
    # The gradient of mean squared error + l2 * |w|^2 vanishes at the solution.
    w = model[-1].coef_
    np.testing.assert_allclose(Xc.T @ (Xc @ w - (y - y.mean())) / len(y) + l2 * w, 0, atol=1e-10)


def test_logistic_penalty_has_no_half():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)
    l2 = 0.05
    model = build(Recipe("LogisticRegression", {"l2_head": l2}), len(y), random_state=0).fit(X, y)
    w, p = model[-1].coef_[0], model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(X.T @ (p - y) / len(y) + 2 * l2 * w, 0, atol=1e-4)


def test_a_score_that_is_not_a_number_is_an_error():
    class Diverged:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), np.nan)

    fold = protocols.Fold(np.zeros((2, 1)), np.zeros(2), np.zeros((1, 1)), np.zeros(1))
    with pytest.raises(ArithmeticError, match="not finite"):
        fit_and_score(Diverged(), fold, "regression")


# --- jobs -----------------------------------------------------------------------------------


def test_result_file_is_the_identity_and_reads_back(tmp_path):
    result = jobs.execute(job(3), good_work, tmp_path)
    assert result.scores == SCORES
    assert (tmp_path / "paper" / "44960" / "ridge" / "fold3.json").is_file()
    assert jobs.read_result(job(3), tmp_path) == result
    assert jobs.read_result(job(2), tmp_path) is None


@pytest.mark.parametrize("kept", [0, 1, 40, 0.5, 0.95])
def test_a_truncated_result_is_run_again(tmp_path, kept):
    jobs.execute(job(), good_work, tmp_path)
    path = job().result_path(tmp_path)
    text = path.read_text()
    path.write_text(text[: int(kept * len(text)) if isinstance(kept, float) else kept])
    assert jobs.read_result(job(), tmp_path) is None
    jobs.execute(job(), good_work, tmp_path)
    assert jobs.read_result(job(), tmp_path).scores == SCORES


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"job": 1, "status": "ok"}', "\x00"])
def test_a_foreign_result_is_run_again(tmp_path, text):
    path = job().result_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert jobs.read_result(job(), tmp_path) is None


def test_a_result_of_other_parameters_is_run_again(tmp_path):
    jobs.execute(job(), good_work, tmp_path)
    assert jobs.read_result(job(recipe=Recipe("Ridge", {"l2_head": 0.02})), tmp_path) is None


def test_a_recipe_with_a_pair_of_widths_reads_back(tmp_path):
    wide = job(recipe=Recipe("RFRBoostRegressor", {"n_features": (512, 512)}))
    jobs.execute(wide, good_work, tmp_path)
    assert jobs.read_result(wide, tmp_path) is not None


def test_a_failure_is_recorded_with_its_text_and_no_score(tmp_path):
    result = jobs.execute(job(), bad_work, tmp_path)
    record = json.loads(job().result_path(tmp_path).read_text())
    assert record["status"] == "failed"
    assert record["scores"] is None
    assert record["error"] == result.error == "FloatingPointError: the Gram matrix is singular"
    assert jobs.read_result(job(), tmp_path) is None, "a failure is tried again"


def test_an_interrupted_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    files.write_atomically(path, "old")

    def killed(source, target):
        assert Path(source).parent == path.parent, "a rename is atomic on one file system only"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_jobs_of_one_dataset_run_together():
    mixed = [job(fold, dataset=dataset) for fold in range(2) for dataset in (44960, 44956)]
    assert [j.dataset for j in pool.by_dataset(mixed)] == [44956, 44956, 44960, 44960]


# --- translation of the published models ----------------------------------------------------

BOOSTED = {
    "in_dim": 8, "out_dim": 1, "feature_type": "SWIM", "upscale_type": "identity",
    "randfeat_xt_dim": 512, "randfeat_x0_dim": 256, "activation": "tanh", "use_batchnorm": False,
    "add_features": False, "n_layers": 4, "l2_reg": 0.01, "l2_ghat": 0.2, "boost_lr": 0.25,
    "hidden_dim": 72, "SWIM_scale": 1.5,
}  # fmt: skip
COMMON = {
    "n_layers": 4, "features": "swim", "feature_scale": 1.5, "activation": "tanh",
    "learning_rate": 0.25, "l2_step": 0.2, "l2_head": 0.01,
}  # fmt: skip
IID = {"feature_type": "iid", "iid_scale": 3.0}


def without(settings: dict, key: str) -> dict:
    return {name: value for name, value in settings.items() if name != key}


def variant(name: str, task: str = "regression") -> published.Variant:
    (found,) = (v for v in published.VARIANTS if v.name == name and v.task == task)
    return found


def test_gradient_and_dense_start_from_the_inputs_with_two_widths():
    wide = {"initial": "identity", "n_features": (512, 256)}
    gradient = variant("gradient-swim").recipe(BOOSTED)
    assert gradient == Recipe("RFRBoostRegressor", COMMON | wide | {"strategy": "gradient"})
    dense = variant("dense-iid").recipe(without(BOOSTED, "SWIM_scale") | IID)
    greedy = {
        "strategy": "greedy",
        "step_matrix": "dense",
        "features": "uniform",
        "feature_scale": 3.0,
    }
    assert dense == Recipe("RFRBoostRegressor", COMMON | wide | greedy)


@pytest.mark.parametrize("step_matrix", ["diagonal", "scalar"])
def test_diagonal_and_scalar_start_from_a_layer_of_the_common_width(step_matrix):
    expected = COMMON | {
        "strategy": "greedy",
        "step_matrix": step_matrix,
        "initial": "swim",
        "hidden_dim": 72,
    }
    swim = variant(f"{step_matrix}-swim").recipe(BOOSTED | {"upscale_type": "SWIM"})
    assert swim == Recipe("RFRBoostRegressor", expected)
    # With i.i.d. features the first layer is SWIM still, at the published code's default scale.
    iid = variant(f"{step_matrix}-iid").recipe(
        without(BOOSTED, "SWIM_scale") | IID | {"upscale_type": "SWIM"}
    )
    different = {"features": "uniform", "feature_scale": 3.0, "initial_scale": 0.5}
    assert iid == Recipe("RFRBoostRegressor", expected | different)


def test_random_feature_networks_and_baselines():
    layer = {
        "upscale_type": "iid",
        "hidden_dim": 90,
        "iid_scale": 2.0,
        "n_layers": 0,
        "activation": "tanh",
    }
    expected = {"features": "uniform", "n_features": 90, "feature_scale": 2.0, "l2_head": 0.5}
    assert variant("rfnn-iid").recipe(layer | {"l2_reg": 0.5}) == Recipe("RFNNRegressor", expected)
    assert variant("rfnn-iid", "classification").recipe(layer | {"l2_cls": 0.5}) == Recipe(
        "RFNNClassifier", expected
    )
    assert variant("ridge").recipe({"l2_reg": 0.5}) == Recipe("Ridge", {"l2_head": 0.5})
    logistic = variant("logistic", "classification").recipe({"l2_lambda": 0.5, "n_classes": 3})
    assert logistic == Recipe("LogisticRegression", {"l2_head": 0.5})


def test_classifier_takes_its_own_head_penalty():
    settings = without(BOOSTED, "l2_reg") | {"l2_cls": 0.07, "do_linesearch": True}
    recipe = variant("rfrboost-swim", "classification").recipe(settings)
    assert recipe.estimator == "RFRBoostClassifier"
    assert recipe.parameters["l2_head"] == 0.07


@pytest.mark.parametrize(
    "setting", [{"use_batchnorm": True}, {"activation": "relu"}, {"do_linesearch": False}]
)
def test_a_published_setting_we_cannot_repeat_is_refused(setting):
    with pytest.raises(UsageError, match=next(iter(setting))):
        variant("gradient-swim").recipe(BOOSTED | setting)


def test_our_estimators_get_the_recipe_and_the_fold_as_seed(made_up, monkeypatch):
    built = []

    class RFNNRegressor:
        def __init__(self, *, n_features, random_state):
            built.append((n_features, random_state))

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    monkeypatch.setitem(sys.modules, "rfrboost", SimpleNamespace(RFNNRegressor=RFNNRegressor))
    scores = replay.refit(job(3, Recipe("RFNNRegressor", {"n_features": 90})), made_up / "data")
    assert built == [(90, 3)]
    assert scores.test_score == pytest.approx(1, abs=0.2), (
        "zero is the mean of a standardised label"
    )


@pytest.mark.parametrize(
    "name", [v.name for v in published.VARIANTS if v.task == "regression" and v.name != "ridge"]
)
def test_our_estimators_fit_what_is_translated(made_up, name):
    settings = BOOSTED | {
        "feature_type": "iid" if name.endswith("iid") else "SWIM",
        "upscale_type": "iid" if name == "rfnn-iid" else "SWIM",
        "iid_scale": 0.5,
        "randfeat_xt_dim": 32,
        "randfeat_x0_dim": 32,
    }
    scores = replay.refit(job(0, variant(name).recipe(settings)), made_up / "data")
    # A linear label of variance 9 with unit noise: a third is the floor, one is the mean's score.
    assert 0.25 < scores.test_score < 0.6


# --- comparison -----------------------------------------------------------------------------


def published_frame(
    task: str, dataset: int, model: str, scores: list[float], settings: dict
) -> pd.DataFrame:
    n = len(scores)
    return pd.DataFrame(
        {
            "task": task, "dataset": dataset, "model": model, "fold": range(n),
            "test_score": scores, "fit_seconds": 2.0, "hyperparameters": json.dumps(settings),
        }
    )  # fmt: skip


def results_of(dataset: int, model: str, scores: list[float]) -> list[jobs.Result]:
    return [
        jobs.Result(
            jobs.Job("paper", dataset, model, fold, RIDGE), Scores(0.0, score, 1.0, 0.0), None
        )
        for fold, score in enumerate(scores)
    ]


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
    rows = comparison.dataset_rows(comparison.fold_rows(ours, theirs, published.VARIANTS))
    energy, balance = (rows[rows["dataset"] == dataset].iloc[0] for dataset in (ENERGY, 11))
    # Two folds were run: the published mean is over the same two, its spread over all five.
    assert (energy["ours"], energy["published"]) == (pytest.approx(0.25), pytest.approx(0.15))
    assert energy["ratio"] == pytest.approx(0.25 / 0.15)
    assert energy["z"] == pytest.approx(0.1 / np.std([0.1, 0.2, 0.3, 0.4, 0.5], ddof=1))
    assert balance["difference"] == pytest.approx(-0.05)
    assert balance["z"] > 0, "a lower accuracy is worse"
    summary = comparison.variant_rows(rows).set_index("variant")
    assert summary.loc["ridge", "agreement"] == pytest.approx((0.25 / 0.15 + 1) / 2)
    assert summary.loc["ridge", "worst dataset"] == "energy_efficiency"
    assert summary.loc["rfnn-swim", "agreement"] == pytest.approx(-0.05)
    assert summary.loc["rfnn-swim", "worst dataset"] == "balance-scale"


def test_a_failed_fold_is_named_and_left_out():
    theirs = published_frame("regression", ENERGY, "Ridge", [0.1, 0.2, 0.3], {})
    failed = jobs.Result(job(2), None, "LinAlgError: singular")
    rows = comparison.dataset_rows(
        comparison.fold_rows(
            [*results_of(ENERGY, "ridge", [0.1, 0.2]), failed], theirs, published.VARIANTS
        )
    )
    assert rows["ratio"].tolist() == [1.0]
    assert rows["folds"].tolist() == [2]
    assert "- 44960 ridge fold 2: LinAlgError: singular" in comparison.markdown_report(
        rows, [failed]
    )


# --- the command line, on a made-up table of the right shape ---------------------------------


@pytest.fixture
def made_up(tmp_path) -> Path:
    """A data folder with one table shaped as energy_efficiency, and published ridge runs."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(768, 8)), columns=[f"x{j}" for j in range(8)])
    frame["target"] = frame.sum(axis=1) + rng.normal(size=768)
    path = datasets.known_table(ENERGY).path(tmp_path / "data")
    path.parent.mkdir(parents=True)
    frame.to_parquet(path)
    (tmp_path / "paper").mkdir()
    runs = published_frame(
        "regression", ENERGY, "Ridge", [0.3, 0.31, 0.32, 0.33, 0.34], {"l2_reg": 1e-3}
    )
    runs.to_parquet(tmp_path / "paper" / published.FILE_NAME)
    return tmp_path


def replay_command(folder: Path, *words: str) -> int:
    return main(
        [
            "replay",
            "--data",
            str(folder / "data"),
            "--out",
            str(folder / "out"),
            "--jobs",
            "2",
            *words,
        ]
    )


def test_replay_runs_reports_and_resumes(made_up, capsys):
    assert replay_command(made_up, "--models", "ridge", "--folds", "0,1") == 0
    assert "2 jobs to run, 0 already done" in capsys.readouterr().err
    first = job(0).result_path(made_up / "out")
    before = first.stat().st_mtime_ns
    job(1).result_path(made_up / "out").write_text('{"job": {')

    assert replay_command(made_up, "--models", "ridge", "--folds", "0,1") == 0
    shown = capsys.readouterr()
    assert "1 jobs to run, 1 already done" in shown.err
    assert first.stat().st_mtime_ns == before
    assert shown.out.rstrip() == (made_up / "out" / "replay.md").read_text().rstrip()
    rows = pd.read_csv(made_up / "out" / "replay.csv")
    assert rows[["dataset", "variant", "folds"]].values.tolist() == [[ENERGY, "ridge", 2]]
    # Unit noise, and a label of variance 9: the true RMSE is a third.
    assert rows["ours"][0] == pytest.approx(1 / 3, abs=0.05)


def test_replay_of_failing_fits_reports_them_and_exits_with_1(made_up, capsys):
    runs = published_frame("regression", ENERGY, "Ridge", [0.3] * 5, {"l2_reg": "much"})
    runs.to_parquet(made_up / "paper" / published.FILE_NAME)
    assert replay_command(made_up, "--folds", "0") == 1
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
        (["--jobs", "0"], "--jobs is the number of processes"),
        (["--data", "nowhere"], "No data folder at nowhere"),
        (["--out", __file__], f"--out {__file__} is a file"),
        (["--published-runs", __file__], f"{__file__} does not hold the published runs"),
        (["--published-runs", "nothing.parquet"], "No published runs at nothing.parquet"),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence_and_writes_nothing(
    made_up, capsys, words, sentence
):
    assert replay_command(made_up, *words) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith(sentence)
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert not (made_up / "out").exists()


@pytest.mark.parametrize("change", ["rows", "columns", "label", "cut off"])
def test_a_wrong_table_is_refused_before_anything_is_fitted(made_up, capsys, change):
    path = datasets.known_table(ENERGY).path(made_up / "data")
    frame = pd.read_parquet(path)
    if change == "cut off":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        wrong = {
            "rows": frame.iloc[:-1],
            "columns": frame.drop(columns="x0"),
            "label": frame.rename(columns={"target": "y"}),
        }
        wrong[change].to_parquet(path)
    with pytest.raises(UsageError, match=str(path)):
        datasets.load_table(datasets.known_table(ENERGY), made_up / "data")
    assert replay_command(made_up) == 2
    assert not (made_up / "out").exists()


def test_data_folder_argument_then_variable_then_neighbour(tmp_path, monkeypatch):
    for name in ("argument", "variable", "shared/data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(datasets, "REPOSITORY", tmp_path / "repository")
    monkeypatch.setenv(datasets.DATA_VARIABLE, str(tmp_path / "variable"))
    assert datasets.find_data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert datasets.find_data_folder(None) == tmp_path / "variable"
    monkeypatch.delenv(datasets.DATA_VARIABLE)
    assert datasets.find_data_folder(None) == tmp_path / "shared" / "data"


def count_threads(job: jobs.Job) -> Scores:
    """Test score: the threads of the widest library; train score: of the environment."""
    widest = max(library["num_threads"] for library in threadpool_info())
    return Scores(float(os.environ.get("OMP_NUM_THREADS", "0")), widest, 0.0, 0.0)


def die(job: jobs.Job) -> Scores:
    os._exit(1)


def test_a_killed_worker_ends_the_run_with_advice(tmp_path):
    with pytest.raises(ExperimentError, match="run the same command again") as caught:
        pool.run_jobs([job(0), job(1)], die, tmp_path, 2)
    assert caught.value.exit_code == 1


def test_ctrl_c_says_how_to_go_on(made_up, monkeypatch, capsys):
    def interrupted(jobs, work, out, n_processes):
        raise KeyboardInterrupt

    monkeypatch.setattr(replay, "run_jobs", interrupted)
    assert replay_command(made_up) == 130
    assert "goes on where it was" in capsys.readouterr().err


def test_workers_start_with_one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (result,) = pool.run_jobs([job()], count_threads, tmp_path, 1)
    assert (result.scores.train_score, result.scores.test_score) == (1, 1)
    assert os.environ["OMP_NUM_THREADS"] == "7", "the caller's own setting is put back"


def test_a_job_lowers_libraries_that_are_loaded_already(tmp_path):
    with threadpool_limits(limits=2):
        assert pool.run_with_one_thread(job(), count_threads, tmp_path).scores.test_score == 1
        assert count_threads(job()).test_score == 2, "and only for the job"


# --- the published runs themselves ----------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> tuple[Path, pd.DataFrame]:
    try:
        folder = datasets.find_data_folder(None)
        return folder, published.read_published(None, folder)
    except UsageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("dataset", "model", "tolerance"),
    [
        # Scores are stored in single precision; the published ridge was solved in it as well.
        (41021, "ridge", 1e-6),  # holes, nominal columns
        (44956, "ridge", 2e-6),
        (44960, "ridge", 1e-5),
        (44967, "ridge", 1e-6),  # mostly nominal columns
        (11, "logistic", 1e-7),
        (29, "logistic", 1e-7),  # holes, a declared but unused level
        (23381, "logistic", 1e-7),  # holes in nominal columns
        (188, "logistic", 1e-7),  # agrees only when float32 comes before standardising
    ],
)
def test_paper_protocol_repeats_the_published_baselines(real, dataset, model, tolerance):
    folder, runs = real
    table = datasets.known_table(dataset)
    datasets.select_tables(folder, [dataset])
    plan = replay.plan(runs, [table], published.select_variants([model]), list(range(5)))
    assert [j.fold for j in plan] == [0, 1, 2, 3, 4]
    ours = [replay.refit(j, folder).test_score for j in plan]
    theirs = runs[
        (runs["dataset"] == dataset) & (runs["model"] == variant(model, table.task).published)
    ]
    np.testing.assert_allclose(
        ours, theirs.sort_values("fold")["test_score"], rtol=0, atol=tolerance
    )


def test_every_published_run_of_our_variants_translates(real):
    folder, runs = real
    plan = replay.plan(
        runs, list(datasets.known_tables().values()), published.VARIANTS, list(range(5))
    )
    n_models = {"regression": 11, "classification": 5}
    assert len(plan) == 5 * sum(n_models[table.task] for table in datasets.known_tables().values())
    assert len({j.result_path(folder) for j in plan}) == len(plan)
    for j in plan:
        build(j.recipe, n_train=100, random_state=0)  # an unknown parameter would raise


def test_encoded_width_is_the_published_one(real):
    folder, runs = real
    for dataset in (41021, 29, 31, 38):  # holes, unused levels twice, an empty column
        table = datasets.known_table(dataset)
        settings = runs[(runs["dataset"] == dataset) & (runs["model"] == "RFNN")][
            "hyperparameters"
        ].iloc[0]
        inputs = datasets.load_table(table, folder).drop(columns="target")
        assert (
            protocols.one_hot(protocols.fill_holes(inputs)).shape[1]
            == json.loads(settings)["in_dim"]
        )
