"""Grids of candidates as recipes, and the grids of the larger-scale experiments.

A grid is stored as one recipe that also names its candidates and the criterion they are compared
by, so that a job with another grid is another job. ``experiments.runs.search`` carries out the
search. The grids of the larger-scale experiments follow the paper's appendix. Where its table and
the published runs differ, they follow the runs: RFRBoost has one penalty for head and steps, and
1e-5 is among the penalties of the linear models.
"""

import itertools
from typing import Any

from experiments.models.recipes import Recipe

# The two entries of a grid's parameters that are not parameters of its estimator.
CANDIDATES = "candidates"
CRITERION = "criterion"

Parameters = dict[str, Any]


def grid(estimator: str, fixed: Parameters, varied: list[Parameters], criterion: str) -> Recipe:
    """A grid: parameters that all candidates share, those of each candidate, and the criterion."""
    return Recipe(estimator, fixed | {CANDIDATES: varied, CRITERION: criterion})


def combinations(values: dict[str, list[Any]]) -> list[Parameters]:
    """All combinations of these values; the last name varies fastest."""
    return [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]


def candidates(grid: Recipe) -> list[Recipe]:
    """The recipes of a grid's candidates, in its order."""
    return [with_choice(grid, own) for own in grid.parameters[CANDIDATES]]


def with_choice(grid: Recipe, own: Parameters) -> Recipe:
    """The recipe of one candidate: the shared parameters and its ``own``."""
    fixed = {k: v for k, v in grid.parameters.items() if k not in (CANDIDATES, CRITERION)}
    return Recipe(grid.estimator, fixed | own)


PENALTIES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
BOOSTING = {"n_features": (512, 512), "feature_scale": 0.5, "learning_rate": 1.0}
DEPTHS_AND_PENALTIES = [
    {"n_layers": depth, "l2_head": l2, "l2_step": l2} for l2 in PENALTIES for depth in (1, 3, 6)
]
HEADS = combinations({"l2_head": PENALTIES})
TREES = combinations(
    {
        "learning_rate": [0.1, 0.033, 0.01],
        "n_estimators": [250, 500, 1000],
        "max_depth": [1, 3, 6, 10],
    }
)
NETWORK = {
    "hidden_dim": None,
    "bottleneck_dim": 512,
    "n_blocks": 3,
    "end_lr_factor": 0.01,
    "weight_decay": 1e-5,
    "batch_size": 256,
}
EPOCHS = combinations({"lr": [1e-1, 1e-2, 1e-3], "n_epochs": [10, 20, 30]})


def grids(task: str) -> dict[str, Recipe]:
    """The grid of each larger-scale model of a task, the cheap models first."""
    kind = "Regressor" if task == "regression" else "Classifier"
    linear = ("ridge", "Ridge") if task == "regression" else ("logistic", "LogisticRegression")
    by = "rmse" if task == "regression" else "error rate"
    return {
        linear[0]: grid(linear[1], {}, HEADS, by),
        "rfnn-swim": grid(f"RFNN{kind}", {"n_features": 512, "feature_scale": 0.5}, HEADS, by),
        "rfrboost-swim": grid(f"RFRBoost{kind}", BOOSTING, DEPTHS_AND_PENALTIES, by),
        "mlp": grid(f"MLPResNet{kind}", NETWORK, EPOCHS, by),
        "xgboost": grid(f"XGB{kind}", {"reg_lambda": 1.0}, TREES, by),
    }


MODELS = sorted({*grids("regression"), *grids("classification")})
# The models that need an optional library: (library, extra, subject of the error message).
LIBRARIES = {
    "mlp": ("torch", "torch", "The MLP ResNet"),
    "xgboost": ("xgboost", "experiments", "XGBoost"),
}
# The names of the published larger-scale runs, and ours.
PUBLISHED_NAMES = {
    "Logistic Regression": "logistic",
    "Ridge": "ridge",
    "RFNN": "rfnn-swim",
    "RFRBoost": "rfrboost-swim",
    "E2E MLP ResNet": "mlp",
    "XGBoost GPU": "xgboost",
}
