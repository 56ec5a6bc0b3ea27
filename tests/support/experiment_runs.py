"""Jobs, scores, results and published runs for the tests of the experiments."""

import json
from pathlib import Path

import pandas as pd

from experiments.__main__ import main
from experiments.models import variants
from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.runs import jobs
from experiments.runs.provenance import current

RIDGE = Recipe("Ridge", {"l2_head": 0.01})
SCORES = Scores(train_score=0.25, test_score=0.5, fit_seconds=1.0, predict_seconds=0.125)
# The files that must name the commit of their results.
TRACEABLE = {".md", ".csv", ".svg", ".json"}
ENERGY = 44960  # 768 rows, 8 inputs, regression


def job(fold: int = 0, recipe: Recipe = RIDGE, dataset: int = ENERGY) -> jobs.Job:
    return jobs.Job("paper", dataset, "ridge", fold, recipe)


def in_this_process(
    planned: list[jobs.Job], work: jobs.Work, out: Path, n_processes: int, mix_commits: bool
) -> list[jobs.Result]:
    """In place of ``run_jobs``: stored results are read, the others made without workers."""
    return [jobs.read_result(job, out) or jobs.execute(job, work, out) for job in planned]


def variant(name: str, task: str = "regression") -> variants.Variant:
    (found,) = (v for v in variants.VARIANTS if v.name == name and v.task == task)
    return found


def published_frame(
    task: str, dataset: int, model: str, scores: list[float], settings: dict
) -> pd.DataFrame:
    n = len(scores)
    return pd.DataFrame(
        {
            "task": task, "dataset": dataset, "model": model, "fold": range(n),
            "test_score": scores, "fit_seconds": 2.0, "hyperparameters": json.dumps(settings),
        }
    )  # fmt: skip


def results_of(dataset: int, model: str, scores: list[float]) -> list[jobs.Result]:
    return [
        jobs.Result(
            jobs.Job("paper", dataset, model, fold, RIDGE), Scores(0.0, score, 1.0, 0.0), None
        )
        for fold, score in enumerate(scores)
    ]


def untraceable(folder: Path) -> list[str]:
    """The reports, tables, figures and results in a folder that do not name the present commit."""
    written = [path for path in sorted(folder.rglob("*")) if path.suffix in TRACEABLE]
    assert written, "nothing was written"
    return [
        path.name for path in written if current().commit not in path.read_text(encoding="utf-8")
    ]


def command(name: str, folder: Path, *words: str) -> int:
    """The exit code of a command on the made-up folder, on two processes."""
    places = ["--data", str(folder / "data"), "--out", str(folder / "out")]
    return main([name, *places, "--jobs", "2", *words])
