"""Seconds of fits and predictions, of their floors, of other libraries and of the authors' code."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import rfrboost._paper.heads as convex
from benchmarks.cases import L2, Case
from benchmarks.floor import best_of, fit_floor, predict_floor


@dataclass(frozen=True)
class Measured:
    """Seconds of a case: fit, prediction, and their floors."""

    case: Case
    threads: int
    fit: float
    fit_floor: float
    predict: float
    predict_floor: float

    @property
    def fit_ratio(self) -> float:
        return self.fit / self.fit_floor

    @property
    def predict_ratio(self) -> float:
        return self.predict / self.predict_floor


@contextmanager
def counted_evaluations() -> Iterator[list[int]]:
    """Count the evaluations of risk and gradient that heads make within a with-block."""
    count = [0]
    original = convex.risk_and_gradient

    def counting(rows, loss, head):
        count[0] += 1
        return original(rows, loss, head)

    convex.risk_and_gradient = counting
    try:
        yield count
    finally:
        convex.risk_and_gradient = original


def measure(case: Case, threads: int) -> Measured:
    """The seconds of a case on ``threads`` threads."""
    X, y = case.data()
    with threadpool_limits(threads):
        model = case.model()
        with counted_evaluations() as count:
            model.fit(X, y)
        evaluations = count[0]
        fit = fit_floor(model.network_, case.n, case.columns, evaluations)
        prediction = predict_floor(model.network_, case.n, case.columns)
        # In turn, so that other load on the machine affects all alike.
        seconds = [
            [
                best_of(2, call)
                for call in (
                    lambda: case.model().fit(X, y),
                    fit,
                    lambda: model.predict(X),
                    prediction,
                )
            ]
            for _ in range(case.repeats)
        ]
    return Measured(case, threads, *(float(s) for s in np.min(seconds, axis=0)))


def peer_seconds(case: Case, threads: int) -> dict[str, float]:
    """Fit seconds of other libraries with default parameters on the same rows, by name."""
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import LGBMClassifier, LGBMRegressor
    from xgboost import XGBClassifier, XGBRegressor

    X, y = case.data()
    kinds = {
        "XGBoost": (XGBRegressor, XGBClassifier, {"n_jobs": threads}),
        "LightGBM": (LGBMRegressor, LGBMClassifier, {"n_jobs": threads, "verbose": -1}),
        "CatBoost": (
            CatBoostRegressor,
            CatBoostClassifier,
            {"thread_count": threads, "verbose": 0, "allow_writing_files": False},
        ),
    }
    return {
        name: best_of(1, lambda: (pair[1] if case.classes else pair[0])(**arguments).fit(X, y))  # noqa: B023
        for name, (*pair, arguments) in kinds.items()
    }


def beside_reference(case: Case, path: str, rounds: int = 5) -> tuple[float, float]:
    """Seconds of our fit and of the authors' code in ``path``, on one thread, in turn."""
    X, y = case.data()
    theirs = reference_fit(case, path, X, y)
    pairs = []
    with threadpool_limits(1):
        for _ in range(rounds):
            pairs.append((best_of(1, lambda: case.model().fit(X, y)), best_of(1, theirs)))
    ours, reference = np.min(pairs, axis=0)
    return float(ours), float(reference)


def reference_fit(case: Case, path: str, X: NDArray, y: NDArray) -> Callable[[], object]:
    """A function that fits by the authors' code with the settings of the case, in float32."""
    import torch

    sys.path.insert(0, os.path.abspath(path))
    from models import random_feature_representation_boosting as reference

    torch.set_num_threads(1)
    inputs = torch.from_numpy(X.astype(np.float32))
    shared = {
        "in_dim": case.columns,
        "n_layers": case.n_layers,
        "l2_ghat": L2,
        "boost_lr": 1.0,
        "feature_type": "SWIM",
        "upscale_type": "identity",
        "use_batchnorm": False,
    }
    if case.classes:
        targets = torch.from_numpy(np.eye(case.classes, dtype=np.float32)[y])
        kind = reference.GradientRFRBoostClassifier
        arguments = shared | {"n_classes": case.classes, "l2_cls": L2}
    else:
        targets = torch.from_numpy(((y - y.mean()) / y.std()).astype(np.float32)[:, None])
        greedy = case.strategy == "greedy"
        kind = reference.GreedyRFRBoostRegressor if greedy else reference.GradientRFRBoostRegressor
        arguments = shared | {"out_dim": 1, "l2_reg": L2}
    return lambda: kind(**arguments).fit(inputs, targets)
