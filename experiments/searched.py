"""The models that ``run`` tunes: their names, what is fixed, and the space of the rest."""

from dataclasses import dataclass
from typing import Any

from experiments import spaces
from experiments.baselines import SOURCES
from experiments.errors import UsageError
from experiments.libraries import require
from experiments.spaces import Search, Space

ALL = "all"


@dataclass(frozen=True)
class SearchedModel:
    """A name to ask for, its task, the estimator, and its parameters: fixed and searched."""

    name: str
    task: str
    estimator: str
    fixed: dict[str, Any]
    space: Space

    def search(self, trials: int, inner_folds: int) -> Search:
        """The search for this model's parameters."""
        return Search(self.estimator, self.fixed, self.space, trials, inner_folds)


def _both_features(name: str, task: str, estimator: str, fixed: dict, space: Space) -> list:
    """A model of random features, with SWIM ones and with i.i.d. ones."""
    # As published, i.i.d. runs with a random first layer have a SWIM one, at the default scale.
    first_layer = {"initial_scale": 0.5} if fixed.get("initial") == "swim" else {}
    swim = {"features": "swim"}
    iid = {"features": "uniform"} | first_layer
    swim_space = space | {"feature_scale": spaces.SWIM_SCALE}
    iid_space = space | {"feature_scale": spaces.IID_SCALE}
    return [
        SearchedModel(f"{name}-swim", task, estimator, fixed | swim, swim_space),
        SearchedModel(f"{name}-iid", task, estimator, fixed | iid, iid_space),
    ]


def _greedy(step_matrix: str, layers: dict, space: Space) -> list[SearchedModel]:
    fixed = {"strategy": "greedy", "step_matrix": step_matrix} | layers
    return _both_features(step_matrix, "regression", "RFRBoostRegressor", fixed, space)


def _gradient(name: str, task: str, estimator: str) -> list[SearchedModel]:
    return _both_features(name, task, estimator, {"strategy": "gradient"} | WIDE, spaces.BOOSTED)


def _peers(task: str, ending: str) -> list[SearchedModel]:
    """The models of other libraries, whose spaces are the same for both tasks."""
    histogram = f"HistGradientBoosting{ending}"
    return [
        SearchedModel("xgboost", task, f"XGB{ending}", {}, spaces.XGBOOST),
        SearchedModel("lightgbm", task, f"LGBM{ending}", {}, spaces.LIGHTGBM),
        SearchedModel("catboost", task, f"CatBoost{ending}", {}, spaces.CATBOOST),
        SearchedModel("hist-gradient-boosting", task, histogram, {}, spaces.HISTOGRAM),
        SearchedModel("mlp", task, f"MLPResNet{ending}", {"bottleneck_dim": 512}, spaces.MLP),
    ]


WIDE = {"initial": "identity", "n_features": (512, 512)}
FIRST_LAYER = {"initial": "swim"}
WITH_WIDTH: Space = spaces.BOOSTED | {"hidden_dim": spaces.WIDTH}

SEARCHED_MODELS: tuple[SearchedModel, ...] = (
    *_gradient("gradient", "regression", "RFRBoostRegressor"),
    *_greedy("dense", WIDE, spaces.BOOSTED),
    *_greedy("diagonal", FIRST_LAYER, WITH_WIDTH),
    *_greedy("scalar", FIRST_LAYER, WITH_WIDTH),
    *_both_features("rfnn", "regression", "RFNNRegressor", {}, spaces.RFNN),
    SearchedModel("ridge", "regression", "Ridge", {}, spaces.LINEAR),
    *_peers("regression", "Regressor"),
    *_gradient("rfrboost", "classification", "RFRBoostClassifier"),
    *_both_features("rfnn", "classification", "RFNNClassifier", {}, spaces.RFNN),
    SearchedModel("logistic", "classification", "LogisticRegression", {}, spaces.LINEAR),
    *_peers("classification", "Classifier"),
)


def searched_names() -> list[str]:
    """Every name a user can ask for; some stand for one model of each task."""
    return sorted({model.name for model in SEARCHED_MODELS})


def select_searched(names: list[str] | None) -> tuple[SearchedModel, ...]:
    """The models with these names; every model when none are given, or ``all``."""
    wanted = set(searched_names() if names is None or names == [ALL] else names)
    unknown = sorted(wanted - set(searched_names()))
    if unknown:
        raise UsageError(
            f"Unknown model {', '.join(unknown)}: the models are {', '.join(searched_names())}."
        )
    return tuple(model for model in SEARCHED_MODELS if model.name in wanted)


def check_libraries(models: tuple[SearchedModel, ...]) -> None:
    """Refuse models whose library is not installed, before anything is done."""
    for model in models:
        source = SOURCES.get(model.estimator)
        if source is not None:
            require(source.library, source.extra, f"The model {model.name}")
