"""What to fit, as data, and the estimator made from it.

Estimators are imported when they are built: a recipe is stored and compared without them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.baselines import SOURCES, baseline

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Value = str | int | float | tuple[int, int]


@dataclass(frozen=True)
class Recipe:
    """An estimator's name and its parameters: plain values, so that it can be stored."""

    estimator: str
    parameters: dict[str, Value] = field(hash=False)


def build(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    """The unfitted estimator of a recipe.

    ``n_train`` is needed because the published penalties weigh a mean over the training
    rows, where scikit-learn's weigh a sum.
    """
    if recipe.estimator in SOURCES:
        return baseline(recipe.estimator, recipe.parameters, random_state)
    return BUILDERS[recipe.estimator](recipe, n_train, random_state)


def _ridge(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    from sklearn.linear_model import Ridge

    return _in_double_precision(Ridge(alpha=n_train * recipe.parameters["l2_head"]))


def _logistic(recipe: Recipe, n_train: int, random_state: int) -> "BaseEstimator":
    from sklearn.linear_model import LogisticRegression

    # The published penalty has no factor 1/2, scikit-learn's has.
    strength = 1 / (2 * n_train * recipe.parameters["l2_head"])
    return _in_double_precision(LogisticRegression(C=strength, max_iter=10_000))


def _in_double_precision(model: "BaseEstimator") -> "BaseEstimator":
    """The model on float64 inputs: with penalties of 1e-5 a float32 solve is visibly off."""
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
