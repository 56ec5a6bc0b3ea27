"""Runs as tables: complete datasets, means by dataset, and summaries over datasets.

A run is one row of a frame with the columns task, dataset, model, fold, test_score and fit_seconds.
"""

from dataclasses import dataclass

import pandas as pd

from experiments.data.tables import known_tables
from experiments.models.naming import IID, in_order, label
from experiments.requests import UsageError

TASKS = ("regression", "classification")
SCORE = {"regression": "RMSE", "classification": "accuracy"}
LOWER_IS_BETTER = {"regression": True, "classification": False}
# The sign of (our score − another score) when ours is worse.
WORSE_SIGN = {"regression": 1.0, "classification": -1.0}
# Published scores are stored in single precision: scores that are equal to six decimals are equal.
STORED_DECIMALS = 6


@dataclass(frozen=True)
class Complete:
    """The runs of one task on the datasets where every model has every fold.

    Attributes
    ----------
    runs : the runs that may be averaged and ranked together
    folds : the folds each of them has
    left_out : the models that lack a fold, by dataset; these datasets are in no table
    """

    task: str
    runs: pd.DataFrame
    folds: list[int]
    left_out: dict[int, list[str]]

    @property
    def datasets(self) -> list[int]:
        """The datasets that count, smallest id first."""
        return sorted(self.runs["dataset"].unique())

    @property
    def models(self) -> list[str]:
        """The models, in the order of the tables."""
        return in_order(list(self.runs["model"].unique()))

    def scores(self) -> pd.DataFrame:
        """Mean test score over folds: one row per dataset, one column per model."""
        means = self.runs.pivot_table(index="dataset", columns="model", values="test_score")
        # Rounded, so that the same accuracies in another order of folds tie.
        return means[self.models].round(12)

    def ranks(self) -> pd.DataFrame:
        """The rank of each model on each dataset: 1 is best, ties share their mean rank."""
        return self.scores().rank(axis=1, ascending=LOWER_IS_BETTER[self.task])


def complete_part(runs: pd.DataFrame, task: str) -> Complete:
    """The runs of a task on the datasets where every model has every fold.

    The folds are those that any model has: runs of two folds are complete with two.
    """
    runs = runs[runs["task"] == task]
    folds = sorted(runs["fold"].unique())
    counts = runs.pivot_table(
        index="dataset", columns="model", values="fold", aggfunc="nunique", fill_value=0
    )
    lacking = counts < len(folds)
    left_out = {
        int(dataset): in_order([model for model in row.index if row[model]])
        for dataset, row in lacking[lacking.any(axis=1)].iterrows()
    }
    kept = runs[~runs["dataset"].isin(left_out)]
    if kept.empty:
        raise UsageError(
            f"No {task} table has all folds ({', '.join(map(str, folds))}) of all models "
            f"({', '.join(in_order(list(counts.columns)))}): finish the runs, or name fewer "
            "with --models."
        )
    return Complete(task, kept, [int(fold) for fold in folds], left_out)


def summary_rows(part: Complete) -> pd.DataFrame:
    """One row per model: mean score, mean rank and mean fit seconds over the same datasets."""
    grouped = part.runs.groupby("model")
    rows = pd.DataFrame(
        {
            "model": part.models,
            "label": [label(model) for model in part.models],
            "datasets": len(part.datasets),
            "mean_score": part.scores().mean()[part.models].to_numpy(),
            "mean_rank": part.ranks().mean()[part.models].to_numpy(),
            "fit_seconds": grouped["fit_seconds"].mean()[part.models].to_numpy(),
        }
    )
    rows.insert(0, "task", part.task)
    return rows


def dataset_rows(part: Complete) -> pd.DataFrame:
    """One row per dataset and model: mean and standard deviation over folds, and if it is best.

    The standard deviation is the population one (ddof = 0), as in the paper's tables.
    """
    rows = (
        part.runs.groupby(["dataset", "model"])
        .agg(
            folds=("fold", "size"),
            mean=("test_score", lambda scores: round(scores.mean(), 12)),
            std=("test_score", lambda scores: scores.std(ddof=0)),
            fit_seconds=("fit_seconds", "mean"),
        )
        .reset_index()
    )
    best = "min" if LOWER_IS_BETTER[part.task] else "max"
    rows["best"] = rows["mean"] == rows.groupby("dataset")["mean"].transform(best)
    rows.insert(0, "task", part.task)
    rows.insert(2, "name", [dataset_name(dataset) for dataset in rows["dataset"]])
    return rows


def dataset_name(dataset: int) -> str:
    """The name of a table; a dash for five published tables that are not in ``tables.csv``."""
    return known_tables()[dataset].name if dataset in known_tables() else "–"


def left_out_text(part: Complete) -> str:
    """The datasets that are in no mean, and the models that lack a fold there."""
    lines = [
        f"- {dataset} {dataset_name(dataset)}: {', '.join(models)}"
        for dataset, models in part.left_out.items()
    ]
    return (
        f"Left out of every {part.task} table, because these models lack one of the folds "
        f"{', '.join(map(str, part.folds))}:\n\n" + "\n".join(lines) + "\n"
    )


def without_iid(runs: pd.DataFrame, named: list[str] | None) -> pd.DataFrame:
    """The runs without models of i.i.d. features, unless models were ``named``.

    Ranks depend on which models take part. The paper's main tables have the SWIM models only; the
    ablation compares them with i.i.d. features.
    """
    return runs if named else runs[~runs["model"].str.endswith(IID)]
