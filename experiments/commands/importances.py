"""The ``importances`` command: do importances agree with permutation importance, and with seeds?

Fit our estimators with default parameters on each half of a table's rows, missing values and
categories included. Compare ``feature_importances_`` with scikit-learn's ``permutation_importance``
(20 repeats) on the rows of the other half by Spearman's rank correlation over columns, both as
means over the two fits. So every row is held out once, which is the least noise that a table
allows. A further fit with another seed shows how much importances depend on it. Stored results are
not computed again.
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
FOLD = 0  # of a job; the halves are the work of one
SEEDS = (0, 1)
REPEATS = 20
PERMUTATION_SEED = 0
# The most rows that permutation importance predicts per half, and the fewest that are held out. Of
# wide tables it takes the first rows of a half, which are in random order.
MOST_PREDICTED = 200_000
FEWEST_HELD_OUT = 100
HALVES = {"even": slice(0, None, 2), "odd": slice(1, None, 2)}
RECIPES = {
    "regression": Recipe("RFRBoostRegressor", {}),
    "classification": Recipe("RFRBoostClassifier", {}),
}
HEADER = """\
# Importances

Rank correlations over all columns of a table, raw columns, default parameters. Each half of the
rows is fitted once, and the other half is held out; importances are means over both fits. *Rows*
are those held out in all: all rows of the table (at most 5,000), fewer if it has many columns, so
that permutation importance predicts at most 200,000 rows per half. *Permutation* compares
`feature_importances_` with `permutation_importance` on held-out rows (20 repeats, R² or accuracy),
*loss* the same measured by squared error or log loss. *Repeats* compares the first ten repeats with
the last ten. *Halves* compares permutation importance, by score and by loss, on the held-out rows
with even and with odd numbers: it says how much of these ranks is chance, with half as many rows.
*Seeds* compares the importances of two fits to the first half that differ in their seed only.
Correlations that are not defined (permutation changes no score) are in no median.
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
    """Fit a model to each half and one with another seed, and compare their importances."""
    table = known_table(int(job.dataset))
    folds = load_rows(PROTOCOL, table.id, data).halves()
    first = folds[0]
    models = [build(job.recipe, len(fold.y_train), SEEDS[0]) for fold in folds]
    start = time.process_time()
    models[0].fit(first.X_train, first.y_train)
    fitted = time.process_time()
    prediction = models[0].predict(first.X_test)
    predicted = time.process_time()
    models[1].fit(folds[1].X_train, folds[1].y_train)
    other = build(job.recipe, len(first.y_train), SEEDS[1]).fit(first.X_train, first.y_train)
    metric = METRICS[table.task]
    return Scores(
        train_score=metric(first.y_train, models[0].predict(first.X_train)),
        test_score=metric(first.y_test, prediction),
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        details=compared(models, other, folds, table.task),
    )


def compared(models: list[Any], other: Any, folds: list[Fold], task: str) -> dict[str, object]:
    """The correlations, and the importances that they are of.

    ``models`` are those of the ``folds``, and ``other`` differs from the first in its seed.
    """
    shares = np.mean([model.feature_importances_ for model in models], axis=0)
    rows = [held_out_rows(len(fold.y_test), len(shares)) for fold in folds]
    found = [
        permuted(model, fold.X_test[:some], fold.y_test[:some], task)
        for model, fold, some in zip(models, folds, rows, strict=True)
    ]
    # (columns, repeats) of each score, as means over the halves.
    drops = {name: np.mean([own[name].importances for own in found], axis=0) for name in found[0]}
    mean = {name: own.mean(axis=1) for name, own in drops.items()}
    by_score = drops["score"]
    half = REPEATS // 2
    halves = {
        f"halves of {name}": rank_correlation(*(mean[f"{name}, {part}"] for part in HALVES))
        for name in ("score", "loss")
    }
    return {
        "columns": len(shares),
        "rows": sum(rows),
        "score": rank_correlation(shares, mean["score"]),
        "loss": rank_correlation(shares, mean["loss"]),
        "repeats": rank_correlation(by_score[:, :half].mean(1), by_score[:, half:].mean(1)),
        **halves,
        "seeds": rank_correlation(models[0].feature_importances_, other.feature_importances_),
        "shares": shares.tolist(),
        "drops": mean["score"].tolist(),
        "drops of loss": mean["loss"].tolist(),
    }


def held_out_rows(n_rows: int, n_columns: int) -> int:
    """How many of the held-out rows permutation importance is measured on."""
    affordable = MOST_PREDICTED // (REPEATS * n_columns)
    return min(n_rows, max(affordable, FEWEST_HELD_OUT))


def permuted(model: Any, X: Any, y: NDArray, task: str) -> Any:
    """scikit-learn's permutation importance by every score of a task."""
    from sklearn.inspection import permutation_importance

    return permutation_importance(
        model,
        X,
        y,
        scoring=SCORERS[task],
        n_repeats=REPEATS,
        random_state=PERMUTATION_SEED,
    )


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
