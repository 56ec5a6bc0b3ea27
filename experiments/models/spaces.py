"""The models that ``run`` tunes: their fixed parameters and the ranges of the others.

The ranges of RFRBoost, RFNN, ridge, logistic regression, XGBoost and the MLP are those of the
paper's table of hyper-parameter ranges, under our parameters' names. The table leaves out the scale
of i.i.d. features and the width of a random first layer; they have the range that the published
choices cover.
"""

from dataclasses import dataclass, field
from typing import Any

from experiments.models.baselines import SOURCES
from experiments.requests import require, select


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``."""

    low: float
    high: float
    log: bool

    def suggest(self, trial: Any, name: str) -> float:
        """The value of an Optuna trial."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included."""

    low: int
    high: int
    log: bool

    def suggest(self, trial: Any, name: str) -> int:
        """The value of an Optuna trial."""
        return trial.suggest_int(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice:
    """One of several whole numbers."""

    options: tuple[int, ...]

    def suggest(self, trial: Any, name: str) -> int:
        """The value of an Optuna trial."""
        return trial.suggest_categorical(name, self.options)


Space = dict[str, Real | Whole | Choice]


@dataclass(frozen=True)
class Search:
    """A search for a recipe: fixed parameters, ranges of the others, trials and inner folds."""

    estimator: str
    fixed: dict[str, Any] = field(hash=False)
    space: Space = field(hash=False)
    trials: int
    inner_folds: int


PENALTY = Real(1e-5, 10.0, log=True)
WIDTH = Whole(16, 512, log=True)
SWIM_SCALE = Real(0.25, 2.0, log=False)
IID_SCALE = Real(0.1, 10.0, log=True)
LINEAR: Space = {"l2_head": PENALTY}
RFNN: Space = {"l2_head": PENALTY, "n_features": WIDTH}
BOOSTED: Space = {
    "n_layers": Whole(1, 10, log=True),
    "l2_head": PENALTY,
    "l2_step": PENALTY,
    "learning_rate": Real(0.1, 1.0, log=True),
}
XGBOOST: Space = {
    "reg_alpha": Real(1e-5, 1e-2, log=True),
    "reg_lambda": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "max_depth": Whole(1, 10, log=False),
}
MLP: Space = {
    "n_blocks": Whole(1, 10, log=False),
    "lr": Real(1e-6, 1e-1, log=True),
    "end_lr_factor": Real(0.01, 1.0, log=True),
    "n_epochs": Whole(10, 50, log=True),
    "weight_decay": Real(1e-6, 1e-3, log=True),
    "batch_size": Choice((128, 256, 384, 512)),
    "hidden_dim": WIDTH,
}
# The next three are not in the paper. Rounds, learning rate and penalty are those of XGBoost, so
# that no library has a larger budget of trees. The size of a tree is in the library's own terms.
LIGHTGBM: Space = {
    "reg_lambda": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "num_leaves": Whole(2, 256, log=True),
    "min_child_samples": Whole(1, 100, log=True),
}
HISTOGRAM: Space = {
    "l2_regularization": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "max_iter": Whole(50, 1000, log=True),
    "max_leaf_nodes": Whole(2, 256, log=True),
    "min_samples_leaf": Whole(1, 100, log=True),
}
# A symmetric tree of depth 8 has 256 leaves, the largest number that the others can have.
CATBOOST: Space = {
    "l2_leaf_reg": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "max_depth": Whole(1, 8, log=False),
}
# The value of ``--models`` that stands for all models.
ALL = "all"


@dataclass(frozen=True)
class SearchedModel:
    """A model: its name, task and estimator, its fixed parameters and the space of the others."""

    name: str
    task: str
    estimator: str
    fixed: dict[str, Any]
    space: Space

    def search(self, trials: int, inner_folds: int) -> Search:
        """The search for this model's parameters."""
        return Search(self.estimator, self.fixed, self.space, trials, inner_folds)


def _both_features(name: str, task: str, estimator: str, fixed: dict, space: Space) -> list:
    """A model of random features twice: with SWIM features and with i.i.d. features."""
    # As published: with i.i.d. features a random first layer is SWIM, at its default scale.
    first_layer = {"initial_scale": 0.5} if fixed.get("initial") == "swim" else {}
    swim = {"features": "swim"}
    iid = {"features": "uniform"} | first_layer
    swim_space = space | {"feature_scale": SWIM_SCALE}
    iid_space = space | {"feature_scale": IID_SCALE}
    return [
        SearchedModel(f"{name}-swim", task, estimator, fixed | swim, swim_space),
        SearchedModel(f"{name}-iid", task, estimator, fixed | iid, iid_space),
    ]


def _greedy(step_matrix: str, layers: dict, space: Space) -> list[SearchedModel]:
    fixed = {"strategy": "greedy", "step_matrix": step_matrix} | layers
    return _both_features(step_matrix, "regression", "RFRBoostRegressor", fixed, space)


def _peers(task: str, ending: str) -> list[SearchedModel]:
    """The models of other libraries; their spaces are the same for both tasks."""
    histogram = f"HistGradientBoosting{ending}"
    return [
        SearchedModel("xgboost", task, f"XGB{ending}", {}, XGBOOST),
        SearchedModel("lightgbm", task, f"LGBM{ending}", {}, LIGHTGBM),
        SearchedModel("catboost", task, f"CatBoost{ending}", {}, CATBOOST),
        SearchedModel("hist-gradient-boosting", task, histogram, {}, HISTOGRAM),
        SearchedModel("mlp", task, f"MLPResNet{ending}", {"bottleneck_dim": 512}, MLP),
    ]


WIDE = {"initial": "identity", "n_features": (512, 512)}
# Classifiers have gradient steps only, and no parameter for them.
GRADIENT = {"strategy": "gradient"} | WIDE
FIRST_LAYER = {"initial": "swim"}
WITH_WIDTH: Space = BOOSTED | {"hidden_dim": WIDTH}
SEARCHED_MODELS: tuple[SearchedModel, ...] = (
    *_both_features("gradient", "regression", "RFRBoostRegressor", GRADIENT, BOOSTED),
    *_greedy("dense", WIDE, BOOSTED),
    *_greedy("diagonal", FIRST_LAYER, WITH_WIDTH),
    *_greedy("scalar", FIRST_LAYER, WITH_WIDTH),
    *_both_features("rfnn", "regression", "RFNNRegressor", {}, RFNN),
    SearchedModel("ridge", "regression", "Ridge", {}, LINEAR),
    *_peers("regression", "Regressor"),
    *_both_features("rfrboost", "classification", "RFRBoostClassifier", WIDE, BOOSTED),
    *_both_features("rfnn", "classification", "RFNNClassifier", {}, RFNN),
    SearchedModel("logistic", "classification", "LogisticRegression", {}, LINEAR),
    *_peers("classification", "Classifier"),
)


def searched_names() -> list[str]:
    """The names of all searched models; some names stand for one model of each task."""
    return sorted({model.name for model in SEARCHED_MODELS})


def select_searched(names: list[str] | None) -> tuple[SearchedModel, ...]:
    """The models with these names; all models when ``names`` is None or ``["all"]``."""
    wanted = select("model", None if names == [ALL] else names, searched_names())
    return tuple(model for model in SEARCHED_MODELS if model.name in wanted)


def check_libraries(models: tuple[SearchedModel, ...]) -> None:
    """Raise UsageError for a model whose library is not installed."""
    for model in models:
        source = SOURCES.get(model.estimator)
        if source is not None:
            require(source.library, source.extra, f"The model {model.name}")
