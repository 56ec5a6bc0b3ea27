"""What the comparison of untuned models computes: summaries, tests, single tables."""

import numpy as np
import pandas as pd

from experiments.comparison import WORSE_SIGN
from experiments.datasets import known_tables
from experiments.defaults_runs import (
    OUR_LABEL,
    by_table,
    halves,
    models_of,
    part_of,
    tuned_label,
)
from experiments.significance import holm, signed_rank_p_value
from experiments.summaries import SCORE, Complete

# Forest fires, students, music, solar flares, dresses: few rows and much noise, where a flexible
# model can only lose.
SMALL_AND_NOISY = (44962, 44967, 44965, 44966, 23381)
LINEAR = {"regression": tuned_label("ridge"), "classification": tuned_label("logistic")}


def summary_rows(part: Complete) -> pd.DataFrame:
    """One row a model: means, ranks and seconds over the same tables.

    Seconds are sums over the tables and their folds; ``time_ratio`` is the median over tables
    of our seconds ÷ the model's.
    """
    scores, losses = by_table(part, "test_score"), by_table(part, "log_loss")
    fit, predict = by_table(part, "fit_seconds"), by_table(part, "predict_seconds")
    columns = {
        "mean_score": scores.mean(),
        "geometric_mean": np.exp(np.log(scores).mean()),
        "mean_rank": part.ranks().mean(),
        "mean_log_loss": losses.mean(),
        "log_loss_rank": losses.rank(axis=1).mean(),
        "fit_seconds": fit.sum() * len(part.folds),
        "predict_seconds": predict.sum() * len(part.folds),
        "time_ratio": our_time_ratio(fit),
    }
    models = models_of(part)
    rows = pd.DataFrame({name: values.reindex(models) for name, values in columns.items()})
    rows.insert(0, "tables", len(part.datasets))
    return rows.rename_axis("model").reset_index()


def our_time_ratio(seconds: pd.DataFrame) -> pd.Series:
    """Our seconds ÷ each model's, the median over tables; without us there is none."""
    if OUR_LABEL not in seconds:
        return pd.Series(dtype=float)
    return seconds.rdiv(seconds[OUR_LABEL], axis=0).median()


def time_rows(parts: list[Complete]) -> pd.DataFrame:
    """One row a model: seconds summed over the tables of all tasks, and the median ratio."""
    seconds = pd.concat([by_table(part, "fit_seconds") for part in parts], join="inner")
    seconds = seconds.dropna(axis=1)
    sums = pd.concat([by_table(part, "fit_seconds") * len(part.folds) for part in parts])
    rows = pd.DataFrame({"fit_seconds": sums[list(seconds)].sum()})
    rows["time_ratio"] = our_time_ratio(seconds)
    rows.insert(0, "tables", len(seconds))
    return rows.rename_axis("model").reset_index()


def comparison_rows(part: Complete) -> pd.DataFrame:
    """Ours against each of the others: signed ranks over tables, Holm over the comparisons."""
    scores = by_table(part, "test_score")
    if OUR_LABEL not in scores:
        return pd.DataFrame()
    others = scores.drop(columns=OUR_LABEL)
    differences = (-others).add(scores[OUR_LABEL], axis=0)
    worse_by = WORSE_SIGN[part.task] * differences
    p_values = [signed_rank_p_value(differences[model]) for model in others]
    return pd.DataFrame(
        {
            "model": list(others),
            "tables": len(others),
            "better": (worse_by < 0).sum().to_numpy(),
            "worse": (worse_by > 0).sum().to_numpy(),
            "mean_difference": differences.mean().to_numpy(),
            "p": p_values,
            "p_holm": holm(p_values) if p_values else [],
        }
    )


def linear_rows(part: Complete) -> pd.DataFrame:
    """Ours against the tuned linear model, on those small and noisy tables that are complete."""
    linear_model = LINEAR[part.task]
    scores = by_table(part, "test_score").reindex(columns=[OUR_LABEL, linear_model]).dropna()
    scores = scores.loc[[id for id in SMALL_AND_NOISY if id in scores.index]]
    ratio = scores[OUR_LABEL] / scores[linear_model]
    return pd.DataFrame(
        {
            "dataset": scores.index,
            "name": [known_tables()[id].name for id in scores.index],
            "score": SCORE[part.task],
            "ours": scores[OUR_LABEL].to_numpy(),
            "linear": scores[linear_model].to_numpy(),
            "ratio": ratio.to_numpy(),
            "worse_by": WORSE_SIGN[part.task] * (ratio.to_numpy() - 1),
        }
    )


def summary_frame(parts: list[Complete]) -> pd.DataFrame:
    """The summaries over all tables and over each half, one below the other."""
    pieces = {
        (part.task, half): summary_rows(part_of(part, datasets))
        for part in parts
        for half, datasets in {"all": part.datasets, **halves(part.task)}.items()
    }
    return _stacked(pieces, ["task", "half"])


def comparison_frame(parts: list[Complete]) -> pd.DataFrame:
    """Ours against the others, for each task, one below the other."""
    return _stacked({(part.task,): comparison_rows(part) for part in parts}, ["task"])


def _stacked(pieces: dict[tuple, pd.DataFrame], names: list[str]) -> pd.DataFrame:
    frames = [
        pd.concat([pd.DataFrame([key] * len(rows), columns=names), rows], axis=1)
        for key, rows in pieces.items()
        if len(rows)
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names)


def dataset_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per table and model, complete or not: how many folds, and the means over them."""
    rows = (
        runs.groupby(["task", "dataset", "model"])
        .agg(
            folds=("fold", "nunique"),
            mean_score=("test_score", "mean"),
            mean_log_loss=("log_loss", "mean"),
            fit_seconds=("fit_seconds", "mean"),
            predict_seconds=("predict_seconds", "mean"),
        )
        .reset_index()
    )
    half_of = {id: half for task in SCORE for half, ids in halves(task).items() for id in ids}
    rows.insert(2, "name", [known_tables()[id].name for id in rows["dataset"]])
    rows.insert(3, "half", rows["dataset"].map(half_of))
    return rows
