"""The tables that models of both commits are fitted to: real ones, if there are any, and made ones.

Real tables are Parquet files in the folders ``regression`` and ``classification`` of a data folder
(environment variable RFRBOOST_DATA, else ../shared/data), with the column ``target`` last. They
are thinned to 600 rows. Of every table each third row is new to the model that is asked about it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import default_rng
from scipy import sparse
from sklearn import datasets

from benchmarks.sources import ROOT

#: rows of a real table: enough for several layers and kernel members, and a second for each fit
REAL_ROWS = 600
#: ends the name of a real table whose columns are turned into numbers, for single networks
AS_NUMBERS = ", as numbers"
#: with categories, missing values, many columns, many classes, or nothing of that kind
REAL_TABLES = (
    "regression/41021_Moneyball",
    "regression/44956_abalone",
    "regression/44957_airfoil_self_noise",
    "regression/44958_auction_verification",
    "regression/44959_concrete_compressive_strength",
    "regression/44962_forest_fires",
    "regression/44965_geographical_origin_of_music",
    "regression/44966_solar_flare",
    "regression/44967_student_performance_por",
    "regression/44972_red_wine",
    "regression/44979_diamonds",
    "regression/44984_cps88wages",
    "regression/44987_socmob",
    "regression/44990_brazilian_houses",
    "classification/11_balance-scale",
    "classification/15_breast-w",
    "classification/188_eucalyptus",
    "classification/23_cmc",
    "classification/29_credit-approval",
    "classification/31_credit-g",
    "classification/38_sick",
    "classification/50_tic-tac-toe",
    "classification/54_vehicle",
    "classification/458_analcatdata_authorship",
    "classification/1461_bank-marketing",
    "classification/1590_adult",
    "classification/40966_MiceProtein",
    "classification/6332_cylinder-bands",
)


@dataclass(frozen=True)
class Table:
    """Rows to fit, X and y, and rows to ask about, X_new."""

    X: Any
    y: np.ndarray
    X_new: Any


def split(X: Any, y: np.ndarray) -> Table:
    """Every third row is asked about, the others are fitted."""
    new = np.arange(len(y)) % 3 == 2
    return Table(X[~new], y[~new], X[new])


def data_folder() -> Path:
    """Where the real tables are, if they are there."""
    return Path(os.environ.get("RFRBOOST_DATA", ROOT.parent / "shared" / "data"))


def real_tables() -> tuple[str, ...]:
    """The names of the real tables that the data folder has."""
    return tuple(n for n in REAL_TABLES if (data_folder() / f"{n}.parquet").exists())


def real_frame(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Evenly spaced rows of a real table as they are, and their targets."""
    frame = pd.read_parquet(data_folder() / f"{name}.parquet")
    rows = np.linspace(0, len(frame) - 1, min(len(frame), REAL_ROWS)).astype(int)
    frame = frame.iloc[rows].reset_index(drop=True)
    y = frame.pop("target").to_numpy()
    return frame, np.asarray(y, dtype=float) if name.startswith("regression") else y


def as_numbers(frame: pd.DataFrame) -> np.ndarray:
    """Standardised columns for a single network: codes for categories, 0 for missing values."""
    columns = {
        name: column.astype("category").cat.codes if column.dtype.kind not in "fiub" else column
        for name, column in frame.items()
    }
    X = pd.DataFrame(columns).to_numpy(dtype=float)
    deviation = np.nanstd(X, axis=0)
    X = (X - np.nanmean(X, axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return np.nan_to_num(X)


def friedman(n: int, columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's first problem, with noise; five of the columns matter."""
    return datasets.make_friedman1(n, columns, noise=0.5, random_state=0)


def friedman_classes(n: int, columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, named by strings, cut out of Friedman's first problem."""
    X, y = friedman(n, columns)
    return X, np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.8]))]


def three_columns(n: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth target of three columns."""
    X = default_rng(0).standard_normal((n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * default_rng(1).standard_normal(n)


def three_columns_labelled(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes cut out of the smooth target."""
    X, y = three_columns(n)
    return X, np.digitize(y, [-0.5, 0.5])


def two_outputs() -> tuple[np.ndarray, np.ndarray]:
    """Two targets of different size and noise."""
    X, y = friedman(360)
    return X, np.column_stack([y, 100 * X[:, 0] ** 2 + default_rng(2).standard_normal(360)])


def counts() -> tuple[np.ndarray, np.ndarray]:
    """Counts, for the Poisson loss."""
    X, y = friedman(360)
    return X, default_rng(3).poisson(np.exp(y / 10)).astype(float)


def mixed(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with heavy tails and missing values, categories, truth values and dates."""
    rng = default_rng(4)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=list("abc"))
    X.loc[::11, "c"] = np.nan
    X["income"] = np.exp(3 * rng.standard_normal(n))
    X["tree"] = pd.Categorical(rng.choice(["ash", "beech", "cedar"], n))
    X["city"] = np.where(rng.random(n) < 0.1, None, rng.choice([f"city {k}" for k in range(40)], n))
    X["member"] = rng.random(n) < 0.3
    X["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
    y = np.sin(2 * X["a"]) + X["a"] * X["b"] + (X["tree"] == "ash") + 0.1 * rng.standard_normal(n)
    return X, y.to_numpy()


def mixed_labelled(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The frame of all kinds of columns, with two classes."""
    X, y = mixed(n)
    return X, np.where(y > 0.3, "high", "low")


def mostly_zeros() -> tuple[sparse.csr_array, np.ndarray]:
    """A sparse matrix."""
    X, y = friedman(300, 8)
    X = np.where(X > 0.6, X, 0.0)
    return sparse.csr_array(X), y


def single_precision() -> tuple[np.ndarray, np.ndarray]:
    """Inputs of 32 bits."""
    X, y = friedman(360)
    return X.astype(np.float32), y


MADE: dict[str, Callable[[], tuple[Any, np.ndarray]]] = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: tuple(a[:450] for a in datasets.load_digits(return_X_y=True)),
    "friedman": lambda: friedman(360),
    "friedman, 3 classes": lambda: friedman_classes(360),
    "friedman, 60 rows": lambda: friedman(60),
    "two outputs": two_outputs,
    "counts": counts,
    "single precision": single_precision,
    "sparse matrix": mostly_zeros,
    "mixed": lambda: mixed(750),
    "mixed, 2 classes": lambda: mixed_labelled(750),
    # 2,000 rows and more share draws of features; more than 5,000 in a bag are fitted in leaves.
    "friedman, 3,750 rows": lambda: friedman(3750),
    "friedman, 3 classes, 3,750 rows": lambda: friedman_classes(3750),
    "friedman, 9,750 rows": lambda: friedman(9750),
    "friedman, 3 classes, 9,750 rows": lambda: friedman_classes(9750),
    # More than 50,000 rows in blocks are one network, which held-out rows stop.
    "three columns, 90,000 rows": lambda: three_columns(90_000),
    "three columns, 3 classes, 90,000 rows": lambda: three_columns_labelled(90_000),
    "mixed, 90,000 rows": lambda: mixed(90_000),
}


@cache
def table(name: str) -> Table:
    """A table by its name."""
    if name in MADE:
        return split(*MADE[name]())
    if name.endswith(AS_NUMBERS):
        frame, y = real_frame(name.removesuffix(AS_NUMBERS))
        return split(as_numbers(frame), y)
    return split(*real_frame(name))
