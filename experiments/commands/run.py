"""The ``run`` command: the paper's experiment, with real searches.

Nested cross-validation: for each table, model and fold, Optuna chooses the parameters by inner
cross-validation on the training rows; the model is fitted on all training rows with the chosen
parameters and scored once on the test rows. Results that are stored with the same settings are not
computed again, so that a stopped command continues where it was.
"""

import argparse
import dataclasses
import functools
import json
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.commands.arguments import add_folds, add_selection, at_least
from experiments.data.protocols import OF_ARRAYS, load_rows
from experiments.data.tables import Table, find_data_folder, known_table, select_tables
from experiments.models.recipes import build
from experiments.models.scoring import Scores, fit_and_score
from experiments.models.spaces import (
    SearchedModel,
    check_libraries,
    searched_names,
    select_searched,
)
from experiments.reports.markdown import failure_list, markdown_table
from experiments.requests import UsageError, require
from experiments.runs.jobs import Job, Result, provenances
from experiments.runs.pool import run_jobs
from experiments.runs.provenance import markdown_footer
from experiments.runs.search import search

NAME = "run"
SUMMARY = "tune every model by nested cross-validation and score it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_selection(parser, searched_names(), out="experiments-output/run")
    add_folds(parser)
    parser.add_argument(
        "--protocol",
        choices=list(OF_ARRAYS),
        default="paper",
        help="how tables are prepared: as published, or learning from training rows only "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--trials",
        type=at_least(1, "--trials"),
        metavar="N",
        default=100,
        help="number of parameter settings that a search tries (default: %(default)s)",
    )
    parser.add_argument(
        "--inner-folds",
        type=at_least(2, "--inner-folds"),
        metavar="N",
        default=5,
        help="number of folds of the training rows for a search (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Check the whole request, then search, score and print; 1 if a job failed."""
    models = select_searched(arguments.models)
    require("optuna", "experiments", "A search")
    check_libraries(models)
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    jobs = plan(arguments, tables, models)

    results = run_jobs(
        jobs,
        functools.partial(search_and_score, data=data),
        arguments.out,
        arguments.jobs,
        mix_commits=arguments.mix_commits,
    )
    failures = [result for result in results if result.error is not None]
    print(summary(results, failures) + markdown_footer(provenances(results)))
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
    """Search, fit with the chosen parameters, and score; the fold is the seed of both."""
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
    }
    # As the result file holds it: JSON has lists and no tuples.
    return dataclasses.replace(scores, details=json.loads(json.dumps(details)))


def summary(results: list[Result], failures: list[Result]) -> str:
    """The mean test score of each table and model; a dash if a fold failed."""
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
