"""One search: Optuna chooses a model's parameters by cross-validation on the training rows."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.models import Recipe, build
from experiments.protocols import Fold
from experiments.scoring import held_out_score
from experiments.spaces import Search

DIRECTIONS = {"regression": "minimize", "classification": "maximize"}
# Nothing is pruned before so many trials have finished, and none after a single inner fold:
# what looks hopeless must be so on two folds, against enough others.
TRIALS_BEFORE_PRUNING = 10
FOLDS_BEFORE_PRUNING = 2


@dataclass(frozen=True)
class Found:
    """The best parameters of a search, and how it went."""

    recipe: Recipe
    inner_score: float
    done: int
    pruned: int
    failed: int
    seconds: float


def search(plan: Search, inner_folds: list[Fold], task: str, seed: int) -> Found:
    """The parameters with the best mean score over the inner folds.

    A trial whose fit fails counts as failed and the search goes on; without a single finished
    trial there is nothing to choose from, and the first trial's error is raised.
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
    # Optuna reports a failed trial in the log as well, with its traceback.
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
    """The mean score of a trial's parameters, given up early when it is hopeless."""
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
