"""Choosing parameters on training rows: by Optuna (``run``), or by a grid (other commands).

Both fit candidates on part of the training rows of a fold and compare them on the held-out rest;
the test rows are never used. A grid's candidates that differ in depth alone share one fit, because
the first t layers of a deep fit are a fit of t layers.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data.protocols import Fold
from experiments.models.grids import CANDIDATES, CRITERION, Parameters, candidates, with_choice
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import Scores, accuracy, fit_and_score, held_out_score, rmse
from experiments.models.spaces import Search

DIRECTIONS = {"regression": "minimize", "classification": "maximize"}
# A trial is pruned only if its mean score over at least 2 inner folds is worse than the median of
# at least 10 finished trials.
TRIALS_BEFORE_PRUNING = 10
FOLDS_BEFORE_PRUNING = 2
# The parameter of depth: a fit contains the fits of smaller depth.
DEPTH = "n_layers"

Splits = list[tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class Found:
    """The best recipe of a search, its mean score, and numbers of trials by their end."""

    recipe: Recipe
    inner_score: float
    done: int
    pruned: int
    failed: int
    seconds: float


def search(plan: Search, inner_folds: list[Fold], task: str, seed: int) -> Found:
    """The parameters with the best mean score over the inner folds.

    A trial whose fit fails counts as failed and the search continues. If no trial finishes, the
    error of the first trial is raised.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction=DIRECTIONS[task],
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(
            n_startup_trials=TRIALS_BEFORE_PRUNING, n_warmup_steps=FOLDS_BEFORE_PRUNING - 1
        ),
    )
    errors: list[Exception] = []

    def objective(trial: Any) -> float:
        try:
            return _mean_score(trial, plan, inner_folds, task, seed)
        except optuna.TrialPruned:
            raise
        except Exception as error:
            errors.append(error)
            raise

    start = time.perf_counter()
    # Optuna also writes failed trials to its log, with their traceback.
    study.optimize(objective, n_trials=plan.trials, catch=(Exception,))
    seconds = time.perf_counter() - start
    counts = [trial.state.name for trial in study.trials]
    if "COMPLETE" not in counts:
        raise errors[0]
    return Found(
        recipe=Recipe(plan.estimator, plan.fixed | study.best_params),
        inner_score=study.best_value,
        done=counts.count("COMPLETE"),
        pruned=counts.count("PRUNED"),
        failed=counts.count("FAIL"),
        seconds=seconds,
    )


def _mean_score(trial: Any, plan: Search, inner_folds: list[Fold], task: str, seed: int) -> float:
    """The mean score of a trial's parameters over the inner folds; a poor trial is pruned."""
    import optuna

    parameters = {name: range.suggest(trial, name) for name, range in plan.space.items()}
    recipe = Recipe(plan.estimator, plan.fixed | parameters)
    scores: list[float] = []
    for step, fold in enumerate(inner_folds):
        model = build(recipe, len(fold.y_train), random_state=seed)
        scores.append(held_out_score(model, fold, task))
        trial.report(float(np.mean(scores)), step)
        if trial.should_prune() and step < len(inner_folds) - 1:
            raise optuna.TrialPruned
    return float(np.mean(scores))


@dataclass(frozen=True)
class Criterion:
    """How candidates are compared: the method that predicts, and the loss of its predictions."""

    method: str
    loss: Callable[[NDArray, NDArray], float]


def log_loss(y: NDArray, probabilities: NDArray) -> float:
    """Mean of −log of the probability of the true class; every class must be in y."""
    from sklearn.metrics import log_loss

    return log_loss(y, probabilities)


CRITERIA = {
    "rmse": Criterion("predict", rmse),
    "error rate": Criterion("predict", lambda y, prediction: 1 - accuracy(y, prediction)),
    "log loss": Criterion("predict_proba", log_loss),
}


def tuned_scores(grid: Recipe, fold: Fold, task: str, splits: Splits, seed: int) -> Scores:
    """Search the grid on the training rows, refit the best candidate on all of them, and score.

    ``splits`` are (training, held-out) positions among the training rows. ``fit_seconds`` is the
    time of search and refit together, as in the paper.
    """
    start = time.perf_counter()
    chosen, validation_loss = best_candidate(grid, fold, splits, seed)
    search_seconds = time.perf_counter() - start
    model = build(with_choice(grid, chosen), len(fold.y_train), seed)
    scores = fit_and_score(model, fold, task)
    details = {
        "chosen": chosen,
        "validation_loss": validation_loss,
        "seed": seed,
        "refit_seconds": scores.fit_seconds,
    }
    return replace(scores, fit_seconds=search_seconds + scores.fit_seconds, details=details)


def best_candidate(grid: Recipe, fold: Fold, splits: Splits, seed: int) -> tuple[Parameters, float]:
    """The own parameters of the candidate with the least mean loss, and that loss.

    Among equal candidates the first is chosen.
    """
    recipes = candidates(grid)
    criterion = CRITERIA[grid.parameters[CRITERION]]
    totals = np.zeros(len(recipes))
    for train, held_out in splits:
        X = fold.X_train
        y = fold.y_train
        split = Fold(X[train], y[train], X[held_out], y[held_out])
        totals += split_losses(recipes, split, criterion, seed)
    if np.isnan(totals).all():
        raise ArithmeticError("Every candidate of the grid diverged.")
    best = int(np.nanargmin(totals))
    return grid.parameters[CANDIDATES][best], float(totals[best] / len(splits))


def split_losses(recipes: list[Recipe], split: Fold, criterion: Criterion, seed: int) -> NDArray:
    """The held-out loss of each recipe; NaN where the training diverged."""
    losses = np.full(len(recipes), math.nan)
    for positions in depth_groups(recipes):
        try:
            group = [recipes[position] for position in positions]
            losses[positions] = group_losses(group, split, criterion, seed)
        except ArithmeticError:
            continue
    return losses


def depth_groups(recipes: list[Recipe]) -> list[list[int]]:
    """The positions of the recipes, grouped so that a group differs in depth alone."""
    groups: dict[str, list[int]] = {}
    for position, recipe in enumerate(recipes):
        shared = {name: value for name, value in recipe.parameters.items() if name != DEPTH}
        groups.setdefault(repr(shared), []).append(position)
    return list(groups.values())


def group_losses(group: list[Recipe], split: Fold, criterion: Criterion, seed: int) -> list[float]:
    """The losses of recipes that differ in depth alone, from one fit of the deepest."""
    deepest = max(group, key=lambda recipe: recipe.parameters.get(DEPTH, 0))
    model = build(deepest, len(split.y_train), seed).fit(split.X_train, split.y_train)
    if len(group) == 1:
        return [criterion.loss(split.y_test, getattr(model, criterion.method)(split.X_test))]
    stages = list(getattr(model, f"staged_{criterion.method}")(split.X_test))
    return [criterion.loss(split.y_test, stages[recipe.parameters[DEPTH]]) for recipe in group]
