"""The models that are compared untuned: ours, three libraries of boosted trees, our variants."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.arguments import select
from experiments.baselines import SOURCES, baseline
from experiments.models import Recipe, Value, build
from experiments.naming import label

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

OURS = "rfrboost"
# The beginning of each library's two estimator names.
PEERS = {"catboost": "CatBoost", "lightgbm": "LGBM", "xgboost": "XGB"}
ENDINGS = {"regression": "Regressor", "classification": "Classifier"}

# The ablation: what a variant is called, and how it departs from our defaults. A line here is
# all that a new one needs.
VARIANTS: dict[str, dict[str, Value]] = {
    "no-metric": {"metric": "identity"},
    "no-bumps": {"features": ("swim", "sparse")},
    "no-sparse": {"features": ("swim", "bumps")},
    "no-dense": {"features": ("sparse", "bumps")},
    "one-member": {"n_bags": 1},
    "one-penalty": {"l2_step": 1e-3},
    "narrow": {"n_features": 128},
}

FIELD = (OURS, *PEERS)
NAMES = (*FIELD, *VARIANTS)

# Enough rows for inner folds of every class.
WARM_UP_ROWS = 240


@dataclass(frozen=True)
class TimedRecipe(Recipe):
    """A recipe on so many threads: where seconds are a result, other threads are another job."""

    threads: int


@dataclass(frozen=True)
class UntunedModel:
    """A name to ask for, its task, the estimator, and how it departs from the defaults."""

    name: str
    task: str
    estimator: str
    parameters: dict[str, Value]

    def recipe(self, threads: int) -> TimedRecipe:
        """What is fitted."""
        return TimedRecipe(self.estimator, self.parameters, threads)


def select_untuned(names: list[str] | None) -> list[UntunedModel]:
    """The models with these names, of both tasks; without names ours and the libraries'."""
    chosen = select("model", list(FIELD) if names is None else names, list(NAMES))
    return [
        UntunedModel(name, task, PEERS.get(name, "RFRBoost") + ending, VARIANTS.get(name, {}))
        for name in chosen
        for task, ending in ENDINGS.items()
    ]


def untuned_label(name: str) -> str:
    """What a reader sees: the tuned runs of the same models may stand beside it."""
    if name in VARIANTS:
        return f"RFRBoost, {name}"
    return "RFRBoost, default" if name == OURS else f"{label(name)}, default"


def build_untuned(recipe: TimedRecipe, n_train: int, random_state: int) -> "BaseEstimator":
    """The unfitted estimator; ours has the threads of the process."""
    if recipe.estimator in SOURCES:
        return baseline(recipe.estimator, recipe.parameters, random_state, recipe.threads)
    return build(recipe, n_train, random_state)


@functools.cache
def warm_up(recipe: TimedRecipe) -> None:
    """Import the library and start its threads, once a process, by a small fit.

    The first fit of a process would otherwise be charged with both.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(WARM_UP_ROWS, 4)).astype(np.float32)
    y = X[:, 0] if recipe.estimator.endswith("Regressor") else (X[:, 0] > 0).astype(np.intp)
    build_untuned(recipe, len(y), random_state=0).fit(X, y).predict(X)
