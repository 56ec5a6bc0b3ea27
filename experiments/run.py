"""The ``run`` command: the paper's experiment, with real searches.

Nested cross-validation: for each table, model and fold, Optuna chooses the parameters by inner
cross-validation on the training rows, the model is fitted again on all of them with what was
chosen, and scored once on the test rows. What is in the results folder with the same settings
is not computed again, so a stopped run goes on where it was.
"""

import argparse
import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.arguments import add_folds, add_selection, at_least
from experiments.comparison import failure_list, markdown_table
from experiments.datasets import Table, find_data_folder, known_table, select_tables
from experiments.errors import UsageError
from experiments.jobs import Job, Result
from experiments.libraries import require, versions
from experiments.models import build
from experiments.pool import run_jobs
from experiments.protocols import PROTOCOLS, load_rows
from experiments.scoring import Scores, fit_and_score
from experiments.search import search
from experiments.searched import SearchedModel, check_libraries, searched_names, select_searched

NAME = "run"
SUMMARY = "tune every model by nested cross-validation and score it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, searched_names(), out="experiments-output/run")
    add_folds(parser)
    parser.add_argument(
        "--protocol",
        choices=list(PROTOCOLS),
        default="paper",
        help="how tables are prepared: as published, or learning from training rows only "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--trials",
        type=at_least(1, "--trials"),
        metavar="N",
        default=100,
        help="parameter settings tried in each search (default: %(default)s)",
    )
    parser.add_argument(
        "--inner-folds",
        type=at_least(2, "--inner-folds"),
        metavar="N",
        default=5,
        help="folds of the training rows that a setting is judged on (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then search, score and print; 1 when a job failed."""
    models = select_searched(arguments.models)
    require("optuna", "experiments", "A search")
    check_libraries(models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    jobs = plan(arguments, tables, models)

    results = run_jobs(
        jobs, functools.partial(search_and_score, data=data), arguments.out, arguments.jobs
    )
    failures = [result for result in results if result.error is not None]
    print(summary(results, failures))
    return 1 if failures else 0


def plan(
    arguments: argparse.Namespace, tables: list[Table], models: tuple[SearchedModel, ...]
) -> list[Job]:
    """One job for each table, model of its task, and fold."""
    jobs = [
        Job(
            arguments.protocol,
            table.id,
            model.name,
            fold,
            model.search(arguments.trials, arguments.inner_folds),
        )
        for table in tables
        for model in models
        if model.task == table.task
        for fold in arguments.folds
    ]
    if not jobs:
        raise UsageError("Nothing to run: the models must be for the task of the tables.")
    return jobs


def search_and_score(job: Job, data: Path) -> Scores:
    """Search, fit with what was found, score; every seed is the number of the fold."""
    task = known_table(job.dataset).task
    rows = load_rows(job.protocol, job.dataset, data)
    inner_folds = rows.inner_folds(job.fold, job.recipe.inner_folds)
    found = search(job.recipe, inner_folds, task, seed=job.fold)
    fold = rows.fold(job.fold)
    model = build(found.recipe, len(fold.y_train), random_state=job.fold)
    scores = fit_and_score(model, fold, task)
    details = {
        "parameters": found.recipe.parameters,
        "inner_score": found.inner_score,
        "trials": {"done": found.done, "pruned": found.pruned, "failed": found.failed},
        "search_seconds": found.seconds,
        "seeds": {"search": job.fold, "model": job.fold},
        "versions": versions(),
    }
    # As the result file will hold it: JSON has lists and no tuples.
    return dataclasses.replace(scores, details=json.loads(json.dumps(details)))


def summary(results: list[Result], failures: list[Result]) -> str:
    """The mean test score of each table and model, – where a fold of it failed."""
    scores = pd.DataFrame(
        [
            (r.job.dataset, r.job.model, np.nan if r.scores is None else r.scores.test_score)
            for r in results
        ],
        columns=["dataset", "model", "score"],
    )
    means = scores.groupby(["dataset", "model"], sort=False)["score"].agg(
        lambda fold_scores: fold_scores.mean(skipna=False)
    )
    parts = []
    for task, title in (("regression", "RMSE"), ("classification", "Accuracy")):
        ids = [id for id in scores["dataset"].unique() if known_table(id).task == task]
        if ids:
            wide = means.loc[ids].unstack(sort=False).reset_index()
            wide.insert(1, "name", [known_table(id).name for id in wide["dataset"]])
            parts.append(f"## {title}, mean over folds\n\n" + markdown_table(wide))
    if failures:
        parts.append(f"## Failed: {len(failures)} jobs\n\n" + failure_list(failures))
    return "\n".join(parts)
