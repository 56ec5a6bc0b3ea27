"""RFRBoostRegressor and RFRBoostClassifier: parameters and their documentation."""

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from rfrboost._boost import Recipe
from rfrboost._classification import NetworkClassifier
from rfrboost._losses import Loss
from rfrboost._parameters import BOOST_CONSTRAINTS, recipe_for
from rfrboost._regression import NetworkRegressor


class RFRBoostRegressor(NetworkRegressor):
    """Random feature representation boosting for regression.

    A residual network Φ_t = Φ_{t−1} + η A_t f_t(x, Φ_{t−1}) is built layer by layer from random
    features f_t. Nothing is trained by gradient descent through the network: A_t and the linear
    head W_t solve convex problems,

        (1/n) Σ w_i ‖y_i − W_tᵀΦ_t(x_i) − b‖² + l2_head·‖W_t‖²

    for the head under squared error, and a regularised least squares for A_t. X should be
    standardised: features are drawn by distances between rows.

    Parameters
    ----------
    n_layers : int, default=6
        T. With 0 the model is linear in Φ₀.
    strategy : {"gradient", "greedy"}, default="gradient"
        "gradient" (Algorithm 2, any loss) fits the functional gradient and searches along it;
        "greedy" (Algorithm 1, squared error) minimises the training objective over A_t.
    step_matrix : {"dense", "diagonal", "scalar"}, default="dense"
        The form of A_t under "greedy". The last two add the features from Φ and from x, each as
        wide as Φ; ``n_features`` then has no effect.
    loss : {"squared_error", "huber", "quantile", "poisson"} or Loss, default="squared_error"
        "huber" is quadratic up to 1.345 robust standard deviations of y. An object derived from
        :class:`rfrboost.Loss` may be passed.
    quantile : float, default=0.5
        The level for ``loss="quantile"``.
    features : {"swim", "gaussian", "uniform", "fourier"} or object, default="swim"
        f_t. "swim" neurons are placed between pairs of training points; "gaussian" ones have
        weights and offsets N(0, scale²/D), "uniform" ones U(±scale/√D), "fourier" are cosines.
        Any scikit-learn transformer, or an object with ``n_rows`` and ``sample`` (see
        :class:`rfrboost.Sampler`), works too.
    n_features : int or (int, int), default=(512, 512)
        p, or how many features from Φ and how many from x. An int is shared out evenly.
    feature_scale : float, default=0.5
        For SWIM the constant c: a neuron's pre-activation is −c and +c at its two points. For
        the others the scale of the weights.
    pair_sampling : {"gradient", "uniform"}, default="gradient"
        SWIM pairs in proportion to ‖Δy‖/‖ΔΦ‖, or uniformly.
    activation : {"tanh", "relu", "sigmoid", "sin", "cos"}, default="tanh"
        σ, for all features but "fourier" and those of one's own.
    initial : {"identity", "swim", "gaussian", "uniform"}, default="identity"
        Φ₀.
    initial_scale : float, default=None
        ``feature_scale`` for Φ₀, where it should differ.
    hidden_dim : int, default=None
        D, the width of Φ, for an ``initial`` other than the identity (None: 512).
    learning_rate : float or (float, float), default=0.5
        η, or (c, s) for the schedule η_t = c·t^(−s) of the regret bound.
    l2_head : float, default=1e-3
        λ for W_t, on the scale of a mean over rows. 0 means none.
    l2_step : float, default=1e-2
        λ for A_t, likewise. Under "greedy" its unit is that of y², as in the paper's objective.
    normalize : bool, default=False
        Standardise Φ after each layer, with the training rows' statistics.
    metric : {"identity", "agop"}, default="identity"
        How distances between inputs are measured where features of x are drawn. "identity" is the
        paper's. "agop" learns it from the model itself: by the average outer product of the
        gradients that the layers so far have, so that inputs that do not matter fade.
    sample_splitting : bool, default=False
        Fit every layer on ⌊n/T⌋ rows of its own, as the regret bound assumes. Equal rows may then
        fall into different parts, so that weights are no longer the same as repeated rows.
    random_state : int, RandomState or None, default=None
        Same seed, same model. What is drawn depends on the rows and their weights, not on their
        order.
    warm_start : bool, default=False
        Let ``fit`` add layers to a fitted model, up to ``n_layers``.
    verbose : int, default=0
        Show a progress bar.

    Attributes
    ----------
    network_ : Network
        The fitted model: frozen arrays.
    history_ : list of dict
        For every layer: ``layer``; ``loss``, the mean training loss (½‖y − ŷ‖² for squared error);
        ``step_length``, α_t for the normalised gradient (greedy: 1, or the scalar A);
        ``gradient_norm``, that of the functional gradient in L₂; ``seconds``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rfrboost import RFRBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), RFRBoostRegressor(n_layers=2, random_state=0))
    >>> model.fit(X[:300], y[:300]).predict(X[300:]).shape
    (142,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        "strategy": [StrOptions({"gradient", "greedy"})],
        "step_matrix": [StrOptions({"dense", "diagonal", "scalar"})],
        "loss": [StrOptions({"squared_error", "huber", "quantile", "poisson"}), Loss],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        n_layers: int = 6,
        *,
        strategy: str = "gradient",
        step_matrix: str = "dense",
        loss: str | Loss = "squared_error",
        quantile: float = 0.5,
        features: Any = "swim",
        n_features: int | tuple[int, int] = (512, 512),
        feature_scale: float = 0.5,
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        initial: str = "identity",
        initial_scale: float | None = None,
        hidden_dim: int | None = None,
        learning_rate: float | tuple[float, float] = 0.5,
        l2_head: float = 1e-3,
        l2_step: float = 1e-2,
        normalize: bool = False,
        metric: str = "identity",
        sample_splitting: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.n_layers = n_layers
        self.strategy = strategy
        self.step_matrix = step_matrix
        self.loss = loss
        self.quantile = quantile
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
        self.sample_splitting = sample_splitting
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _recipe(self, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int) -> Recipe:
        return recipe_for(self, loss, scale, n_rows, n_columns, seed)


class RFRBoostClassifier(NetworkClassifier):
    """Random feature representation boosting for classification.

    Algorithm 2 with the logistic loss: one logit for two classes, softmax for more. Each layer
    regresses Y − p on random features, searches along that direction, and refits the head

        (1/n) Σ w_i·log_loss(W_tᵀΦ_t(x_i) + b, y_i) + l2_head·‖W_t‖²

    (scikit-learn's C is 1/(2·n·l2_head)). X should be standardised.

    Parameters
    ----------
    n_layers : int, default=6
        T. With 0 the model is logistic regression on Φ₀.
    strategy : {"gradient"}, default="gradient"
        Algorithm 2; the greedy closed forms exist for squared error only.
    step_matrix : {"dense"}, default="dense"
        The form of A_t.
    loss : {"log_loss"}, default="log_loss"
    features, n_features, feature_scale, pair_sampling, activation
        The random features f_t, as in :class:`RFRBoostRegressor`.
    initial, initial_scale, hidden_dim
        Φ₀ and its width D, as in :class:`RFRBoostRegressor`.
    learning_rate : float or (float, float), default=0.5
        η, or (c, s) for the schedule η_t = c·t^(−s).
    l2_head : float, default=1e-3
        λ for W_t, on the scale of a mean over rows. 0 means none.
    l2_step : float, default=1e-2
        λ for A_t, likewise.
    normalize, metric, sample_splitting, random_state, warm_start, verbose
        As in :class:`RFRBoostRegressor`.

    Attributes
    ----------
    classes_ : ndarray
        The class labels, sorted.
    network_, history_, n_features_in_, feature_names_in_
        As in :class:`RFRBoostRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfrboost import RFRBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RFRBoostClassifier(n_layers=2, random_state=0).fit(X, y).score(X, y) > 0.95
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
        n_layers: int = 6,
        *,
        strategy: str = "gradient",
        step_matrix: str = "dense",
        loss: str = "log_loss",
        features: Any = "swim",
        n_features: int | tuple[int, int] = (512, 512),
        feature_scale: float = 0.5,
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        initial: str = "identity",
        initial_scale: float | None = None,
        hidden_dim: int | None = None,
        learning_rate: float | tuple[float, float] = 0.5,
        l2_head: float = 1e-3,
        l2_step: float = 1e-2,
        normalize: bool = False,
        metric: str = "identity",
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
        self.sample_splitting = sample_splitting
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _recipe(self, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int) -> Recipe:
        return recipe_for(self, loss, scale, n_rows, n_columns, seed)
