"""The models of other libraries, without log output, with a seed and a number of threads.

A library is imported when its first model is built, so that the other models work without it.
"""

import importlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True)
class Source:
    """Where an estimator comes from and how it is set up.

    ``module`` is imported; ``library`` is its name in error messages and ``extra`` the extra that
    installs it. ``settings`` are always passed; ``threads`` is the name of the parameter for the
    number of threads, None if there is no such parameter. ``names_categories`` is true if ``fit``
    has to be told which columns are categories.
    """

    module: str
    library: str
    extra: str
    settings: dict[str, Any] = field(default_factory=dict)
    threads: str | None = None
    names_categories: bool = False


XGBOOST = Source(
    "xgboost", "xgboost", "experiments", {"enable_categorical": True}, threads="n_jobs"
)
LIGHTGBM = Source("lightgbm", "lightgbm", "experiments", {"verbosity": -1}, threads="n_jobs")
# Without allow_writing_files=False CatBoost writes a folder of logs to the working directory.
CATBOOST = Source(
    "catboost",
    "catboost",
    "experiments",
    {"verbose": False, "allow_writing_files": False},
    threads="thread_count",
    names_categories=True,
)
# Early stopping would hold out rows that the other models train on. It has no parameter for
# threads; the worker process limits them.
HISTOGRAM = Source("sklearn.ensemble", "sklearn", "experiments", {"early_stopping": False})
MLP = Source("experiments.models.mlp", "torch", "torch")
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


def baseline(
    estimator: str, parameters: dict[str, Any], random_state: int, threads: int = 1
) -> "BaseEstimator":
    """The unfitted estimator of another library."""
    from sklearn.base import is_classifier

    from experiments.models.coded import CodedClassifier
    from experiments.models.frames import FrameReader

    source = SOURCES[estimator]
    if source is MLP:
        _set_torch_threads(threads)
    make = getattr(importlib.import_module(source.module), estimator)
    settings = source.settings | ({source.threads: threads} if source.threads else {})
    model = make(random_state=random_state, **settings, **parameters)
    reader = FrameReader(model, source.names_categories)
    return CodedClassifier(reader) if is_classifier(model) else reader


def _set_torch_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
