"""Untuned and published runs in one frame, which of them are complete, and the two halves.

Models go by what a reader sees, so that the tuned and the untuned run of one library differ.
"""

import dataclasses

import numpy as np
import pandas as pd

from experiments.comparison import STORED_DECIMALS
from experiments.datasets import known_tables
from experiments.defaults_models import NAMES, OURS, untuned_label
from experiments.errors import UsageError
from experiments.jobs import Result
from experiments.naming import LOOKS, label
from experiments.sources import TASKS, without_twins
from experiments.summaries import Complete, complete_part

SCORES = ["test_score", "log_loss", "fit_seconds", "predict_seconds"]
COLUMNS = ["task", "dataset", "model", "fold", *SCORES]
OUR_LABEL = untuned_label(OURS)


def tuned_label(name: str) -> str:
    """What a reader sees for a published run."""
    return f"{label(name)}, tuned"


ORDER = [*map(untuned_label, NAMES), *map(tuned_label, LOOKS)]


def all_runs(results: list[Result], published: pd.DataFrame | None) -> pd.DataFrame:
    """One row a good fit, and the published ones of the same tables and folds."""
    fitted = [_row(result) for result in results if result.scores is not None]
    runs = pd.DataFrame(fitted, columns=COLUMNS)
    if published is not None:
        datasets, folds = {r.job.dataset for r in results}, {r.job.fold for r in results}
        same = published["dataset"].isin(datasets) & published["fold"].isin(folds)
        theirs = without_twins(published[same], named=None)[[*COLUMNS[:4], "test_score"]]
        theirs = theirs.assign(model=theirs["model"].map(tuned_label))
        # Their seconds are another machine's, and their probabilities were not kept.
        runs = pd.concat([runs, theirs], ignore_index=True) if fitted else theirs
    # As exact as published scores are stored, so that equal accuracies tie.
    return runs.reindex(columns=COLUMNS).round({"test_score": STORED_DECIMALS})


def _row(result: Result) -> tuple:
    job, scores = result.job, result.scores
    identity = (known_tables()[job.dataset].task, job.dataset, untuned_label(job.model), job.fold)
    log_loss = scores.details.get("log_loss", np.nan)
    return (*identity, scores.test_score, log_loss, scores.fit_seconds, scores.predict_seconds)


def complete_parts(runs: pd.DataFrame) -> tuple[list[Complete], list[str]]:
    """The part of each task that may be averaged, or the sentence why there is none."""
    parts, sentences = [], []
    for task in TASKS:
        if task not in set(runs["task"]):
            continue
        try:
            parts.append(complete_part(runs, task))
        except UsageError as error:
            sentences.append(str(error))
    return parts, sentences


def halves(task: str) -> dict[str, list[int]]:
    """The known tables of a task, dealt out in turn: constants are chosen on A, confirmed on B."""
    ids = [table.id for table in known_tables().values() if table.task == task]
    return {"A": ids[::2], "B": ids[1::2]}


def part_of(part: Complete, datasets: list[int]) -> Complete:
    """The same runs on some of the tables."""
    return dataclasses.replace(part, runs=part.runs[part.runs["dataset"].isin(datasets)])


def models_of(part: Complete) -> list[str]:
    """The models in the order of all tables: ours, the other libraries, variants, published."""
    return sorted(part.runs["model"].unique(), key=ORDER.index)


def by_table(part: Complete, value: str) -> pd.DataFrame:
    """The mean over folds: a row a table, a column for each model that has the value."""
    runs = part.runs.dropna(subset=[value])
    # Rounded as scores are, so that the same folds in another order tie.
    means = runs.pivot_table(index="dataset", columns="model", values=value).round(12)
    return means[[model for model in models_of(part) if model in means]]
