"""What the ``defaults`` command computes: runs in one frame, summaries, tests, times.

Models are named by their printed labels, which tell the tuned and the untuned run of a library
apart. The known tables of a task are split in two halves: constants of our defaults were chosen on
A and confirmed on B.
"""

import dataclasses

import numpy as np
import pandas as pd

from experiments.data.tables import known_tables
from experiments.models.naming import LOOKS, label
from experiments.models.untuned import NAMES, OURS, untuned_label
from experiments.reports.significance import holm, signed_rank_p_value
from experiments.reports.summaries import (
    SCORE,
    STORED_DECIMALS,
    TASKS,
    WORSE_SIGN,
    Complete,
    complete_part,
    without_iid,
)
from experiments.requests import UsageError
from experiments.runs.jobs import Result

SCORES = ["test_score", "log_loss", "fit_seconds", "predict_seconds"]
COLUMNS = ["task", "dataset", "model", "fold", *SCORES, "commit"]
OUR_LABEL = untuned_label(OURS)
# Forest fires, students, music, solar flares, dresses: few rows and much noise, where a linear
# model is hard to beat.
SMALL_AND_NOISY = (44962, 44967, 44965, 44966, 23381)


def tuned_label(name: str) -> str:
    """The printed label of a published run."""
    return f"{label(name)}, tuned"


ORDER = [*map(untuned_label, NAMES), *map(tuned_label, LOOKS)]


def all_runs(results: list[Result], published: pd.DataFrame | None) -> pd.DataFrame:
    """One row per good fit, and the published runs of the same tables and folds."""
    fitted = [_row(result) for result in results if result.scores is not None]
    runs = pd.DataFrame(fitted, columns=COLUMNS)
    if published is not None:
        datasets = {r.job.dataset for r in results}
        folds = {r.job.fold for r in results}
        same = published["dataset"].isin(datasets) & published["fold"].isin(folds)
        theirs = without_iid(published[same], named=None)[[*COLUMNS[:4], "test_score"]]
        # Without seconds, which are of another machine, and without log loss, which was not kept.
        theirs = theirs.assign(model=theirs["model"].map(tuned_label), commit="published")
        runs = pd.concat([runs, theirs], ignore_index=True) if fitted else theirs
    # Rounded like the published scores, so that equal accuracies tie.
    return runs.reindex(columns=COLUMNS).round({"test_score": STORED_DECIMALS})


def _row(result: Result) -> tuple:
    job = result.job
    scores = result.scores
    identity = (known_tables()[job.dataset].task, job.dataset, untuned_label(job.model), job.fold)
    log_loss = scores.details.get("log_loss", np.nan)
    seconds = (scores.fit_seconds, scores.predict_seconds)
    return (*identity, scores.test_score, log_loss, *seconds, result.provenance.code)


def complete_parts(runs: pd.DataFrame) -> tuple[list[Complete], list[str]]:
    """The complete runs of each task, and a sentence for each task that has none."""
    parts = []
    sentences = []
    for task in TASKS:
        if task not in set(runs["task"]):
            continue
        try:
            parts.append(complete_part(runs, task))
        except UsageError as error:
            sentences.append(str(error))
    return parts, sentences


def halves(task: str) -> dict[str, list[int]]:
    """The known tables of a task: A has the even positions in ``tables.csv``, B the odd ones."""
    ids = [table.id for table in known_tables().values() if table.task == task]
    return {"A": ids[::2], "B": ids[1::2]}


def part_of(part: Complete, datasets: list[int]) -> Complete:
    """The runs on some of the tables."""
    return dataclasses.replace(part, runs=part.runs[part.runs["dataset"].isin(datasets)])


def models_of(part: Complete) -> list[str]:
    """The models in printed order: ours, other libraries, our variants, published."""
    return sorted(part.runs["model"].unique(), key=ORDER.index)


def by_table(part: Complete, value: str) -> pd.DataFrame:
    """Means over folds: one row per table, one column for each model that has the value."""
    runs = part.runs.dropna(subset=[value])
    # Rounded, so that the same values in another order of folds tie.
    means = runs.pivot_table(index="dataset", columns="model", values=value).round(12)
    return means[[model for model in models_of(part) if model in means]]


LINEAR = {"regression": tuned_label("ridge"), "classification": tuned_label("logistic")}


def summary_rows(part: Complete) -> pd.DataFrame:
    """One row per model: means, ranks and seconds over the same tables.

    Seconds are sums over the tables and their folds; ``time_ratio`` is the median over tables
    of our seconds ÷ the model's.
    """
    scores = by_table(part, "test_score")
    losses = by_table(part, "log_loss")
    fit = by_table(part, "fit_seconds")
    predict = by_table(part, "predict_seconds")
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
    """The median over tables of our seconds ÷ each model's; empty if our model was not fitted."""
    if OUR_LABEL not in seconds:
        return pd.Series(dtype=float)
    return seconds.rdiv(seconds[OUR_LABEL], axis=0).median()


def time_rows(parts: list[Complete]) -> pd.DataFrame:
    """One row per model: seconds summed over the tables of all tasks, and the median ratio."""
    seconds = pd.concat([by_table(part, "fit_seconds") for part in parts], join="inner")
    seconds = seconds.dropna(axis=1)
    sums = pd.concat([by_table(part, "fit_seconds") * len(part.folds) for part in parts])
    rows = pd.DataFrame({"fit_seconds": sums[list(seconds)].sum()})
    rows["time_ratio"] = our_time_ratio(seconds)
    rows.insert(0, "tables", len(seconds))
    return rows.rename_axis("model").reset_index()


def comparison_rows(part: Complete) -> pd.DataFrame:
    """Ours against each other model: signed-rank test over tables, Holm over the comparisons."""
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
    """Ours against the tuned linear model on the small and noisy tables that are complete."""
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
    """The summaries over all tables and over each half, in one frame."""
    pieces = {
        (part.task, half): summary_rows(part_of(part, datasets))
        for part in parts
        for half, datasets in {"all": part.datasets, **halves(part.task)}.items()
    }
    return _stacked(pieces, ["task", "half"])


def comparison_frame(parts: list[Complete]) -> pd.DataFrame:
    """Ours against the others, for each task, in one frame."""
    return _stacked({(part.task,): comparison_rows(part) for part in parts}, ["task"])


def _stacked(pieces: dict[tuple, pd.DataFrame], names: list[str]) -> pd.DataFrame:
    frames = [
        pd.concat([pd.DataFrame([key] * len(rows), columns=names), rows], axis=1)
        for key, rows in pieces.items()
        if len(rows)
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names)


def dataset_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per table and model, complete or not: number of folds, and means over them."""
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
