"""The paper's MLP ResNet, trained end to end, as scikit-learn estimators.

PyTorch is imported at the first fit, so that everything else works without it.
"""

from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from experiments.requests import require


class MLPResNet(BaseEstimator):
    """Parameters, training and representations of both the regressor and the classifier.

    Parameters
    ----------
    hidden_dim : int or None
        D, the width of Φ; the up-scaling layer [dense, batch norm, activation] maps the inputs
        to it. None: no such layer; the blocks act on the inputs.
    bottleneck_dim : int
        The width inside a residual block.
    n_blocks : int
        T, the number of residual blocks.
    lr, end_lr_factor : float
        Adam's learning rate, and the fraction of it that remains at the end of the half cosine.
    n_epochs, batch_size : int
        Passes over the rows, and the number of rows of one step.
    weight_decay : float
        Adam's ℓ₂ penalty.
    activation : {"relu", "tanh"}
    random_state : int, RandomState or None
        The same seed gives the same network (on one machine, with the same number of threads).
    """

    def __init__(
        self,
        hidden_dim: int | None = 128,
        bottleneck_dim: int = 512,
        n_blocks: int = 3,
        lr: float = 1e-3,
        end_lr_factor: float = 0.01,
        n_epochs: int = 30,
        weight_decay: float = 1e-5,
        batch_size: int = 256,
        activation: str = "relu",
        random_state: Any = None,
    ) -> None:
        self.hidden_dim = hidden_dim
        self.bottleneck_dim = bottleneck_dim
        self.n_blocks = n_blocks
        self.lr = lr
        self.end_lr_factor = end_lr_factor
        self.n_epochs = n_epochs
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.activation = activation
        self.random_state = random_state

    def representations(self, X: Any) -> list[NDArray]:
        """Φ_0, …, Φ_T of the rows, each (n, D): before the first block and after each block."""
        network = self._network()
        stages = _resnet().stages(network, self._tensor(validate_data(self, X, reset=False)))
        return [stage.numpy() for stage in stages]

    def _fit(self, X: NDArray, Y: NDArray, n_outputs: int, loss: str) -> None:
        """Train on targets in the shape and type that ``loss``, a function of torch, takes."""
        resnet = _resnet()
        import torch
        from torch.nn import functional

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        shape = resnet.Shape(
            n_inputs=X.shape[1],
            hidden_dim=self.hidden_dim,
            bottleneck_dim=self.bottleneck_dim,
            n_blocks=self.n_blocks,
            n_outputs=n_outputs,
            activation=self.activation,
        )
        training = resnet.Training(
            lr=self.lr,
            end_lr_factor=self.end_lr_factor,
            n_epochs=self.n_epochs,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
        )
        targets = torch.as_tensor(Y)
        self.network_ = resnet.trained(
            self._tensor(X), targets, shape, training, getattr(functional, loss), seed
        )

    def _network(self) -> Any:
        check_is_fitted(self, "network_")
        return self.network_

    def _raw(self, X: Any) -> NDArray:
        network = self._network()
        rows = self._tensor(validate_data(self, X, reset=False))
        return _resnet().outputs(network, rows).numpy()

    @staticmethod
    def _tensor(X: NDArray) -> Any:
        import torch

        return torch.tensor(np.asarray(X, dtype=np.float32))


class MLPResNetRegressor(RegressorMixin, MLPResNet):
    """The network with one output and mean squared error; standardise y before."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on X (n, p) and y (n)."""
        X, y = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2)
        self._fit(X, y.astype(np.float32)[:, None], 1, "mse_loss")
        return self

    def predict(self, X: Any) -> NDArray:
        """The predicted targets, of shape (n_samples,)."""
        return self._raw(X)[:, 0]


class MLPResNetClassifier(ClassifierMixin, MLPResNet):
    """The network with cross-entropy: one logit for two classes, else one logit per class."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train on X (n, p) and labels y (n) of any type."""
        X, y = validate_data(self, X, y, ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) == 2:
            targets = codes.astype(np.float32)[:, None]
            self._fit(X, targets, 1, "binary_cross_entropy_with_logits")
        else:
            self._fit(X, codes.astype(np.int64), len(self.classes_), "cross_entropy")
        return self

    def predict_proba(self, X: Any) -> NDArray:
        """Class probabilities, columns in the order of ``classes_``."""
        raw = self._raw(X).astype(np.float64)
        if raw.shape[1] == 1:
            raw = np.hstack([np.zeros_like(raw), raw])
        weights = np.exp(raw - raw.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> NDArray:
        """The most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _resnet() -> ModuleType:
    """The module ``resnet``, imported late because it imports PyTorch."""
    require("torch", "torch", "The MLP ResNet")
    from experiments.models import resnet

    return resnet
