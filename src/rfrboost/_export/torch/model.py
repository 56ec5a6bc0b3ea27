"""A fitted estimator as a PyTorch module: encoded rows in, predictions out."""

import numpy as np
from torch import Tensor, nn

from rfrboost._estimators.fitted import Fitted
from rfrboost._export.torch.features import tensor
from rfrboost._export.torch.losses import checked, predicted
from rfrboost._export.torch.network import NetworkModule


class PredictionModule(nn.Module):
    """Predictions of a model, in double precision unless it is told otherwise.

    Called with rows as ``encode`` returns them, it returns what ``predict`` does in regression,
    with a column for each output, and what ``predict_proba`` does in classification. ``network``
    returns raw predictions: logits, or numbers in the units of the fit.
    """

    shift: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, fitted: Fitted) -> None:
        super().__init__()
        checked(fitted.loss)
        self.loss = fitted.loss
        self.network = NetworkModule(fitted.network)
        scale = fitted.targets.scale
        self.register_buffer("shift", tensor(scale.shift))
        self.register_buffer("scale", tensor(scale.scale))
        bounds = fitted.targets.bounds
        low, high = (-np.inf, np.inf) if bounds is None else bounds
        self.register_buffer("low", tensor(low))
        self.register_buffer("high", tensor(high))

    def forward(self, X: Tensor) -> Tensor:
        y = predicted(self.loss, self.network(X)).clamp(self.low, self.high)
        return y * self.scale + self.shift
