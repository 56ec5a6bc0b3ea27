"""Automatic fits of row blocks: small ones as of a table, large ones as one network.

Up to ``Sizes.gathered_rows`` rows are gathered in memory and fitted as ``fit(X, y)`` would. More are not
an ensemble: a single network in the learned metric, gradient boosted, its inputs encoded as a
sample of the rows suggests, grows until the rows that are held out say stop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from rfrboost._blocks.held_out import HeldOutRows
from rfrboost._blocks.reader import BlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._blocks.sample import BlockSample
from rfrboost._estimators.inputs import encode_fit
from rfrboost._estimators.parameters import is_auto, recipe_for
from rfrboost._estimators.plan import BUMPS, LEARNING_RATE, MOST_LAYERS, families_of, is_automatic
from rfrboost._model.losses import Loss
from rfrboost._numerics.sizes import Sizes
from rfrboost._paper.boost import Recipe

Source = TypeVar("Source", bound=BlockArrays)


# What "auto" stands for in a large fit. Noise averages out over many rows, so that penalties are
# small; smaller ones still would stop earlier where targets are noisy.
LARGE: dict[str, Any] = {
    "n_layers": MOST_LAYERS,
    "n_features": (512, 512),
    "learning_rate": LEARNING_RATE,
    "l2_head": 1e-5,
    "l2_step": 1e-4,
    "metric": "agop",
}


class LargeParameters:
    """An estimator's parameters with those numbers for "auto" that a large fit has."""

    def __init__(self, params: Any) -> None:
        values = params.get_params(deep=False)
        left = {name: value for name, value in LARGE.items() if is_auto(values[name])}
        self.values = {**values, **left, "features": features_for(values["features"])}

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """As scikit-learn has it."""
        return self.values


def features_for(features: Any) -> Any:
    """The one family of features of a large fit."""
    dense = [name for name in families_of(features) if name is not BUMPS]
    if not dense:
        raise ValueError(
            "features=('bumps',) puts a bump around every row, which must be in memory for that: "
            "pass arrays instead of RowBlocks, or other features."
        )
    return dense[0]


def large_recipe(
    params: Any, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int
) -> Recipe:
    """The recipe of a large fit."""
    return recipe_for(LargeParameters(params), loss, scale, n_rows, n_columns, seed)


@dataclass(frozen=True)
class Gathered:
    """Few enough rows to be fitted as a table."""

    X: Any
    y: np.ndarray
    w: np.ndarray | None


class Look(Protocol):
    """A first look: how many rows there are, and evenly spaced ones of them."""

    n_rows: int

    def sample(self) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """X, y and weights of these, which are all if they are up to ``Sizes.gathered_rows``."""


def source_of(
    estimator: Any,
    blocks: RowBlocks,
    kind: type[Source],
    task: str,
    look: Callable[[BlockArrays, Sizes], Look] = BlockSample,
) -> Source | Gathered:
    """Blocks as arrays for a network, with rows held out if it is to be stopped by them."""
    if not is_auto(getattr(estimator, "n_layers", 0)):
        return kind(blocks)
    sizes = estimator._sizes
    is_automatic(estimator, sizes.gathered_rows)
    glance = look(kind(blocks), sizes)
    X, y, w = glance.sample()
    if glance.n_rows <= sizes.gathered_rows:
        return Gathered(X, y, w)
    encoder = None
    if estimator.preprocess is not None:
        encoder = encode_fit(X, y, w, task)[0]
    return kind(blocks, encoder, HeldOutRows(glance.n_rows))
