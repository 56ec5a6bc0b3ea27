"""The ``importances`` command: do importances agree with permutation importance, and with seeds?

Fit our estimators with default parameters on the training rows of the first fold, missing values
and categories included, once for each of two seeds. Compare ``feature_importances_`` with
scikit-learn's ``permutation_importance`` (20 repeats) on the test rows by Spearman's rank
correlation over columns, and the importances of both seeds with each other. Stored results are not
computed again.
"""

import argparse
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.commands.arguments import add_data, add_jobs, add_out, add_tables
from experiments.data.protocols import Fold, load_rows
from experiments.data.tables import Table, find_data_folder, known_table, select_tables
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import METRICS, Scores, log_loss
from experiments.reports.markdown import failed_section, markdown_table
from experiments.runs.jobs import Job, Result
from experiments.runs.measured import good_rows, measure

NAME = "importances"
SUMMARY = "importances against permutation importance on test rows, and between seeds"
PROTOCOL = "raw"
FOLD = 0
SEEDS = (0, 1)
REPEATS = 20
PERMUTATION_SEED = 0
HALVES = {"even": slice(0, None, 2), "odd": slice(1, None, 2)}
RECIPES = {
    "regression": Recipe("RFRBoostRegressor", {}),
    "classification": Recipe("RFRBoostClassifier", {}),
}
HEADER = """\
# Importances

Rank correlations over the columns of a table, first fold, raw columns, default parameters.
*Permutation* compares `feature_importances_` with `permutation_importance` on the test rows (20
repeats, R² or accuracy), *loss* the same measured by squared error or log loss. *Repeats* compares
the first ten repeats with the last ten. *Halves* compares permutation importance, by score and by
loss, on the test rows with even and with odd numbers: it says how much of these ranks is chance,
with half as many rows. *Seeds* compares the importances of two fits that differ in their seed only.
Correlations that are not defined (permutation changes no score), and halves of tables that were
measured before there was such a column, are in no median.
"""
MEASURES = {
    "permutation": "score",
    "loss": "loss",
    "repeats": "repeats",
    "halves": "halves of score",
    "halves, loss": "halves of loss",
    "seeds": "seeds",
}
# The correlations that are asked for in the median.
WANTED = {"permutation": 0.9, "seeds": 0.95}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/importances")
    add_data(parser)
    add_jobs(parser, 1)


def run(arguments: argparse.Namespace) -> int:
    """Fit, compare and write; 1 if a fit failed."""
    data = find_data_folder(arguments.data)
    jobs = [
        Job(PROTOCOL, table.id, NAME, FOLD, RECIPES[table.task])
        for table in select_tables(data, arguments.tables)
    ]
    work = functools.partial(fit_and_compare, data=data)
    return measure(NAME, jobs, work, arguments, table_rows, report)


def fit_and_compare(job: Job, data: Path) -> Scores:
    """Fit a model for each seed, and compare their importances."""
    table = known_table(int(job.dataset))
    fold = load_rows(PROTOCOL, table.id, data).fold(job.fold)
    models = [build(job.recipe, len(fold.y_train), seed) for seed in SEEDS]
    start = time.process_time()
    models[0].fit(fold.X_train, fold.y_train)
    fitted = time.process_time()
    prediction = models[0].predict(fold.X_test)
    predicted = time.process_time()
    others = [model.fit(fold.X_train, fold.y_train) for model in models[1:]]
    metric = METRICS[table.task]
    return Scores(
        train_score=metric(fold.y_train, models[0].predict(fold.X_train)),
        test_score=metric(fold.y_test, prediction),
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        details=compared(models[0], others, fold, table.task),
    )


def compared(model: Any, others: list[Any], fold: Fold, task: str) -> dict[str, object]:
    """The correlations, and the importances that they are of."""
    from sklearn.inspection import permutation_importance

    drops = permutation_importance(
        model,
        fold.X_test,
        fold.y_test,
        scoring=SCORERS[task],
        n_repeats=REPEATS,
        random_state=PERMUTATION_SEED,
    )
    shares = model.feature_importances_
    by_score = drops["score"].importances
    half = REPEATS // 2
    halves = {
        f"halves of {name}": rank_correlation(
            *(drops[f"{name}, {rows}"].importances_mean for rows in HALVES)
        )
        for name in ("score", "loss")
    }
    return {
        "columns": len(shares),
        "rows": len(fold.y_test),
        "score": rank_correlation(shares, by_score.mean(axis=1)),
        "loss": rank_correlation(shares, drops["loss"].importances_mean),
        "repeats": rank_correlation(by_score[:, :half].mean(1), by_score[:, half:].mean(1)),
        **halves,
        "seeds": float(
            np.mean([rank_correlation(shares, other.feature_importances_) for other in others])
        ),
        "shares": shares.tolist(),
        "drops": by_score.mean(axis=1).tolist(),
    }


def regression_scores(model: Any, X: Any, y: NDArray) -> dict[str, float]:
    """R², as score and as loss, of all rows and of both halves."""
    from sklearn.metrics import r2_score

    prediction = model.predict(X)
    found = {}
    for name, rows in parts().items():
        r2 = float(r2_score(y[rows], prediction[rows]))
        found |= {f"score{name}": r2, f"loss{name}": r2}
    return found


def class_scores(model: Any, X: Any, y: NDArray) -> dict[str, float]:
    """Accuracy, and minus the log loss, of all rows and of both halves."""
    probabilities = model.predict_proba(X)
    right = model.classes_[probabilities.argmax(axis=1)] == y
    found = {}
    for name, rows in parts().items():
        loss = log_loss(y[rows], probabilities[rows], model.classes_)
        found |= {f"score{name}": float(right[rows].mean()), f"loss{name}": -loss}
    return found


def parts() -> dict[str, slice]:
    """All rows, and the two halves, by what is appended to the name of a score."""
    return {"": slice(None)} | {f", {name}": rows for name, rows in HALVES.items()}


SCORERS = {"regression": regression_scores, "classification": class_scores}


def rank_correlation(a: NDArray, b: NDArray) -> float:
    """Spearman's correlation over columns; NaN if one side is the same for all of them."""
    from scipy.stats import spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def table_rows(results: list[Result]) -> pd.DataFrame:
    """One row per table: its correlations, scores and seconds."""

    def measured(table: Table, result: Result) -> dict[str, object]:
        scores = result.scores
        return {
            "task": table.task,
            **{name: scores.details[name] for name in ("rows", "columns")},
            **{name: scores.details.get(key, np.nan) for name, key in MEASURES.items()},
            "test_score": scores.test_score,
            "fit_seconds": scores.fit_seconds,
        }

    return good_rows(results, measured)


def report(rows: pd.DataFrame, results: list[Result]) -> str:
    """A summary, then the tables, least agreement first."""
    sections = [HEADER, *failed_section(results)]
    if len(rows):
        sections.append(markdown_table(summary_rows(rows)))
        shown = rows.sort_values("permutation")[["dataset", "name", "rows", "columns", *MEASURES]]
        sections.append(markdown_table(shown))
    return "\n".join(sections)


def summary_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per correlation: its median and quartiles over tables, and how many reach the aim."""
    summary = []
    for name in MEASURES:
        known = rows[name].astype(float).dropna()
        wanted = WANTED.get(name)
        summary.append(
            {
                "correlation": name,
                "tables": len(known),
                "median": float(known.median()),
                "lower quartile": float(known.quantile(0.25)),
                "least": float(known.min()),
                "wanted in the median": "–" if wanted is None else f"{wanted:g}",
            }
        )
    return pd.DataFrame(summary)
