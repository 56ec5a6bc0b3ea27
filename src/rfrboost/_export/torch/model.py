"""A fitted estimator as a PyTorch module: encoded rows in, predictions out."""

from typing import Any

from sklearn.base import is_classifier
from torch import Tensor, nn

from rfrboost._export.torch.features import tensor
from rfrboost._export.torch.losses import known, predicted
from rfrboost._export.torch.network import NetworkModule
from rfrboost._rows.units import NO_SCALE


class PredictionModule(nn.Module):
    """Predictions of a model, in double precision unless it is told otherwise.

    Called with rows as ``encode`` gives them, it gives what ``predict`` gives for regression, one
    column an output, and what ``predict_proba`` gives for classification. ``network`` gives raw
    predictions: logits, or numbers in the units of the fit.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        known(estimator._loss)
        self.loss = estimator._loss
        self.network = NetworkModule(estimator.network_)
        scale = NO_SCALE if is_classifier(estimator) else estimator._target_scale
        self.register_buffer("shift", tensor(scale.shift))
        self.register_buffer("scale", tensor(scale.scale))

    def forward(self, X: Tensor) -> Tensor:
        return predicted(self.loss, self.network(X)) * self.scale + self.shift
