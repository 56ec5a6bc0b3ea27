"""What ``defaults`` computes: log loss, honest means, ranks, halves, tests of differences."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from experiment_runs import ENERGY, published_frame
from scipy import stats

from experiments.data.tables import known_table, known_tables
from experiments.models.naming import with_our_names
from experiments.models.scoring import SMALLEST_PROBABILITY, Scores, log_loss
from experiments.models.untuned import TimedRecipe
from experiments.reports.defaults import markdown_report
from experiments.reports.defaults_tables import (
    SMALL_AND_NOISY,
    all_runs,
    comparison_rows,
    complete_parts,
    dataset_rows,
    halves,
    linear_rows,
    summary_frame,
    summary_rows,
    time_rows,
)
from experiments.runs.jobs import Job, Result

REGRESSION = [table.id for table in known_tables().values() if table.task == "regression"]
RECIPE = TimedRecipe("made up", {}, threads=2)
BALANCE = 11  # 625 rows, classification


def results_of(
    model: str, dataset: int, scores: list[float], losses: list[float] = (), seconds: float = 1.0
) -> list[Result]:
    """Good results of one model on one table, a score a fold."""
    made_with = {"processor": "made up", "versions": {"numpy": "0"}}
    return [
        Result(
            Job("paper", dataset, model, fold, RECIPE),
            Scores(
                0.0, score, seconds, 0.5, made_with | ({"log_loss": losses[fold]} if losses else {})
            ),
            None,
        )
        for fold, score in enumerate(scores)
    ]


def field(scores: dict[str, list[float]], datasets: list[int]) -> list[Result]:
    """Results of one fold: for each model a score a table."""
    return [
        result
        for model, values in scores.items()
        for dataset, value in zip(datasets, values, strict=True)
        for result in results_of(model, dataset, [value])
    ]


def only_part(results: list[Result], published: pd.DataFrame | None = None):
    (part,), sentences = complete_parts(all_runs(results, published))
    assert sentences == []
    return part


def column(rows: pd.DataFrame, name: str) -> dict[str, float]:
    return dict(zip(rows["model"], rows[name], strict=True))


# --- log loss ---------------------------------------------------------------------------------


def test_log_loss_is_the_usual_one():
    rng = np.random.default_rng(0)
    classes = np.array([1, 4, 7])
    probabilities = rng.dirichlet(np.ones(3), size=50)
    y = rng.choice(classes, size=50)
    expected = sklearn.metrics.log_loss(y, probabilities, labels=classes)
    assert log_loss(y, probabilities, classes) == pytest.approx(expected, rel=1e-12)


def test_a_label_that_training_never_saw_costs_as_much_as_no_chance():
    probabilities = np.array([[0.5, 0.5], [1.0, 0.0]])
    worst = -np.log(SMALLEST_PROBABILITY)
    unseen = log_loss(np.array([0, 9]), probabilities, np.array([0, 1]))
    impossible = log_loss(np.array([0, 1]), probabilities, np.array([0, 1]))
    assert unseen == impossible == pytest.approx((np.log(2) + worst) / 2)


def test_a_probability_that_rounding_left_above_one_costs_nothing():
    over = np.array([[np.nextafter(np.float32(1), np.float32(2)), 0]], dtype=np.float32)
    assert log_loss(np.array([0]), over, np.array([0, 1])) == 0.0


@pytest.mark.parametrize(
    ("probabilities", "error"),
    [(np.ones((2, 3)) / 3, ValueError), (np.full((2, 2), np.nan), ArithmeticError)],
)
def test_what_is_no_distribution_over_the_classes_has_no_log_loss(probabilities, error):
    with pytest.raises(error):
        log_loss(np.array([0, 1]), probabilities, np.array([0, 1]))


# --- the tables -------------------------------------------------------------------------------


def test_means_ranks_and_seconds_are_over_tables():
    part = only_part(
        [
            *results_of("rfrboost", REGRESSION[0], [0.1, 0.3], seconds=1.0),
            *results_of("rfrboost", REGRESSION[1], [0.8, 0.8], seconds=4.0),
            *results_of("catboost", REGRESSION[0], [0.3, 0.1], seconds=2.0),
            *results_of("catboost", REGRESSION[1], [0.5, 0.5], seconds=2.0),
        ]
    )
    rows = summary_rows(part)
    assert column(rows, "mean_score") == {"RFRBoost, default": 0.5, "CatBoost, default": 0.35}
    assert rows["geometric_mean"].to_numpy() == pytest.approx([0.4, np.sqrt(0.1)])
    # The first table is a tie: the same two folds in another order.
    assert column(rows, "mean_rank") == {"RFRBoost, default": 1.75, "CatBoost, default": 1.25}
    assert column(rows, "fit_seconds") == {"RFRBoost, default": 10.0, "CatBoost, default": 8.0}
    # Half as long on one table, twice as long on the other.
    assert column(rows, "time_ratio") == {"RFRBoost, default": 1.0, "CatBoost, default": 1.25}


def test_times_are_put_together_over_both_tasks():
    results = [
        result
        for dataset, ours, its in (
            (ENERGY, 1.0, 4.0),
            (REGRESSION[0], 6.0, 2.0),
            (BALANCE, 5.0, 5.0),
        )
        for model, seconds in (("rfrboost", ours), ("catboost", its))
        for result in results_of(model, dataset, [0.5, 0.5], seconds=seconds)
    ]
    parts, _ = complete_parts(all_runs(results, None))
    rows = time_rows(parts)
    assert column(rows, "fit_seconds") == {"RFRBoost, default": 24.0, "CatBoost, default": 22.0}
    assert column(rows, "time_ratio") == {"RFRBoost, default": 1.0, "CatBoost, default": 1.0}
    assert set(rows["tables"]) == {3}


def test_log_loss_is_ranked_among_those_that_have_one():
    published = with_our_names(
        published_frame("classification", BALANCE, "XGBoostClassifier", [0.95], {})
    )
    results = [
        *results_of("rfrboost", BALANCE, [0.8], losses=[0.4]),
        *results_of("lightgbm", BALANCE, [0.9], losses=[0.6]),
    ]
    rows = summary_rows(only_part(results, published)).set_index("model")
    assert rows.index.tolist() == ["RFRBoost, default", "LightGBM, default", "XGBoost, tuned"]
    assert rows["mean_rank"].tolist() == [3.0, 2.0, 1.0]
    assert rows["log_loss_rank"].tolist()[:2] == [1.0, 2.0]
    assert rows["mean_log_loss"].tolist()[:2] == [0.4, 0.6]
    foreign = rows.loc["XGBoost, tuned"]
    assert foreign[["log_loss_rank", "mean_log_loss", "fit_seconds", "time_ratio"]].isna().all()


def test_a_published_accuracy_in_single_precision_ties_with_ours():
    single = float(np.float32(0.976))
    assert single != 0.976
    published = published_frame("classification", BALANCE, "RFNN", [single], {})
    results = results_of("rfrboost", BALANCE, [0.976], losses=[0.1])
    part = only_part(results, with_our_names(published))
    assert summary_rows(part)["mean_rank"].tolist() == [1.5, 1.5]
    assert comparison_rows(part)[["better", "worse", "p"]].iloc[0].tolist() == [0, 0, 1]


def test_published_runs_are_those_of_the_same_tables_and_folds_without_iid_features():
    published = with_our_names(
        pd.concat(
            [
                published_frame("regression", ENERGY, "Ridge", [0.3, 0.9], {}),
                published_frame("regression", ENERGY, "RFNN_iid", [0.1, 0.1], {}),
                published_frame("regression", 44956, "Ridge", [0.7], {}),
            ]
        )
    )
    runs = all_runs(results_of("rfrboost", ENERGY, [0.2]), published)
    assert runs[["dataset", "model", "fold", "test_score"]].to_numpy().tolist() == [
        [ENERGY, "RFRBoost, default", 0, 0.2],
        [ENERGY, "Ridge regression, tuned", 0, 0.3],
    ]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_the_halves_are_the_even_and_the_odd_tables(task):
    known = [table.id for table in known_tables().values() if table.task == task]
    both = halves(task)
    assert [id for id in known if id in both["A"]] == known[0::2]
    assert sorted(both["A"] + both["B"]) == sorted(known)
    assert not set(both["A"]) & set(both["B"])


def test_each_half_has_a_summary_of_its_own_tables():
    results = field({"rfrboost": [0.1, 0.2, 0.5], "xgboost": [0.2, 0.1, 0.4]}, REGRESSION[:3])
    rows = summary_frame([only_part(results)])
    ours = rows[rows["model"] == "RFRBoost, default"].set_index("half")
    assert ours["tables"].to_dict() == {"all": 3, "A": 2, "B": 1}
    assert ours["mean_score"].to_dict() == pytest.approx({"all": 0.8 / 3, "A": 0.3, "B": 0.2})
    assert ours["mean_rank"].to_dict() == pytest.approx({"all": 5 / 3, "A": 1.5, "B": 2.0})


def test_ours_is_tested_against_every_other_with_holms_correction():
    rng = np.random.default_rng(1)
    ours = rng.uniform(0.3, 0.6, size=12)
    gaps = {"catboost": 0.05, "lightgbm": 0.01, "xgboost": 0.0}
    scores = {"rfrboost": list(ours)} | {
        name: list(ours + gap + rng.normal(scale=0.02, size=12)) for name, gap in gaps.items()
    }
    rows = comparison_rows(only_part(field(scores, REGRESSION[:12])))
    assert rows["model"].tolist() == ["CatBoost, default", "LightGBM, default", "XGBoost, default"]
    p = np.array([stats.wilcoxon(ours - scores[name]).pvalue for name in gaps])
    assert rows["p"].to_numpy() == pytest.approx(p)
    by_size = np.argsort(p)
    corrected = np.empty(3)
    corrected[by_size] = np.minimum(1.0, np.maximum.accumulate(p[by_size] * [3, 2, 1]))
    assert rows["p_holm"].to_numpy() == pytest.approx(corrected)
    assert rows["better"].tolist() == [int(np.sum(ours < scores[name])) for name in gaps]
    assert (rows["better"] + rows["worse"] == 12).all()


def test_higher_accuracy_is_better():
    results = [
        *results_of("rfrboost", BALANCE, [0.9], losses=[0.1]),
        *results_of("catboost", BALANCE, [0.8], losses=[0.2]),
    ]
    row = comparison_rows(only_part(results)).iloc[0]
    assert (row["better"], row["worse"]) == (1, 0)
    assert row["mean_difference"] == pytest.approx(0.1)


def test_a_table_without_all_folds_is_in_no_mean_and_is_named():
    results = [
        *results_of("rfrboost", REGRESSION[0], [0.1, 0.1]),
        *results_of("rfrboost", REGRESSION[1], [0.5, 0.5]),
        *results_of("catboost", REGRESSION[0], [0.2, 0.2]),
        *results_of("catboost", REGRESSION[1], [0.9]),
        Result(Job("paper", REGRESSION[1], "catboost", 1, RECIPE), None, "MemoryError: full"),
    ]
    part = only_part(results)
    rows = summary_rows(part)
    assert column(rows, "tables") == {"RFRBoost, default": 1, "CatBoost, default": 1}
    assert column(rows, "mean_score") == {"RFRBoost, default": 0.1, "CatBoost, default": 0.2}
    report = markdown_report(results, [part], [], beside_tuned=False)
    assert f"- {REGRESSION[1]} catboost fold 1: MemoryError: full" in report
    assert f"- {REGRESSION[1]} {known_table(REGRESSION[1]).name}: CatBoost, default" in report
    folds = dataset_rows(all_runs(results, None))["folds"]
    assert sorted(folds) == [1, 2, 2, 2], "the file of single tables counts them"


def test_without_a_complete_table_there_is_a_sentence_and_no_mean():
    results = [
        *results_of("rfrboost", REGRESSION[0], [0.1]),
        *results_of("catboost", REGRESSION[1], [0.2]),
    ]
    parts, (sentence,) = complete_parts(all_runs(results, None))
    assert parts == []
    assert sentence.startswith("No regression table has all folds")
    assert sentence in markdown_report(results, parts, [sentence], beside_tuned=True)


def test_the_small_and_noisy_tables_are_those_that_were_meant():
    names = [known_table(id).name for id in SMALL_AND_NOISY]
    words = ["forest_fires", "student", "music", "solar_flare", "dresses-sales"]
    assert all(word in name for word, name in zip(words, names, strict=True))


def test_worse_than_the_linear_model_is_positive_for_both_tasks():
    forest, dresses = SMALL_AND_NOISY[0], SMALL_AND_NOISY[-1]
    published = with_our_names(
        pd.concat(
            [
                published_frame("regression", forest, "Ridge", [0.8], {}),
                published_frame("classification", dresses, "LogisticRegression", [0.6], {}),
            ]
        )
    )
    results = [
        *results_of("rfrboost", forest, [0.82]),
        *results_of("rfrboost", dresses, [0.63], losses=[0.7]),
    ]
    parts, _ = complete_parts(all_runs(results, published))
    worse_by = [linear_rows(part)["worse_by"].item() for part in parts]
    assert worse_by == pytest.approx([0.025, -0.05])
    report = markdown_report(results, parts, [], beside_tuned=True)
    assert "| 44962 | forest_fires | RMSE | 0.8200 | 0.8000 | 1.0250 | +2.5% |" in report
    assert "Not complete, or not run: 44967 student_performance_por, 44965" in report
