"""Grid search: every candidate of a grid on held-out training rows, then a fit of the best.

A grid is stored as one recipe that also names the candidates and the criterion, so that a job
is told from one that searched otherwise.
"""

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.libraries import versions
from experiments.models import Recipe, build
from experiments.protocols import Fold
from experiments.scoring import Scores, accuracy, fit_and_score, rmse

CANDIDATES, CRITERION = "candidates", "criterion"
# The parameter in which a deep fit contains the shallow ones, layer for layer.
DEPTH = "n_layers"

Parameters = dict[str, Any]
Splits = list[tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class Criterion:
    """What candidates are compared by: a method of the model, and the loss of what it gives."""

    method: str
    loss: Callable[[NDArray, NDArray], float]


def log_loss(y: NDArray, probabilities: NDArray) -> float:
    """Mean negative logarithm of the probability given to the right class."""
    from sklearn.metrics import log_loss

    return log_loss(y, probabilities)


CRITERIA = {
    "rmse": Criterion("predict", rmse),
    "error rate": Criterion("predict", lambda y, prediction: 1 - accuracy(y, prediction)),
    "log loss": Criterion("predict_proba", log_loss),
}


def grid(estimator: str, fixed: Parameters, varied: list[Parameters], criterion: str) -> Recipe:
    """A grid: what all candidates share, what each has of its own, how they are compared."""
    return Recipe(estimator, fixed | {CANDIDATES: varied, CRITERION: criterion})


def combinations(values: dict[str, list[Any]]) -> list[Parameters]:
    """Every combination of these values, the last name varying fastest."""
    return [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]


def candidates(grid: Recipe) -> list[Recipe]:
    """The recipes of a grid, in its order."""
    return [with_choice(grid, own) for own in grid.parameters[CANDIDATES]]


def with_choice(grid: Recipe, own: Parameters) -> Recipe:
    """The recipe of the candidate that has these parameters of its own."""
    fixed = {k: v for k, v in grid.parameters.items() if k not in (CANDIDATES, CRITERION)}
    return Recipe(grid.estimator, fixed | own)


def tuned_scores(grid: Recipe, fold: Fold, task: str, splits: Splits, seed: int) -> Scores:
    """Search the grid on the fold's training rows, refit the best on all of them, and score.

    ``fit_seconds`` is the time of both, as in the paper.
    """
    start = time.perf_counter()
    chosen, validation_loss = search(grid, fold, splits, seed)
    search_seconds = time.perf_counter() - start
    model = build(with_choice(grid, chosen), len(fold.y_train), seed)
    scores = fit_and_score(model, fold, task)
    details = {
        "chosen": chosen,
        "validation_loss": validation_loss,
        "seed": seed,
        "refit_seconds": scores.fit_seconds,
        "versions": versions(),
    }
    return replace(scores, fit_seconds=search_seconds + scores.fit_seconds, details=details)


def search(grid: Recipe, fold: Fold, splits: Splits, seed: int) -> tuple[Parameters, float]:
    """What the candidate of the least mean loss has of its own, and that loss.

    Of equals the first is taken.
    """
    recipes = candidates(grid)
    criterion = CRITERIA[grid.parameters[CRITERION]]
    totals = np.zeros(len(recipes))
    for train, held_out in splits:
        X, y = fold.X_train, fold.y_train
        split = Fold(X[train], y[train], X[held_out], y[held_out])
        totals += split_losses(recipes, split, criterion, seed)
    if np.isnan(totals).all():
        raise ArithmeticError("Every candidate of the grid diverged.")
    best = int(np.nanargmin(totals))
    return grid.parameters[CANDIDATES][best], float(totals[best] / len(splits))


def split_losses(recipes: list[Recipe], split: Fold, criterion: Criterion, seed: int) -> NDArray:
    """The held-out loss of every recipe; not a number where the training diverged."""
    losses = np.full(len(recipes), math.nan)
    for members in depth_families(recipes):
        try:
            losses[members] = family_losses([recipes[m] for m in members], split, criterion, seed)
        except ArithmeticError:
            continue
    return losses


def depth_families(recipes: list[Recipe]) -> list[list[int]]:
    """The positions of recipes that differ in depth alone, together."""
    families: dict[str, list[int]] = {}
    for position, recipe in enumerate(recipes):
        shared = {name: value for name, value in recipe.parameters.items() if name != DEPTH}
        families.setdefault(repr(shared), []).append(position)
    return list(families.values())


def family_losses(
    family: list[Recipe], split: Fold, criterion: Criterion, seed: int
) -> list[float]:
    """The losses of recipes that differ in depth alone, from one fit of the deepest."""
    deepest = max(family, key=lambda recipe: recipe.parameters.get(DEPTH, 0))
    model = build(deepest, len(split.y_train), seed).fit(split.X_train, split.y_train)
    if len(family) == 1:
        return [criterion.loss(split.y_test, getattr(model, criterion.method)(split.X_test))]
    stages = list(getattr(model, f"staged_{criterion.method}")(split.X_test))
    return [criterion.loss(split.y_test, stages[recipe.parameters[DEPTH]]) for recipe in family]
