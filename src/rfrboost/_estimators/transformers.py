"""The random features as scikit-learn transformers."""

import os
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import default_rng
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from rfrboost._estimators.fitted import as_frame, check_columns
from rfrboost._estimators.options.constraints import POSITIVE, WIDTH
from rfrboost._model.features import CHOICES, FeatureMap
from rfrboost._model.network import centered
from rfrboost._model.samplers import IID, SWIM, Fourier, Sampler
from rfrboost._numerics.arrays import content_order
from rfrboost._tables.table import by_name
from rfrboost._typing import Array


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Draw a feature map in ``fit``, apply it in ``transform``."""

    features_: FeatureMap
    mean_: Array
    n_features: int
    random_state: Any

    @property
    def _n_features_out(self) -> int:
        """The number of columns that ``transform`` gives; scikit-learn reads it."""
        return self.features_.width

    def _sampler(self) -> Sampler:
        """The sampler that the parameters describe."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        y : array-like of shape (n_samples,) or (n_samples, d), optional
            Numbers, or labels as strings; used by gradient-weighted pairs.

        Returns
        -------
        self
        """
        X = validate_data(self, as_frame(X), dtype=[np.float64, np.float32])
        check_columns(X, None)
        rng = default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        self._draw(X, numeric_targets(y, len(X)), rng)
        return self

    def _draw(self, X: Array, Y: Array, rng: np.random.Generator) -> None:
        self.mean_ = X.mean(axis=0, dtype=float)
        x = centered(X, self.mean_)
        sampler, order = self._sampler(), content_order(x, Y, rng)
        drawn = order[(rng.random(sampler.n_rows(self.n_features)) * len(x)).astype(np.intp)]
        self.features_ = sampler.sample(x[drawn, :-1], Y[drawn], self.n_features, rng)

    def transform(self, X: Any) -> Array:
        """The features of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "features_")
        X = by_name(as_frame(X), getattr(self, "feature_names_in_", None))
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        check_columns(X, None)
        out = np.empty((len(X), self.features_.width), order="F")
        self.features_(centered(X, self.mean_), out)
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted features to a file, for :func:`rfrboost.load`.

        As :meth:`rfrboost.RFRBoostRegressor.save`.

        Parameters
        ----------
        path : str or path
        """
        from rfrboost._files.io import save_estimator

        save_estimator(self, path)


def numeric_targets(y: Any, n_rows: int) -> Array:
    """y as numbers (n, d): labels become one-hot columns, and a missing y becomes zeros."""
    if y is None:
        return np.zeros((n_rows, 1))
    y = np.asarray(y)
    if y.ndim == 0 or len(y) != n_rows:
        raise ValueError(f"y must have a row for each of the {n_rows} rows of X; got {y.shape}.")
    y = y.reshape(len(y), -1)
    if not np.issubdtype(y.dtype, np.number):
        indicators: Array = OneHotEncoder(sparse_output=False).fit_transform(y)
        return indicators
    numbers: Array = check_array(y, dtype=float, input_name="y")
    # Pairs are drawn by differences in y relative to each other; its unit does not matter.
    return numbers / (np.abs(numbers).max() or 1.0)


class SWIMFeatures(RandomFeatures):
    """Features σ(zᵀw + b) whose directions and offsets come from pairs of training points.

    Parameters
    ----------
    n_features : int, default=512
    feature_scale : float, default=0.5
        c: the pre-activation is −c at the first point of a pair and +c at the second.
    pair_sampling : {"gradient", "uniform"}, default="gradient"
        Pairs in proportion to ‖Δy‖/‖Δx‖, or uniformly. Without y, uniformly.
    activation : {"tanh", "relu", "sigmoid", "sin", "cos"}, default="tanh"
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : DenseFeatures
        The drawn weights.
    mean_ : ndarray
        The training mean, subtracted before everything else.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [WIDTH],
        "feature_scale": [POSITIVE],
        "pair_sampling": [StrOptions({"gradient", "uniform"})],
        "activation": [StrOptions(CHOICES)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features: int = 512,
        *,
        feature_scale: float = 0.5,
        pair_sampling: str = "gradient",
        activation: str = "tanh",
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.feature_scale = feature_scale
        self.pair_sampling = pair_sampling
        self.activation = activation
        self.random_state = random_state

    def _sampler(self) -> Sampler:
        return SWIM(self.feature_scale, self.activation, self.pair_sampling)


class GaussianFeatures(RandomFeatures):
    """Features σ(zᵀw + b) with weights and offsets i.i.d. N(0, scale²/D).

    Parameters
    ----------
    n_features : int, default=512
    feature_scale : float, default=1.0
    activation : {"tanh", "relu", "sigmoid", "sin", "cos"}, default="tanh"
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : DenseFeatures
        The drawn weights.
    mean_ : ndarray
        The training mean, subtracted before everything else.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [WIDTH],
        "feature_scale": [POSITIVE],
        "activation": [StrOptions(CHOICES)],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_features: int = 512,
        *,
        feature_scale: float = 1.0,
        activation: str = "tanh",
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.feature_scale = feature_scale
        self.activation = activation
        self.random_state = random_state

    def _sampler(self) -> Sampler:
        return IID(self.feature_scale, self.activation, "gaussian")


class FourierFeatures(RandomFeatures):
    """Random Fourier features cos(zᵀw + b), w ~ N(0, scale²/D), b ~ U(0, 2π).

    Parameters
    ----------
    n_features : int, default=512
    feature_scale : float, default=1.0
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    features_ : DenseFeatures
        The drawn frequencies and phases.
    mean_ : ndarray
        The training mean, subtracted before everything else.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features": [WIDTH],
        "feature_scale": [POSITIVE],
        "random_state": ["random_state"],
    }

    def __init__(
        self, n_features: int = 512, *, feature_scale: float = 1.0, random_state: Any = None
    ) -> None:
        self.n_features = n_features
        self.feature_scale = feature_scale
        self.random_state = random_state

    def _sampler(self) -> Sampler:
        return Fourier(self.feature_scale)
