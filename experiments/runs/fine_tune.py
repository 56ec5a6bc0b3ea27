"""One job of the ``fine-tune`` command: training a network end to end from one start.

The network is that of a fitted RFRBoost model, or the same network with random weights. It is
trained with each of six learning rates; the held-out loss chooses the rate and the epoch, and the
test score is recorded after every epoch. Needs PyTorch.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments.data.large_tables import LARGE_TABLES, prepare
from experiments.data.protocols import Fold, load_rows
from experiments.models.recipes import Recipe
from experiments.models.scoring import METRICS, Scores
from experiments.runs.jobs import Job

if TYPE_CHECKING:
    from rfrboost._export.torch.network import NetworkModule

BOOSTED = "boosted"
RANDOM = "random"
STARTS = (BOOSTED, RANDOM)
# The share of the training rows that chooses learning rate and epoch.
HELD_OUT = 0.2
# Rows of one step of Adam.
BATCH_ROWS = 128
LEARNING_RATES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
# A residual network of usual proportions. Before training, its steps A_t become full-rank matrices.
SHAPE = {
    "n_layers": 3,
    "initial": "swim",
    "hidden_dim": 128,
    "n_features": (128, 128),
    "l2_head": 1e-3,
    "l2_step": 1e-3,
}
ESTIMATORS = {"regression": "RFRBoostRegressor", "classification": "RFRBoostClassifier"}


def recipe_for(task: str, n_epochs: int, n_rows: int | None) -> Recipe:
    """Everything that a job's result depends on, as a recipe."""
    return Recipe(ESTIMATORS[task], {**SHAPE, "n_epochs": n_epochs, "n_rows": n_rows or 0})


@dataclass(frozen=True)
class Run:
    """One training: learning rate, and held-out loss and test score (``curve``) by epoch."""

    rate: float
    held_out: list[float]
    curve: list[float]
    train_score: float

    @property
    def best(self) -> int:
        """The epoch with the least held-out loss."""
        return int(np.argmin(self.held_out))


def tune(job: Job, data: Path) -> Scores:
    """Train with each learning rate from the job's start; the held-out rows choose one."""
    parameters = job.recipe.parameters
    task = next(t for t, name in ESTIMATORS.items() if name == job.recipe.estimator)
    fold = rows_for(job, data)
    fit, held = cut(len(fold.y_train), int(parameters["n_rows"]), job.fold)
    begin = time.perf_counter()
    model = boosted(job.recipe.estimator, fold, fit, job.fold)
    runs = [
        one_run(model, fold, fit, held, job, rate, int(parameters["n_epochs"]), task)
        for rate in LEARNING_RATES
    ]
    best = min(runs, key=lambda r: min(r.held_out))
    return Scores(
        train_score=best.train_score,
        test_score=best.curve[best.best],
        fit_seconds=time.perf_counter() - begin,
        predict_seconds=0.0,
        details={
            "task": task,
            "curve": best.curve,
            "held_out": best.held_out,
            "best_epoch": best.best,
            "learning_rate": best.rate,
        },
    )


def rows_for(job: Job, data: Path) -> Fold:
    """The fold of a job; a large table has a single split."""
    if job.dataset in LARGE_TABLES:
        return prepare(LARGE_TABLES[job.dataset], data)
    return load_rows(job.protocol, job.dataset, data).fold(job.fold)


def cut(n: int, most: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the rows to fit on and of the held-out rows, of at most ``most`` rows."""
    order = np.random.default_rng(seed).permutation(n)[: most or n]
    n_held = round(HELD_OUT * len(order))
    return order[n_held:], order[:n_held]


def boosted(estimator: str, fold: Fold, rows: NDArray[np.intp], seed: int) -> Any:
    """RFRBoost fitted on the rows."""
    import rfrboost

    model = getattr(rfrboost, estimator)(**SHAPE, random_state=seed)
    return model.fit(fold.X_train[rows], fold.y_train[rows])


def one_run(
    model: Any,
    fold: Fold,
    fit: NDArray[np.intp],
    held: NDArray[np.intp],
    job: Job,
    rate: float,
    n_epochs: int,
    task: str,
) -> Run:
    """Train from the job's start with one learning rate."""
    import torch

    from rfrboost._export.torch.network import NetworkModule, full_rank
    from rfrboost._export.torch.training import Training, train
    from rfrboost.torch import rows_of

    rows, chosen_by = (
        rows_of(model, fold.X_train[i], fold.y_train[i], None).to("cpu") for i in (fit, held)
    )
    X_test = torch.tensor(fold.X_test, dtype=torch.float32)
    module = NetworkModule(full_rank(model.network_)).float()
    if job.model == RANDOM:
        torch.manual_seed(job.fold)
        module.reset_parameters()
    held_out: list[float] = []
    curve: list[float] = []

    def watch(epoch: int, trained: "NetworkModule", loss: float) -> None:
        held_out.append(loss)
        curve.append(METRICS[task](fold.y_test, predictions(model, trained, X_test)))

    parts = ("features", "steps", "head")
    training = Training(n_epochs, BATCH_ROWS, rate, 0.0, n_epochs, parts, job.fold)
    train(module, model._model().loss, rows, chosen_by, training, watch)
    seen = METRICS[task](fold.y_train[fit], predictions(model, module, rows.X))
    return Run(rate, held_out, curve, seen)


def predictions(model: Any, module: "NetworkModule", X: Any) -> NDArray:
    """The model's predictions with ``module`` in place of its network."""
    import torch
    from sklearn.base import is_classifier

    with torch.no_grad():
        raw = torch.cat([module(rows) for rows in X.split(4096)]).double().numpy()
    fitted = model._model()
    predicted = fitted.targets.predictions(fitted.loss, raw)
    return model.classes_[np.argmax(predicted, axis=1)] if is_classifier(model) else predicted
