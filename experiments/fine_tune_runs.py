"""One run of the ``fine-tune`` command: a start, every learning rate, the score of every epoch."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from experiments.jobs import Job
from experiments.large_tables import LARGE_TABLES, prepare
from experiments.libraries import versions
from experiments.models import Recipe
from experiments.protocols import Fold, load_rows
from experiments.scoring import METRICS, Scores

if TYPE_CHECKING:
    from rfrboost._export.torch.network import NetworkModule

BOOSTED, RANDOM = "boosted", "random"
STARTS = (BOOSTED, RANDOM)
HELD_OUT = 0.2
BATCH_ROWS = 128
LEARNING_RATES = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
#: a residual network of usual proportions; steps become of full rank before they are trained
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
    """What a job depends on, as its result file keeps it."""
    return Recipe(ESTIMATORS[task], {**SHAPE, "n_epochs": n_epochs, "n_rows": n_rows or 0})


@dataclass(frozen=True)
class Run:
    """One training: its learning rate, held-out loss and test score after every epoch."""

    rate: float
    held_out: list[float]
    curve: list[float]
    train_score: float

    @property
    def best(self) -> int:
        """The epoch with the least held-out loss."""
        return int(np.argmin(self.held_out))


def tune(job: Job, data: Path) -> Scores:
    """All learning rates from one start, and the one that held-out rows choose."""
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
            "versions": versions(),
        },
    )


def rows_for(job: Job, data: Path) -> Fold:
    """The fold of a job; large tables have one."""
    if job.dataset in LARGE_TABLES:
        return prepare(LARGE_TABLES[job.dataset], data)
    return load_rows(job.protocol, job.dataset, data).fold(job.fold)


def cut(n: int, most: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Training rows to fit on, and to choose by."""
    order = np.random.default_rng(seed).permutation(n)[: most or n]
    n_held = round(HELD_OUT * len(order))
    return order[n_held:], order[:n_held]


def boosted(estimator: str, fold: Fold, rows: NDArray[np.intp], seed: int) -> Any:
    """The network that RFRBoost makes of the rows."""
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
    held_out, curve = [], []

    def watch(epoch: int, trained: "NetworkModule", loss: float) -> None:
        held_out.append(loss)
        curve.append(METRICS[task](fold.y_test, predictions(model, trained, X_test)))

    parts = ("features", "steps", "head")
    training = Training(n_epochs, BATCH_ROWS, rate, 0.0, n_epochs, parts, job.fold)
    train(module, model._loss, rows, chosen_by, training, watch)
    seen = METRICS[task](fold.y_train[fit], predictions(model, module, rows.X))
    return Run(rate, held_out, curve, seen)


def predictions(model: Any, module: "NetworkModule", X: Any) -> NDArray:
    """What the model predicts with the module in place of its network."""
    import torch

    with torch.no_grad():
        raw = torch.cat([module(rows) for rows in X.split(4096)]).double().numpy()
    if hasattr(model, "classes_"):
        return model._labels(model._loss.predict(raw))
    return model._predictions(raw)
