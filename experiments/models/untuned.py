"""Models with default parameters: ours, three libraries of boosted trees, and our ablations."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiments.models.baselines import SOURCES, baseline
from experiments.models.naming import label
from experiments.models.recipes import Recipe, Value, build
from experiments.requests import select

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

OURS = "rfrboost"
# The names of a library's estimators, without the ending Regressor or Classifier.
PEERS = {"catboost": "CatBoost", "lightgbm": "LGBM", "xgboost": "XGB"}
ENDINGS = {"regression": "Regressor", "classification": "Classifier"}
# The ablations: the name of a variant, and the parameters that differ from our defaults. A new
# variant needs one new line here.
VARIANTS: dict[str, dict[str, Value]] = {
    "no-metric": {"metric": "identity"},
    "no-bumps": {"features": ("swim", "sparse", "trees")},
    "no-sparse": {"features": ("swim", "bumps", "trees")},
    "no-dense": {"features": ("sparse", "bumps", "trees")},
    "no-trees": {"features": ("swim", "sparse", "bumps")},
    "only-trees": {"features": ("trees",)},
    "one-member": {"n_bags": 1},
    "one-penalty": {"l2_step": 1e-3},
    "narrow": {"n_features": 128},
}
FIELD = (OURS, *PEERS)
NAMES = (*FIELD, *VARIANTS)
# Enough rows that every class occurs in every inner fold.
WARM_UP_ROWS = 240


@dataclass(frozen=True)
class TimedRecipe(Recipe):
    """A recipe with its number of threads, for jobs whose seconds are a result."""

    threads: int


@dataclass(frozen=True)
class UntunedModel:
    """A model: its name, task and estimator, and the parameters that differ from the defaults."""

    name: str
    task: str
    estimator: str
    parameters: dict[str, Value]

    def recipe(self, threads: int) -> TimedRecipe:
        """The recipe of this model on ``threads`` threads."""
        return TimedRecipe(self.estimator, self.parameters, threads)


def select_untuned(names: list[str] | None) -> list[UntunedModel]:
    """The models with these names, for both tasks; None: ours and the three libraries."""
    chosen = select("model", list(FIELD) if names is None else names, list(NAMES))
    return [
        UntunedModel(name, task, PEERS.get(name, "RFRBoost") + ending, VARIANTS.get(name, {}))
        for name in chosen
        for task, ending in ENDINGS.items()
    ]


def untuned_label(name: str) -> str:
    """The printed label; it says "default" because tuned runs of the model may be in the table."""
    if name in VARIANTS:
        return f"RFRBoost, {name}"
    return "RFRBoost, default" if name == OURS else f"{label(name)}, default"


def build_untuned(recipe: TimedRecipe, n_train: int, random_state: int) -> "BaseEstimator":
    """The unfitted estimator; our estimators use the threads of the process."""
    if recipe.estimator in SOURCES:
        return baseline(recipe.estimator, recipe.parameters, random_state, recipe.threads)
    return build(recipe, n_train, random_state)


@functools.cache
def warm_up(recipe: TimedRecipe) -> None:
    """Import the library and start its threads by a small fit, once per process.

    Otherwise the seconds of the first fit would include both.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(WARM_UP_ROWS, 4)).astype(np.float32)
    y = X[:, 0] if recipe.estimator.endswith("Regressor") else (X[:, 0] > 0).astype(np.intp)
    build_untuned(recipe, len(y), random_state=0).fit(X, y).predict(X)
