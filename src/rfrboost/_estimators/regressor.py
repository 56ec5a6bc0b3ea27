"""Regressors: targets that are numbers, and ``RFRBoostRegressor`` with its parameters."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions

from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.intervals import check_coverage, intervals_of, with_deviation
from rfrboost._estimators.options.constraints import BOOST_CONSTRAINTS, REGRESSION_CONSTRAINTS
from rfrboost._estimators.parameters import is_auto
from rfrboost._model.losses import Loss
from rfrboost._typing import Array


class NetworkRegressor(RegressorMixin, NetworkEstimator):
    """Regression on top of a network: one or several outputs, any loss."""

    _task = "regression"

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, d)
            With several quantile levels, a column for each, rising from left to right. Of an
            automatic fit, within the range of the training targets and a quarter of it beyond.
        """
        fitted = self._model()
        raw = fitted.network.raw(fitted.inputs.read(self, X))
        return fitted.targets.predictions(fitted.loss, raw)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of ``predict(X)``; with several quantile levels the share of pinball loss saved.

        The latter is 1 − (pinball loss, summed over levels) / (that of the best constants for y).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        y : array-like of shape (n_samples,) or (n_samples, d)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        prediction = self.predict(X)
        w = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return self._model().loss.score(prediction, y, w)

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after 0, 1, …, T layers; the last equals ``predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, d)
        """
        fitted = self._model()
        for raw in fitted.network.staged_raw(fitted.inputs.read(self, X)):
            yield fitted.targets.predictions(fitted.loss, raw)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class RFRBoostRegressor(NetworkRegressor):
    """Random feature representation boosting for regression.

    With its defaults it needs no tuning. It is an ensemble of linear, boosted, kernel and tree
    models, each fitted on ``n_bags`` bags of rows, stopped early by the rows that it holds out, and
    weighted by them. Tables may have missing values, categories and dates. Fewer than 50 rows are
    too few to hold any out; they get a single network.

    With ``n_layers`` a number it is the paper's algorithm, a *single network*. A residual network
    Φ_t = Φ_{t−1} + η A_t f_t(x, Φ_{t−1}) is built layer by layer from random features f_t. A_t and
    the linear head W_t solve convex problems,

        (1/n) Σ w_i ‖y_i − W_tᵀΦ_t(x_i) − b‖² + l2_head·‖W_t‖²

    for the head under squared error, and a regularised least squares problem for A_t. X should then
    be standardised.

    *Parameters* are those of the ensemble, most of which a single network has too; *Other
    Parameters* are those of single networks alone. What "auto" stands for in each case is in one
    table, on the documentation's page about architecture. A parameter that would have no effect is
    refused.

    Parameters
    ----------
    n_layers : int or "auto", default="auto"
        "auto" fits the ensemble. A number is T, the layers of a single network; with 0 the model is
        linear in Φ₀.
    loss : {"squared_error", "huber", "quantile", "poisson"} or Loss, default="squared_error"
        "huber" is quadratic up to 1.345 robust standard deviations of y. An object of a class
        derived from :class:`rfrboost.Loss` may be passed.
    quantile : float or sequence of rising floats, default=0.5
        The level for ``loss="quantile"``. With several, as in (0.05, 0.5, 0.95), one fit predicts
        all of them, a column each, and they never cross.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Automatic fits: the columns that hold categories, by names, indices or a mask, even if their
        values are numbers. The others, and all with "from_dtype", are judged by their types and
        values.
    preprocess : "auto" or None, default="auto"
        Whether an automatic fit encodes tables: numbers with outliers and missing values,
        categories, dates, text. Every column of numbers is scaled, so that units do not matter, and
        a number outside the range of the training rows counts as the nearest one inside. A single
        network always takes X as it is, finite numbers.
    n_bags : int, default=5
        Ensemble: the number of cross-validation folds, one member of each family for each. With 1
        there is one member of each family, which holds out a fifth of the rows.
    max_seconds : float, default=None
        Automatic fits: time limit, in seconds from the call of ``fit``. The fit ends with the best
        model it has by then, on a sample of the rows if all of them would take too long.
    scoring : str, scorer or callable, default=None
        Ensemble: a score of held-out rows (the higher the better) that decides, in place of the
        loss, how many layers of each family are kept and which families are weighted: all, all but
        one, or one alone. ``oof_score_`` is then this score. Layers and weights themselves still
        minimise the loss, and so do the penalties of linear and the settings of kernel members. A
        callable has the signature ``scoring(estimator, X, y)``; the estimator predicts held-out
        rows, and X are their numbers. Sample weights are passed to scikit-learn's scorers only.
    snapshot : str or path, default=None
        Ensemble: a file to which every family is written once it is fitted. If the fit is killed,
        the same call continues after the last of them, and gives the same model bit for bit; the
        snapshot of another fit is refused. It is removed after the fit. It holds training rows, and
        no pickle; it needs an integer as ``random_state``, and the package safetensors.
    random_state : int, RandomState or None, default=None
        The same seed gives the same model. Which rows are drawn depends on their content and
        weights, not on their order.
    n_jobs : int, default=None
        The number of threads of a fit, which changes no bit of the model; -1 is one for each
        processor, None as many as BLAS may use.
    verbose : int, default=0
        Whether to show progress: the phase, the share that is done, and about how many seconds are
        left. A bar on a terminal and in a notebook, elsewhere a line every ten seconds.
    callbacks : list of callables, default=None
        Each is called with the record of every layer, a dict as in ``history_``, in the thread that
        called ``fit``. In an ensemble that is the layer of the best penalty, and a family begins
        with layer 1 again. One that returns True ends the fit with what has been fitted; "family"
        ends the layers of the family at hand only. What it raises ends the fit, and the
        estimator stays as it was. :mod:`rfrboost.callbacks` has some.
    features : {"auto", "swim", "sparse", "gaussian", "uniform", "fourier"}, tuple or object
        The random features f_t. "swim" neurons are placed between pairs of training points;
        "sparse" ones too, but see one to three columns each; "gaussian" ones have weights and
        offsets N(0, scale²/D), "uniform" ones U(±scale/√D); "fourier" are cosines. The ensemble
        fits a family of members for each of ("swim", "sparse", "bumps", "trees"), or for those in a
        tuple of these names. Any scikit-learn transformer, or an object with ``n_rows`` and
        ``sample`` (see :class:`rfrboost.Sampler`), works too.
    n_features : int, (int, int) or "auto", default="auto"
        Features per layer. In a single network, how many of Φ and how many of x; an int is shared
        out evenly. The ensemble's features are all of x, as many as both numbers together.
    feature_scale : float or "auto", default="auto"
        For "swim" and "sparse" the constant c: a neuron's pre-activation is −c and +c at its two
        points. For the others, the scale of the weights.
    pair_sampling : {"gradient", "uniform"}, default="gradient"
        How SWIM draws pairs of points: in proportion to ‖Δy‖/‖Δx‖, or uniformly.
    activation : {"tanh", "relu", "sigmoid", "sin", "cos"}, default="tanh"
        The activation function of the neurons; "fourier" features, samplers and transformers have
        their own.
    metric : {"auto", "identity", "agop"}, default="auto"
        How distances between inputs are measured where features of x are drawn. "identity" is the
        paper's. "agop" learns it from the model itself, by the average gradient outer product of
        the layers so far, so that inputs that do not matter fade.
    learning_rate : float, (float, float) or "auto", default="auto"
        η. In a single network also (c, s), for the schedule η_t = c·t^(−s) of the regret bound.
    l2_head : float or "auto", default="auto"
        The penalty λ of W_t (in the ensemble, of the linear members), on the scale of a mean over
        rows; 0 is no penalty.
    l2_step : float or "auto", default="auto"
        The penalty λ of A_t, likewise. With ``strategy="greedy"`` its unit is that of y², as in the
        paper's objective.

    Other Parameters
    ----------------
    strategy : {"gradient", "greedy"}, default="gradient"
        Single networks. "gradient" (Algorithm 2, any loss) fits the functional gradient and
        searches along it; "greedy" (Algorithm 1, squared error only) minimises the training
        objective.
    step_matrix : {"dense", "diagonal", "scalar"}, default="dense"
        Single networks with ``strategy="greedy"``: the form of A_t. "diagonal" and "scalar" add the
        features of Φ and of x, each as wide as Φ, so that ``n_features`` has no effect.
    initial : {"identity", "swim", "gaussian", "uniform"}, default="identity"
        Single networks: Φ₀, the representation before the first layer; X itself or random features.
    initial_scale : float, default=None
        Single networks: ``feature_scale`` for Φ₀, if it should differ.
    hidden_dim : int, default=None
        Single networks: D, the width of Φ, for an ``initial`` other than "identity" (None: 512).
    normalize : bool, default=False
        Single networks: standardise Φ after each layer, by the training rows' statistics.
    sample_splitting : bool, default=False
        Single networks: fit every layer on ⌊n/T⌋ rows of its own, as the regret bound assumes.
        Equal rows may then fall into different parts, so that a weight of 2 no longer equals
        repeating the row.
    warm_start : bool, default=False
        Single networks: let ``fit`` add layers to a fitted model, up to ``n_layers``.

    Attributes
    ----------
    network_ : Network
        The fitted model: frozen arrays. In an ensemble, Φ are the members' predictions and the head
        is their mean.
    oof_prediction_ : ndarray
        Ensemble: out-of-fold predictions, for every training row that of the members which were
        fitted without it.
    oof_score_ : float
        Ensemble: R² of the out-of-fold predictions, or their ``scoring``; with several quantile
        levels, what ``score`` returns.
    column_report_ : list of ColumnReport
        Automatic fits: for each column of X its ``name``, ``kind``, ``missing`` values, ``levels``,
        range (``low``, ``high``), whether it is ``used`` and ``why`` not, or how it was read.
        ``pandas.DataFrame(model.column_report_)`` is a table of them.
    feature_importances_ : ndarray of shape (n_features_in,)
        Ensemble: each column's share in what shuffling the columns changes in the predictions, at
        training rows (:func:`rfrboost.inspection.importances`). Computed when first asked for.
    compression_ : Compression
        Of a model that ``compress`` returned: what it keeps (``features`` of ``features_before``),
        and by which share its error is larger (``cost``; ``error``, ``error_before``, ``metric``).
    history_ : list of dict
        For every layer: ``layer``; ``loss``, the mean training loss (in an ensemble, the held-out
        loss; ½‖y − ŷ‖² for squared error); ``step_length``, α_t for the normalised gradient
        (greedy: 1, or the scalar A); ``gradient_norm``, that of the functional gradient in L₂;
        ``seconds``. In the units of y; in an automatic fit to several outputs, of outputs that
        are divided by their deviations.
    n_features_in_, feature_names_in_
        The number of columns of X, and their names if these are text. By these names every method
        finds the columns of a data frame, in any order and among others; a frame with other names
        is read by place, like an array.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from rfrboost import RFRBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> RFRBoostRegressor(random_state=0).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.5
    True
    """

    _fits_ensembles: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        **REGRESSION_CONSTRAINTS,
        "strategy": [StrOptions({"gradient", "greedy"})],
        "step_matrix": [StrOptions({"dense", "diagonal", "scalar"})],
    }

    def __init__(
        self,
        n_layers: int | str = "auto",
        *,
        strategy: str = "gradient",
        step_matrix: str = "dense",
        loss: str | Loss = "squared_error",
        quantile: Any = 0.5,
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
        categorical_features: Any = "from_dtype",
        n_bags: int = 5,
        max_seconds: float | None = None,
        scoring: Any = None,
        snapshot: Any = None,
        sample_splitting: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
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
        self.preprocess = preprocess
        self.categorical_features = categorical_features
        self.n_bags = n_bags
        self.max_seconds = max_seconds
        self.scoring = scoring
        self.snapshot = snapshot
        self.sample_splitting = sample_splitting
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        return_std : bool, default=False
            Whether to return standard deviations too. Of an ensemble only.

        Returns
        -------
        prediction : ndarray of shape (n_samples,) or (n_samples, d)
            With several quantile levels, a column for each, rising from left to right.
        std : ndarray of the same shape
            If ``return_std``: the root of σ² + s²(x), in units of y. σ² is the mean squared
            out-of-fold residual of the training rows (or that of ``X_val``), s²(x) the variance
            between the members' predictions: larger where the members, each of which has missed
            other rows, disagree. σ² holds the members' own errors on average, so that the sum
            errs on the large side.
        """
        if not return_std:
            return super().predict(X)
        fitted = self._model()
        return with_deviation(fitted, fitted.inputs.read(self, X), is_auto(self.n_layers))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Intervals that hold the target of a share ``coverage`` of new rows, for an ensemble.

        By CV+ (Barber, Candès, Ramdas and Tibshirani, 2021) from the residuals of every member on
        the rows it held out; where ``fit`` was given ``X_val``, by split conformal prediction from
        those rows. If training and new rows are exchangeable, CV+ covers 2·coverage − 1 at the
        very least, and in practice about ``coverage``. That is a mean over rows: nothing is
        promised for some of them. Intervals are wider where members disagree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
            Between 0 and 1, both excluded. Where there are too few rows to tell (fewer than
            1/(1 − coverage) − 1), the intervals are infinite.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, d, 2)
            Lower and upper ends, of each output by itself.
        """
        check_coverage(coverage)
        fitted = self._model()
        X = fitted.inputs.read(self, X)
        return intervals_of(fitted, X, coverage, is_auto(self.n_layers))

    def _encodes_tables(self) -> bool:
        return self.n_layers == "auto" and self.preprocess is not None
