"""Names of models: the short names of the command line, the published names, the printed labels."""

from dataclasses import dataclass

import pandas as pd

from experiments.models.variants import VARIANTS

IID = "-iid"
SWIM = "-swim"
RFRBOOST = "RFRBoost"
TREES = "Boosted trees"
NETWORK = "End-to-end network"
ONE_LAYER = "One random layer"
LINEAR = "Linear model"
OTHER = "Other"


@dataclass(frozen=True)
class Look:
    """The printed label of a model, and the family that its colour in figures stands for."""

    label: str
    family: str


# In the order of the paper's summary tables, which all tables and figures keep.
LOOKS: dict[str, Look] = {
    "gradient-swim": Look("Gradient RFRBoost", RFRBOOST),
    "gradient-iid": Look("Gradient RFRBoost, i.i.d.", RFRBOOST),
    "dense-swim": Look("Greedy RFRBoost, dense", RFRBOOST),
    "dense-iid": Look("Greedy RFRBoost, dense, i.i.d.", RFRBOOST),
    "diagonal-swim": Look("Greedy RFRBoost, diagonal", RFRBOOST),
    "diagonal-iid": Look("Greedy RFRBoost, diagonal, i.i.d.", RFRBOOST),
    "scalar-swim": Look("Greedy RFRBoost, scalar", RFRBOOST),
    "scalar-iid": Look("Greedy RFRBoost, scalar, i.i.d.", RFRBOOST),
    "rfrboost-swim": Look("RFRBoost", RFRBOOST),
    "rfrboost-iid": Look("RFRBoost, i.i.d.", RFRBOOST),
    "xgboost": Look("XGBoost", TREES),
    "lightgbm": Look("LightGBM", TREES),
    "catboost": Look("CatBoost", TREES),
    "hist-gradient-boosting": Look("HistGradientBoosting", TREES),
    "mlp": Look("E2E MLP ResNet", NETWORK),
    "rfnn-swim": Look("RFNN", ONE_LAYER),
    "rfnn-iid": Look("RFNN, i.i.d.", ONE_LAYER),
    "ridge": Look("Ridge regression", LINEAR),
    "logistic": Look("Logistic regression", LINEAR),
}
# The published models that ``replay`` does not refit.
_BASELINES = {
    ("regression", "XGBoostRegressor"): "xgboost",
    ("classification", "XGBoostClassifier"): "xgboost",
    ("regression", "End2End_cpu"): "mlp",
    ("classification", "End2End_cpu"): "mlp",
}


def look(model: str) -> Look:
    """Label and family of a model; a model that is not in ``LOOKS`` is labelled by its name."""
    return LOOKS.get(model, Look(model, OTHER))


def label(model: str) -> str:
    """The printed label of a model."""
    return look(model).label


def in_order(models: list[str]) -> list[str]:
    """The models in the order of ``LOOKS``, then the others by name."""
    known = list(LOOKS)
    return sorted(models, key=lambda m: (known.index(m) if m in known else len(known), m))


def with_our_names(published: pd.DataFrame) -> pd.DataFrame:
    """The published runs with our model names, so that later steps treat them like our runs."""
    ours = {(variant.task, variant.published): variant.name for variant in VARIANTS} | _BASELINES
    pairs = zip(published["task"], published["model"], strict=True)
    return published.assign(model=[ours.get(pair, pair[1]) for pair in pairs])
