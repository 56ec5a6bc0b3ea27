"""The paper's published runs, and their models in our terms.

The file has one row per (dataset, model, fold) with train and test score (RMSE or accuracy,
both stored as they are, not negated), seconds, and the chosen hyper-parameters as JSON.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from experiments.errors import UsageError
from experiments.models import Recipe, Value

FILE_NAME = "openml_folds.parquet"
COLUMNS = ["task", "dataset", "model", "fold", "test_score", "fit_seconds", "hyperparameters"]

# The published name of a feature kind: our name, and the key of its scale.
FEATURES = {"SWIM": ("swim", "SWIM_scale"), "iid": ("uniform", "iid_scale")}
# What the published code used for the first layer's SWIM scale when the run stored none.
DEFAULT_SWIM_SCALE = 0.5
# The settings all published runs share; another value would need a model we do not have.
FIXED = {"activation": "tanh", "use_batchnorm": False, "add_features": False, "do_linesearch": True}

Hyperparameters = dict[str, str | int | float | bool]


def read_published(path: Path | None, data_folder: Path) -> pd.DataFrame:
    """The published runs: from ``path``, or from ``paper/`` beside the data folder."""
    path = path or data_folder.resolve().parent / "paper" / FILE_NAME
    if not path.is_file():
        raise UsageError(f"No published runs at {path}: pass --published-runs FILE.")
    try:
        return pd.read_parquet(path, columns=COLUMNS)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} does not hold the published runs ({error}).") from error


def ridge(h: Hyperparameters) -> Recipe:
    """Ridge regression on the prepared inputs."""
    return Recipe("Ridge", {"l2_head": h["l2_reg"]})


def logistic(h: Hyperparameters) -> Recipe:
    """Logistic regression on the prepared inputs."""
    return Recipe("LogisticRegression", {"l2_head": h["l2_lambda"]})


def rfnn_regressor(h: Hyperparameters) -> Recipe:
    """One random layer and a ridge head."""
    return Recipe("RFNNRegressor", _random_layer(h) | {"l2_head": h["l2_reg"]})


def rfnn_classifier(h: Hyperparameters) -> Recipe:
    """One random layer and a logistic head."""
    return Recipe("RFNNClassifier", _random_layer(h) | {"l2_head": h["l2_cls"]})


def gradient_regressor(h: Hyperparameters) -> Recipe:
    """Gradient boosting of the representation, from the inputs themselves."""
    parameters = _boosting(h) | _wide_layers(h) | {"strategy": "gradient", "l2_head": h["l2_reg"]}
    return Recipe("RFRBoostRegressor", parameters)


def gradient_classifier(h: Hyperparameters) -> Recipe:
    """The same with a logistic head."""
    parameters = _boosting(h) | _wide_layers(h) | {"strategy": "gradient", "l2_head": h["l2_cls"]}
    return Recipe("RFRBoostClassifier", parameters)


def dense_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with a full step matrix, from the inputs themselves."""
    return _greedy("dense", h, _wide_layers(h))


def diagonal_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with a diagonal step matrix, from a random first layer."""
    return _greedy("diagonal", h, _first_layer(h))


def scalar_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with one number for a step matrix, from a random first layer."""
    return _greedy("scalar", h, _first_layer(h))


def _greedy(step_matrix: str, h: Hyperparameters, layers: dict[str, Value]) -> Recipe:
    choice = {"strategy": "greedy", "step_matrix": step_matrix, "l2_head": h["l2_reg"]}
    return Recipe("RFRBoostRegressor", _boosting(h) | layers | choice)


def _boosting(h: Hyperparameters) -> dict[str, Value]:
    """What every boosted model shares."""
    features, scale = FEATURES[h["feature_type"]]
    return {
        "n_layers": h["n_layers"],
        "features": features,
        "feature_scale": h[scale],
        "activation": h["activation"],
        "learning_rate": h["boost_lr"],
        "l2_step": h["l2_ghat"],
    }


def _wide_layers(h: Hyperparameters) -> dict[str, Value]:
    """Layers wider than the representation, which starts as the inputs."""
    widths = (h["randfeat_xt_dim"], h["randfeat_x0_dim"])
    return {"initial": "identity", "n_features": widths}


def _first_layer(h: Hyperparameters) -> dict[str, Value]:
    """A random first layer, whose width is the width of all others.

    The stored ``randfeat_*`` widths are ignored here because the published code did so.
    Runs with i.i.d. features still began with a SWIM layer, at a scale of its own.
    """
    initial, scale = FEATURES[h["upscale_type"]]
    layer: dict[str, Value] = {"initial": initial, "hidden_dim": h["hidden_dim"]}
    if h["upscale_type"] != h["feature_type"]:
        layer["initial_scale"] = h.get(scale, DEFAULT_SWIM_SCALE)
    return layer


def _random_layer(h: Hyperparameters) -> dict[str, Value]:
    features, scale = FEATURES[h["upscale_type"]]
    return {"features": features, "n_features": h["hidden_dim"], "feature_scale": h[scale]}


@dataclass(frozen=True)
class Variant:
    """One of our names, the task it is for, its published name, and the translation."""

    name: str
    task: str
    published: str
    translate: Callable[[Hyperparameters], Recipe]

    def recipe(self, hyperparameters: Hyperparameters) -> Recipe:
        """Our estimator and parameters for a published run of this variant."""
        for key, value in FIXED.items():
            if hyperparameters.get(key, value) != value:
                raise UsageError(
                    f"A published run of {self.published} has {key}={hyperparameters[key]!r}; "
                    f"only {key}={value!r} can be replayed."
                )
        return self.translate(hyperparameters)


# (published name without the mark of i.i.d. features, that mark, our name, task, translation)
_FAMILIES = (
    (
        "GradientRFRBoost_ID_batchnormFalse",
        "_featiid",
        "gradient",
        "regression",
        gradient_regressor,
    ),
    ("GreedyRFRBoostDense_ID_batchnormFalse", "_featiid", "dense", "regression", dense_regressor),
    ("GreedyRFRBoostDiag_batchnormFalse", "_featiid", "diagonal", "regression", diagonal_regressor),
    ("GreedyRFRBoostScalar_batchnormFalse", "_featiid", "scalar", "regression", scalar_regressor),
    ("RFNN", "_iid", "rfnn", "regression", rfnn_regressor),
    ("RFRBoost_ID_batchnormFalse", "_featiid", "rfrboost", "classification", gradient_classifier),
    ("RFNN", "_iid", "rfnn", "classification", rfnn_classifier),
)

VARIANTS: tuple[Variant, ...] = (
    *(
        Variant(f"{name}-{kind}", task, published + mark, translate)
        for published, iid_mark, name, task, translate in _FAMILIES
        for kind, mark in (("swim", ""), ("iid", iid_mark))
    ),
    Variant("ridge", "regression", "Ridge", ridge),
    Variant("logistic", "classification", "LogisticRegression", logistic),
)


def variant_names() -> list[str]:
    """Every name a user can ask for; some stand for one variant of each task."""
    return sorted({variant.name for variant in VARIANTS})


def select_variants(names: list[str] | None) -> tuple[Variant, ...]:
    """The variants with these names; all of them when no names are given."""
    unknown = sorted(set(names or ()) - set(variant_names()))
    if unknown:
        raise UsageError(
            f"Unknown model {', '.join(unknown)}: the models are {', '.join(variant_names())}."
        )
    return VARIANTS if names is None else tuple(v for v in VARIANTS if v.name in names)
