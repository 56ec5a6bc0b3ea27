"""The encoding that people make by hand, and the tables where it should matter most."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from experiments.datasets import LABEL, Table, load_table
from rfrboost.cli.evaluate import cross_validated
from rfrboost.cli.tasks import Task
from rfrboost.cli.training import estimator_for, read_training

BY_HAND = "by hand"
# Half of the ten tables are those with most levels, half the others with most holes.
HALF = 5
# What `rfrboost evaluate` has without options.
FOLDS, SEED = 5, 0


def most_irregular(tables: list[Table], data: Path) -> set[int]:
    """The tables with most levels in all, and of the others those with the largest share of holes.

    A table without any level or hole is not among them.
    """
    facts = {table.id: irregularity(table, data) for table in tables}
    by_levels = sorted(facts, key=lambda id: -facts[id][0])[:HALF]
    others = [id for id in facts if id not in by_levels]
    by_holes = sorted(others, key=lambda id: -facts[id][1])[:HALF]
    return {id for id in by_levels if facts[id][0]} | {id for id in by_holes if facts[id][1]}


def irregularity(table: Table, data: Path) -> tuple[int, float]:
    """The number of levels of all categories, and the share of cells that are holes."""
    inputs = load_table(table, data).drop(columns=LABEL)
    levels = sum(inputs[name].nunique() for name in inputs.select_dtypes("category"))
    return levels, float(inputs.isna().to_numpy().mean())


def hand_made(file: Path) -> pd.DataFrame:
    """Scores on the folds of ``rfrboost evaluate``, with the same seeds."""
    training = read_training(str(file), LABEL, None, [])
    results = cross_validated(training, {BY_HAND: encoded_by_hand}, FOLDS, SEED)
    return pd.DataFrame(list(results))


def encoded_by_hand(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
    """Medians, most frequent levels, one column a level, then the same model."""
    numbers = list(frame.select_dtypes("number"))
    words = [name for name in frame if name not in numbers]
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    encoder = make_column_transformer(
        (SimpleImputer(strategy="median", keep_empty_features=True), numbers), (levels, words)
    )
    return make_pipeline(encoder, estimator_for(task, seed, None, False))
