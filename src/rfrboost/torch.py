"""Fitted models in PyTorch: ``fine_tune`` trains one end to end, and gives an estimator back.

``model.to_torch()`` gives the module itself. Needs PyTorch (``pip install 'rfrboost[torch]'``).
"""

from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

try:
    import torch
except ImportError as _error:
    raise ImportError("rfrboost.torch needs PyTorch: pip install 'rfrboost[torch]'.") from _error

from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.problem import checked_weights, scaled_weights
from rfrboost._export.torch.network import NetworkModule, full_rank
from rfrboost._export.torch.training import PARTS, Rows, Training, train
from rfrboost._rows.chunks import NEGLIGIBLE_WEIGHT

__all__ = ["fine_tune"]


Model = TypeVar("Model", bound=NetworkEstimator)


def fine_tune(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    y_val: Any = None,
    validation_fraction: float = 0.1,
    n_epochs: int = 30,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    patience: int = 10,
    train_parts: tuple[str, ...] = ("features", "steps", "head"),
    full_rank_steps: bool = False,
    device: str = "cpu",
    random_state: Any = None,
) -> Model:
    """Train a fitted model end to end by Adam.

    The learning rate rises for an epoch and then falls along half a cosine.

    Parameters
    ----------
    model : a fitted regressor or classifier
        Left as it is.
    X, y, sample_weight
        As in ``fit``; labels must be among the model's classes.
    X_val, y_val : array-like, optional
        Rows to stop by. Without them a part of X is held out, which is of less use if the model
        was fitted on it: it has seen those rows.
    validation_fraction : float, default=0.1
        That part.
    n_epochs, batch_size : int
        Passes over the rows at most, and the rows of one step.
    learning_rate, weight_decay : float
        Adam's (with weight decay apart from the gradient).
    patience : int, default=10
        Epochs without a lower held-out loss after which it ends.
    train_parts : tuple of {"features", "steps", "head", "centres"}
        What is trained: the weights of random features, A_t, the last head, the centres of radial
        features.
    full_rank_steps : bool, default=False
        Whether A_t, which the fit makes of as low a rank as there are outputs, may become of full
        rank.
    device : str, default="cpu"
        Where to train, in single precision.
    random_state : int, RandomState or None
        Draws held-out rows and batches.

    Returns
    -------
    an estimator of the same class
        With the parameters of the best epoch, the start included, and ``fine_tuning_``, the
        held-out loss of every epoch. It has one head, which ``staged_predict`` uses after every
        layer.
    """
    fitted = model._model()
    check_parts(train_parts)
    random = check_random_state(random_state)
    rows, held = shared_out(
        rows_of(model, X, y, sample_weight),
        None if X_val is None else rows_of(model, X_val, y_val, None),
        validation_fraction,
        random,
    )
    training = Training(
        n_epochs,
        batch_size,
        learning_rate,
        weight_decay,
        patience,
        train_parts,
        int(random.randint(2**31 - 1)),
    )
    network = full_rank(fitted.network) if full_rank_steps else fitted.network
    module = NetworkModule(network).to(device, torch.float32)
    losses: list[float] = []
    best = train(
        module,
        fitted.loss,
        rows.to(device),
        held.to(device),
        training,
        lambda epoch, _, held_out: losses.append(held_out),
    )
    return with_network(model, module if best else None, losses)


def check_parts(parts: tuple[str, ...]) -> None:
    """Refuse unknown names."""
    unknown = set(parts) - set(PARTS)
    if unknown or not parts:
        raise ValueError(f"train_parts should be some of {', '.join(PARTS)}, not {parts!r}.")


def rows_of(model: NetworkEstimator, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows as the network sees them, and targets as its loss does."""
    encoded = model.encode(X)
    Y = model._model().targets.encode(y)
    if len(Y) != len(encoded):
        raise ValueError(f"X has {len(encoded)} rows, but y has {len(Y)}.")
    w = checked_weights(sample_weight, encoded)
    w = np.ones(len(Y)) if w is None else scaled_weights(w)
    present = w > NEGLIGIBLE_WEIGHT
    arrays = (encoded[present], Y[present], w[present])
    return Rows(*(torch.tensor(np.asarray(a, dtype=float)) for a in arrays))


def shared_out(rows: Rows, held: Rows | None, fraction: float, random: Any) -> tuple[Rows, Rows]:
    """Rows to train on and rows to stop by."""
    if held is not None:
        return rows, held
    n = len(rows.X)
    order = torch.as_tensor(random.permutation(n))
    cut = min(max(round(n * fraction), 1), n - 1)
    return rows.chosen(order[cut:]), rows.chosen(order[:cut])


def with_network(model: Model, module: NetworkModule | None, losses: list[float]) -> Model:
    """A copy of the model around another network, or, without one, around its own.

    What the fit knew of its own rows (out-of-fold predictions, importances, intervals) is not true
    of another network, and is left out.
    """
    fitted = replace(model._model(), fine_tuning=losses)
    if module is not None:
        network = module.double().numpy()
        # The mean is no parameter, and keeps the digits that training does without.
        network = replace(network, mean=fitted.network.mean)
        fitted = replace(
            fitted,
            network=network,
            oof_prediction=None,
            oof_score=None,
            shares=None,
            shuffled=None,
            calibration=None,
        )
    tuned = copy(model)
    tuned._fitted = fitted
    return tuned
