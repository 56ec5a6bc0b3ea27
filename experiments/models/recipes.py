"""Recipes: an estimator and its parameters as plain data, and the estimator built from them.

A recipe is part of a job's result file and of its identity. The library of an estimator is imported
when the estimator is built, so that stored recipes can be read without it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.models.baselines import SOURCES, baseline

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Value = str | int | float | tuple[int, int]


@dataclass(frozen=True)
class Recipe:
    """The class name of an estimator and its parameters, in values that JSON can hold."""

    estimator: str
    parameters: dict[str, Value] = field(hash=False)


def build(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    """The unfitted estimator of a recipe.

    ``n_train``, the number of training rows, converts penalties: the published ones belong to a
    mean over the training rows, scikit-learn's to a sum.
    """
    if recipe.estimator in SOURCES:
        return baseline(recipe.estimator, recipe.parameters, random_state)
    return BUILDERS[recipe.estimator](recipe, n_train, random_state)


def _ridge(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    from sklearn.linear_model import Ridge

    return _in_double_precision(Ridge(alpha=n_train * recipe.parameters["l2_head"]))


def _logistic(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    from sklearn.linear_model import LogisticRegression

    # The published objective is mean loss + λ‖W‖²; scikit-learn's is C · summed loss + ‖W‖²/2.
    strength = 1 / (2 * n_train * recipe.parameters["l2_head"])
    return _in_double_precision(LogisticRegression(C=strength, max_iter=10_000))


def _in_double_precision(model: "BaseEstimator") -> "BaseEstimator":
    """The model on inputs in float64: with penalties of 1e-5 a float32 solve is inexact."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    return make_pipeline(FunctionTransformer(_as_float64), model)


def _as_float64(X: NDArray) -> NDArray[np.float64]:
    return X.astype(np.float64)


def _ours(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    import rfrboost

    estimator = getattr(rfrboost, recipe.estimator)
    return estimator(random_state=random_state, **recipe.parameters)


BUILDERS: dict[str, Callable[[Recipe, int, int], "BaseEstimator"]] = {
    "Ridge": _ridge,
    "LogisticRegression": _logistic,
    "RFRBoostRegressor": _ours,
    "RFRBoostClassifier": _ours,
    "RFNNRegressor": _ours,
    "RFNNClassifier": _ours,
}
