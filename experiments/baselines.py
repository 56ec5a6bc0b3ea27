"""The models of other libraries, each on one thread, quiet and with its seed.

A library is imported when its first model is built, so that the others work without it.
"""

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Source:
    """Where an estimator comes from, and the settings it always gets."""

    module: str
    library: str
    extra: str
    settings: dict[str, Any] = field(default_factory=dict)


XGBOOST = Source("xgboost", "xgboost", "experiments", {"n_jobs": 1})
LIGHTGBM = Source("lightgbm", "lightgbm", "experiments", {"n_jobs": 1, "verbosity": -1})
# CatBoost would leave a folder of logs in the working directory.
CATBOOST = Source(
    "catboost",
    "catboost",
    "experiments",
    {"thread_count": 1, "verbose": False, "allow_writing_files": False},
)
# Early stopping would hold out rows that the other models train on. The threads of this one
# are limited by the worker, it has no setting for them.
HISTOGRAM = Source("sklearn.ensemble", "sklearn", "experiments", {"early_stopping": False})
MLP = Source("experiments.mlp", "torch", "torch")

SOURCES: dict[str, Source] = {
    "XGBRegressor": XGBOOST,
    "XGBClassifier": XGBOOST,
    "LGBMRegressor": LIGHTGBM,
    "LGBMClassifier": LIGHTGBM,
    "CatBoostRegressor": CATBOOST,
    "CatBoostClassifier": CATBOOST,
    "HistGradientBoostingRegressor": HISTOGRAM,
    "HistGradientBoostingClassifier": HISTOGRAM,
    "MLPResNetRegressor": MLP,
    "MLPResNetClassifier": MLP,
}


def baseline(estimator: str, parameters: dict[str, Any], random_state: int) -> "BaseEstimator":
    """The unfitted estimator of another library."""
    from sklearn.base import is_classifier

    from experiments.coded import CodedClassifier

    source = SOURCES[estimator]
    if source is MLP:
        _one_torch_thread()
    make = getattr(importlib.import_module(source.module), estimator)
    model = make(random_state=random_state, **source.settings, **parameters)
    return CodedClassifier(model) if is_classifier(model) else model


def _one_torch_thread() -> None:
    import torch

    torch.set_num_threads(1)
