"""RFRBoostClassifier: its parameters and their documentation."""

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from rfrboost._estimators.intervals import TrustedClassifier
from rfrboost._estimators.parameters import BOOST_CONSTRAINTS, recipe_for
from rfrboost._model.losses import Loss
from rfrboost._paper.boost import Recipe


class RFRBoostClassifier(TrustedClassifier):
    """Random feature representation boosting for classification.

    With its defaults an ensemble that needs no tuning, as :class:`RFRBoostRegressor` describes.

    With ``n_layers`` a number it is Algorithm 2 with the logistic loss: one logit for two classes,
    softmax for more. Each layer regresses Y − p on random features, searches along that direction,
    and refits the head

        (1/n) Σ w_i·log_loss(W_tᵀΦ_t(x_i) + b, y_i) + l2_head·‖W_t‖²

    (scikit-learn's C is 1/(2·n·l2_head)). X should then be standardised.

    Parameters
    ----------
    n_layers : int or "auto", default="auto"
        T, or the ensemble. With 0 the model is logistic regression on Φ₀.
    strategy : {"gradient"}, default="gradient"
        Algorithm 2; the greedy closed forms exist for squared error only.
    step_matrix : {"dense"}, default="dense"
        The form of A_t.
    loss : {"log_loss"}, default="log_loss"
    features, n_features, feature_scale, pair_sampling, activation
        The random features f_t, as in :class:`RFRBoostRegressor`.
    initial, initial_scale, hidden_dim
        Φ₀ and its width D, as in :class:`RFRBoostRegressor`.
    learning_rate, l2_head, l2_step
        η, λ for W_t and λ for A_t, as in :class:`RFRBoostRegressor`.
    normalize, metric, preprocess, n_bags, max_seconds
        As in :class:`RFRBoostRegressor`.
    sample_splitting, random_state, warm_start, verbose
        As in :class:`RFRBoostRegressor`.

    Attributes
    ----------
    classes_ : ndarray
        The class labels, sorted.
    oof_prediction_ : ndarray of shape (n_samples, n_classes)
        Of an ensemble: for every training row the probabilities by what was fitted without it.
    oof_score_ : float
        Their accuracy.
    network_, history_, feature_importances_, n_features_in_, feature_names_in_
        As in :class:`RFRBoostRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfrboost import RFRBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RFRBoostClassifier(random_state=0).fit(X, y).oof_score_ > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        "strategy": [StrOptions({"gradient"})],
        "step_matrix": [StrOptions({"dense"})],
        "loss": [StrOptions({"log_loss"})],
    }

    def __init__(
        self,
        n_layers: int | str = "auto",
        *,
        strategy: str = "gradient",
        step_matrix: str = "dense",
        loss: str = "log_loss",
        features: Any = "auto",
        n_features: int | tuple[int, int] | str = "auto",
        feature_scale: float | str = "auto",
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        initial: str = "identity",
        initial_scale: float | None = None,
        hidden_dim: int | None = None,
        learning_rate: float | tuple[float, float] | str = "auto",
        l2_head: float | str = "auto",
        l2_step: float | str = "auto",
        normalize: bool = False,
        metric: str = "auto",
        preprocess: str | None = "auto",
        n_bags: int = 5,
        max_seconds: float | None = None,
        sample_splitting: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_layers = n_layers
        self.strategy = strategy
        self.step_matrix = step_matrix
        self.loss = loss
        self.features = features
        self.n_features = n_features
        self.feature_scale = feature_scale
        self.pair_sampling = pair_sampling
        self.activation = activation
        self.initial = initial
        self.initial_scale = initial_scale
        self.hidden_dim = hidden_dim
        self.learning_rate = learning_rate
        self.l2_head = l2_head
        self.l2_step = l2_step
        self.normalize = normalize
        self.metric = metric
        self.preprocess = preprocess
        self.n_bags = n_bags
        self.max_seconds = max_seconds
        self.sample_splitting = sample_splitting
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _recipe(self, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int) -> Recipe:
        return recipe_for(self, loss, scale, n_rows, n_columns, seed)
