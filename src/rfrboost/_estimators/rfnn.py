"""The single-layer baselines: random features and a linear head."""

from typing import Any, ClassVar

from rfrboost._estimators.classifier import NetworkClassifier
from rfrboost._estimators.options.constraints import (
    FEATURE_CONSTRAINTS,
    NONNEGATIVE,
    REGRESSION_CONSTRAINTS,
    WIDTH,
)
from rfrboost._estimators.parameters import Parameters
from rfrboost._estimators.regressor import NetworkRegressor
from rfrboost._model.losses import Loss

RFNN_CONSTRAINTS: dict[str, list[Any]] = {
    **FEATURE_CONSTRAINTS,
    "n_features": [WIDTH],
    "l2_head": [NONNEGATIVE],
    "random_state": ["random_state"],
}


class RFNNRegressor(NetworkRegressor):
    """A random feature neural network: ridge regression on random features of x.

    RFRBoost without layers, the baseline it must beat; also a fast model in its own right.

    Parameters
    ----------
    n_features : int, default=512
        How many random features.
    features, feature_scale, pair_sampling, activation
        The random features, as in :class:`RFRBoostRegressor`.
    loss, quantile
        The loss of the head, as in :class:`RFRBoostRegressor`.
    l2_head : float, default=1e-3
        λ in (1/n) Σ w_i‖y_i − Wᵀf(x_i) − b‖² + λ‖W‖².
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    network_ : Network
        The fitted model: frozen arrays.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RFNN_CONSTRAINTS,
        **REGRESSION_CONSTRAINTS,
    }

    def __init__(
        self,
        n_features: int = 512,
        *,
        features: Any = "swim",
        feature_scale: float = 0.5,
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        loss: str | Loss = "squared_error",
        quantile: Any = 0.5,
        l2_head: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.features = features
        self.feature_scale = feature_scale
        self.pair_sampling = pair_sampling
        self.activation = activation
        self.loss = loss
        self.quantile = quantile
        self.l2_head = l2_head
        self.random_state = random_state

    def _parameters(self) -> Parameters:
        # A network without layers, whose first representation is the random features.
        return Parameters(
            n_layers=0,
            loss=self.loss,
            quantile=self.quantile,
            initial=self.features,
            hidden_dim=self.n_features,
            feature_scale=self.feature_scale,
            pair_sampling=self.pair_sampling,
            activation=self.activation,
            l2_head=self.l2_head,
            random_state=self.random_state,
        )


class RFNNClassifier(NetworkClassifier):
    """A random feature neural network: logistic regression on random features of x.

    Parameters
    ----------
    n_features : int, default=512
        How many random features.
    features, feature_scale, pair_sampling, activation
        The random features, as in :class:`RFRBoostRegressor`.
    l2_head : float, default=1e-3
        λ in (1/n) Σ w_i·log_loss + λ‖W‖².
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,) or (n_labels, 2)
        The class labels, sorted; of several labels per row, 0 and 1 for each of them.
    network_ : Network
        The fitted model: frozen arrays.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = RFNN_CONSTRAINTS

    def __init__(
        self,
        n_features: int = 512,
        *,
        features: Any = "swim",
        feature_scale: float = 0.5,
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        l2_head: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.features = features
        self.feature_scale = feature_scale
        self.pair_sampling = pair_sampling
        self.activation = activation
        self.l2_head = l2_head
        self.random_state = random_state

    def _parameters(self) -> Parameters:
        return Parameters(
            n_layers=0,
            initial=self.features,
            hidden_dim=self.n_features,
            feature_scale=self.feature_scale,
            pair_sampling=self.pair_sampling,
            activation=self.activation,
            l2_head=self.l2_head,
            random_state=self.random_state,
        )
