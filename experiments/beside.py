"""Our runs beside the published ones: paired by fold, by dataset, and over datasets."""

import pandas as pd

from experiments.comparison import STORED_DECIMALS
from experiments.naming import in_order, label
from experiments.significance import ALPHA, holm, paired_t_p_value, signed_rank_p_value
from experiments.sources import TASKS
from experiments.summaries import LOWER_IS_BETTER, dataset_name

FOLD = ["task", "dataset", "model", "fold"]


def paired_folds(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """The folds that both have, each with our score and the published one."""
    measured = ["test_score", "fit_seconds"]
    pairs = ours[FOLD + measured].merge(
        published[FOLD + measured], on=FOLD, suffixes=("", "_published"), validate="one_to_one"
    )
    # What is below the decimals of the stored scores is rounding, and nobody's gain.
    difference = (pairs["test_score"] - pairs["test_score_published"]).round(STORED_DECIMALS)
    return pairs.assign(difference=difference)


def dataset_pairs(folds: pd.DataFrame) -> pd.DataFrame:
    """One row per task, model and dataset: both means, their difference and its paired t test."""
    rows = (
        folds.groupby(["task", "model", "dataset"])
        .agg(
            folds=("fold", "size"),
            ours=("test_score", "mean"),
            published=("test_score_published", "mean"),
            difference=("difference", "mean"),
            p=("difference", lambda differences: paired_t_p_value(differences.to_numpy())),
            fit_seconds=("fit_seconds", "mean"),
            published_fit_seconds=("fit_seconds_published", "mean"),
        )
        .reset_index()
    )
    rows["name"] = [dataset_name(dataset) for dataset in rows["dataset"]]
    sign = [-1.0 if LOWER_IS_BETTER[task] else 1.0 for task in rows["task"]]
    rows["gain"] = (sign * rows["difference"]).round(STORED_DECIMALS)
    return rows


def model_pairs(datasets: pd.DataFrame) -> pd.DataFrame:
    """One row per task and model, the signed-rank test over datasets corrected over all rows."""
    grouped = dict(iter(datasets.groupby(["task", "model"])))
    keys = [(task, m) for task in TASKS for m in in_order([m for t, m in grouped if t == task])]
    p_values = holm([signed_rank_p_value(grouped[key]["gain"].to_numpy()) for key in keys])
    return pd.DataFrame(
        [_model_pair(*key, grouped[key], p) for key, p in zip(keys, p_values, strict=True)]
    )


def _model_pair(task: str, model: str, rows: pd.DataFrame, p: float) -> dict[str, object]:
    told_apart = rows["p"] < ALPHA
    return {
        "task": task,
        "model": label(model),
        "datasets": len(rows),
        "ours": rows["ours"].mean(),
        "published": rows["published"].mean(),
        "difference": rows["difference"].mean(),
        "p": p,
        "better": int((rows["gain"] > 0).sum()),
        "worse": int((rows["gain"] < 0).sum()),
        "clearly better": int((told_apart & (rows["gain"] > 0)).sum()),
        "clearly worse": int((told_apart & (rows["gain"] < 0)).sum()),
        "fit s": rows["fit_seconds"].mean(),
        "published fit s": rows["published_fit_seconds"].mean(),
    }
