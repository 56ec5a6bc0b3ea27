"""The tables of ``benchmarks.limits`` and ``benchmarks.extremes``: made, not read, from a seed.

The target of ordinary tables is partly linear in all columns and partly not: sin 2x₁ and x₂·x₃.
Each case says its time limit in seconds, and what its score is: R², accuracy, or the share of a
constant's log loss that the model saves (D²).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from scipy import sparse

from rfrboost import RowBlocks

REGRESSION, CLASSIFICATION = "regression", "classification"

# Rows that scores are computed from, beyond those of training, so that an accuracy is known to half
# a hundredth; fewer where rows are wide; more where a class is rare, so that some rows have it.
TEST_ROWS = 10_000
FEW_TEST_ROWS = 2000
MANY_TEST_ROWS = 200_000
# Columns of wide rows.
WIDE = 3000
# Rows of a block.
BLOCK_ROWS = 20_000


@dataclass(frozen=True)
class LimitCase:
    """A table and a time limit in seconds; ``make`` gives X and y of all rows."""

    name: str
    rows: int
    columns: int
    task: str
    limit: float
    make: Callable[[int, Generator], tuple[Any, NDArray]]
    score: str = ""
    in_blocks: bool = False
    test_rows: int = TEST_ROWS

    @property
    def measure(self) -> str:
        """What the score is."""
        return self.score or ("R²" if self.task == REGRESSION else "accuracy")

    @property
    def key(self) -> str:
        """The name by which a result is found again."""
        return f"{self.name}, {self.task}, {self.limit:g} s"

    def data(self) -> tuple[Any, NDArray, Any, NDArray]:
        """X and y to fit, and X and y to predict."""
        X, y = self.make(self.rows + self.test_rows, default_rng(0))
        train, test = slice(0, self.rows), slice(self.rows, None)
        if hasattr(X, "iloc"):
            return X.iloc[train], y[train], X.iloc[test], y[test]
        return X[train], y[train], X[test], y[test]


def blocks_of(X: NDArray, y: NDArray) -> RowBlocks:
    """Rows in memory as row blocks."""
    firsts = range(0, len(y), BLOCK_ROWS)
    return RowBlocks([(X[i : i + BLOCK_ROWS], y[i : i + BLOCK_ROWS]) for i in firsts])


def target(X: NDArray, rng: Generator) -> NDArray:
    """A noisy target, partly linear."""
    linear = X @ (rng.standard_normal(X.shape[1]) / np.sqrt(X.shape[1]))
    bent = np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3]
    return X[:, 0] + linear + bent + 0.5 * rng.standard_normal(len(X))


def numbers(columns: int, task: str, n: int, rng: Generator) -> tuple[NDArray, NDArray]:
    """Normal columns."""
    X = rng.standard_normal((n, columns))
    y = target(X, rng)
    return X, y if task == REGRESSION else (y > 0).astype(int)


def texts(columns: int, levels: int, n: int, rng: Generator) -> tuple[pd.DataFrame, NDArray]:
    """Columns of text with so many levels, two of which matter."""
    codes = rng.integers(levels, size=(n, columns))
    words = np.array([f"level {i}" for i in range(levels)], dtype=object)
    effects = rng.standard_normal((2, levels))
    y = effects[0, codes[:, 0]] + effects[1, codes[:, 1]] + 0.5 * rng.standard_normal(n)
    return pd.DataFrame({f"c{j}": words[codes[:, j]] for j in range(columns)}), y


def many_classes(columns: int, classes: int, n: int, rng: Generator) -> tuple[NDArray, NDArray]:
    """Classes of which each has a direction."""
    X = rng.standard_normal((n, columns))
    y = np.argmax(X @ rng.standard_normal((columns, classes)) + rng.gumbel(size=(n, classes)), 1)
    # Every class occurs.
    y[:classes] = np.arange(classes)
    return X, y


def rare_class(columns: int, one_in: int, n: int, rng: Generator) -> tuple[NDArray, NDArray]:
    """Rows far out in one direction, one in so many, are the second class."""
    X = rng.standard_normal((n, columns))
    far = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, (far > np.quantile(far, 1 - 1 / one_in)).astype(int)


def one_column(n: int, rng: Generator) -> tuple[NDArray, NDArray]:
    """A single number."""
    x = rng.uniform(-3, 3, n)
    return x[:, None], np.sin(2 * x) + x / 3 + 0.2 * rng.standard_normal(n)


def timestamps(n: int, rng: Generator) -> tuple[NDArray, NDArray]:
    """Nanoseconds since 1970, as whole numbers of about 1.7e18, and two other columns."""
    days = rng.integers(0, 365, n)
    since = 1_700_000_000_000_000_000 + days * 86_400_000_000_000
    others = rng.integers(0, 100, (n, 2))
    y = np.sin(days / 58) + others[:, 0] / 50 + 0.2 * rng.standard_normal(n)
    return np.column_stack([since, others]), y


def one_in_twenty(n: int, rng: Generator, columns: int = 50_000) -> tuple[Any, NDArray]:
    """A sparse matrix with 20 entries a row; some columns are far more frequent than others."""
    places = (columns * rng.random((n, 20)) ** 3).astype(np.int64)
    ends = np.arange(0, places.size + 1, 20)
    X = sparse.csr_matrix((np.ones(places.size), places.ravel(), ends), (n, columns))
    return X, X @ rng.standard_normal(columns) + rng.standard_normal(n)


def many_levels(n: int, rng: Generator, levels: int = 100_000) -> tuple[pd.DataFrame, NDArray]:
    """One column of 100,000 levels, each with an effect, and a number."""
    codes = rng.integers(levels, size=n)
    x = rng.standard_normal(n)
    y = rng.standard_normal(levels)[codes] + x + 0.5 * rng.standard_normal(n)
    words = pd.Series(codes).map("key {}".format)
    return pd.DataFrame({"key": words.to_numpy(object), "x": x}), y


def plain(rows: int, columns: int, task: str, limit: float) -> LimitCase:
    """A table of normal columns."""
    name = f"{rows:,} × {columns:,}"
    test_rows = TEST_ROWS if columns < WIDE else FEW_TEST_ROWS
    make = partial(numbers, columns, task)
    return LimitCase(name, rows, columns, task, limit, make, test_rows=test_rows)


SHAPES = [(n, D) for D in (20, 500) for n in (20_000, 100_000, 200_000)]
SHAPES += [(20_000, 1000), (2000, 3000)]

# All shapes, both tasks, with 10, 30 and 60 seconds; then tables that once took far longer.
LIMITS = [
    *(
        plain(n, D, task, limit)
        for n, D in SHAPES
        for task in (REGRESSION, CLASSIFICATION)
        for limit in (10, 30, 60)
    ),
    plain(100, 5000, REGRESSION, 10),
    plain(100, 20_000, REGRESSION, 10),
    plain(1000, 3000, CLASSIFICATION, 5),
    LimitCase("text columns", 200_000, 10, REGRESSION, 5, partial(texts, 10, 50)),
    LimitCase(
        "row blocks", 300_000, 20, REGRESSION, 5, partial(numbers, 20, REGRESSION), in_blocks=True
    ),
    LimitCase("300 classes", 10_000, 20, CLASSIFICATION, 20, partial(many_classes, 20, 300)),
]

# Wide and tall tables, all with 30 seconds.
EXTREMES = [
    plain(100, 20_000, REGRESSION, 30),
    plain(2000, 3000, REGRESSION, 30),
    LimitCase("sparse, 20 entries a row", 100_000, 50_000, REGRESSION, 30, one_in_twenty),
    LimitCase("300 classes", 10_000, 20, CLASSIFICATION, 30, partial(many_classes, 20, 300)),
    LimitCase(
        "1 in 10,000",
        100_000,
        10,
        CLASSIFICATION,
        30,
        partial(rare_class, 10, 10_000),
        "D²",
        test_rows=MANY_TEST_ROWS,
    ),
    LimitCase("one column", 20_000, 1, REGRESSION, 30, one_column),
    LimitCase("whole numbers of 1e18", 20_000, 3, REGRESSION, 30, timestamps),
    LimitCase("100,000 levels", 500_000, 2, REGRESSION, 30, many_levels),
]

TABLES = {"limits": LIMITS, "extremes": EXTREMES}
