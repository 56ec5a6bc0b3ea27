"""What models are called: our short names, the published ones, and what a reader sees."""

from dataclasses import dataclass

import pandas as pd

from experiments.published import VARIANTS

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
    """How a model appears: its label, and the family that gives its colour."""

    label: str
    family: str


# In the order of the paper's summary tables: tables and figures keep it.
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

# The published models that are not among the replayed variants.
_BASELINES = {
    ("regression", "XGBoostRegressor"): "xgboost",
    ("classification", "XGBoostClassifier"): "xgboost",
    ("regression", "End2End_cpu"): "mlp",
    ("classification", "End2End_cpu"): "mlp",
}


def look(model: str) -> Look:
    """How a model appears; one that is not in the list goes under its own name."""
    return LOOKS.get(model, Look(model, OTHER))


def label(model: str) -> str:
    """What a reader sees for a model."""
    return look(model).label


def in_order(models: list[str]) -> list[str]:
    """These models as tables and figures list them, unlisted ones last."""
    known = list(LOOKS)
    return sorted(models, key=lambda m: (known.index(m) if m in known else len(known), m))


def with_our_names(published: pd.DataFrame) -> pd.DataFrame:
    """The published runs with our model names, so that every later step takes either kind."""
    ours = {(variant.task, variant.published): variant.name for variant in VARIANTS} | _BASELINES
    pairs = zip(published["task"], published["model"], strict=True)
    return published.assign(model=[ours.get(pair, pair[1]) for pair in pairs])
