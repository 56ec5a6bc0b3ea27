"""What the tests of the experiments share: a job, its scores, and made-up published runs."""

import json
from pathlib import Path

import pandas as pd

from experiments.__main__ import main
from experiments.models import variants
from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.runs import jobs

RIDGE = Recipe("Ridge", {"l2_head": 0.01})
SCORES = Scores(train_score=0.25, test_score=0.5, fit_seconds=1.0, predict_seconds=0.125)
ENERGY = 44960  # 768 rows, 8 inputs, regression


def job(fold: int = 0, recipe: Recipe = RIDGE, dataset: int = ENERGY) -> jobs.Job:
    return jobs.Job("paper", dataset, "ridge", fold, recipe)


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


def command(name: str, folder: Path, *words: str) -> int:
    """The exit code of a command on the made-up folder, on two processes."""
    places = ["--data", str(folder / "data"), "--out", str(folder / "out")]
    return main([name, *places, "--jobs", "2", *words])
