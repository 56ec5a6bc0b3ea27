"""An estimator around a network: validation, warm starts, history, and no mathematics."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from rfrboost._auto.conformal import Calibration
from rfrboost._auto.fit import AutoFit, fit_auto
from rfrboost._auto.importances import importances
from rfrboost._blocks.held_out import HeldOutRows, HeldOutStopping
from rfrboost._blocks.reader import BlockArrays
from rfrboost._estimators.checks import Data, refuse_validation
from rfrboost._estimators.exporting import ExportedEstimator
from rfrboost._estimators.inputs import encode_fit, read_again, read_arrays, read_table_and_target
from rfrboost._estimators.large import large_recipe
from rfrboost._estimators.parameters import is_auto
from rfrboost._estimators.plan import MOST_LAYERS, is_automatic, plan_for
from rfrboost._estimators.progress import Progress
from rfrboost._model.history import LayerRecord, in_units
from rfrboost._model.losses import Loss
from rfrboost._model.network import Network, input_gradient
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._paper.boost import Recipe, boost
from rfrboost._rows.chunks import Chunks, InMemory
from rfrboost._rows.units import check_inputs
from rfrboost._tables.encoder import Encoder
from rfrboost._typing import Array, Indices


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """Weights as finite numbers, one a row, if there are any."""
    if sample_weight is None:
        return None
    w = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (w < 0).any():
        raise ValueError("sample_weight has negative entries; weights must be zero or positive.")
    return w


class NetworkEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ExportedEstimator):
    """An estimator whose fitted state is a :class:`~rfrboost._model.network.Network`."""

    network_: Network
    history_: list[dict[str, float]]
    _seed: int
    _loss: Loss
    _encoder: Encoder | None = None
    _calibration: Calibration | None = None
    #: how many rows are taken at a time; only tests set others
    _sizes: Sizes = SIZES

    @property
    def _n_features_out(self) -> int:
        """How many columns ``transform`` gives, as scikit-learn asks for it."""
        return len(self.network_.heads[-1].W)

    def _recipe(self, loss: Loss, scale: float, n_rows: int, n_columns: int, seed: int) -> Recipe:
        """The recipe that the parameters describe."""
        raise NotImplementedError

    def _fit_network(
        self, data: Data, loss: Loss, scale: float, fitted: Network | None
    ) -> AutoFit | None:
        """Fit automatically, or a single network from the start, or add layers to a fitted one.

        Returns what an automatic fit has to say beyond its network.
        """
        names = getattr(self, "feature_names_in_", None)
        # What an encoder wrote is of size one, and its columns have other names.
        check_inputs(data.X, None if names is None or self._encoder else list(names))
        if not is_automatic(self, len(data.y)):
            refuse_validation(data)
            parts = max(self.n_layers, 1) if getattr(self, "sample_splitting", False) else 1
            self._fit_single(
                InMemory(data.X, data.y, data.w, parts, self._sizes), loss, scale, fitted
            )
            return None
        seed = self._seed_for(None)
        plan = plan_for(self, loss, scale, is_classifier(self), seed)
        watch = self._watch([], MOST_LAYERS, scale, loss)
        fit = fit_auto(data.X, data.y, data.w, data.validation, plan, watch)
        # Of every family the layers that were kept; those tried after them are forgotten.
        history = [asdict(in_units(r, scale, loss.degree or 0)) for r in fit.rounds]
        self._keep(fit.network, history, seed, loss)
        sources = self._sources(data.X.shape[1])
        shares = importances(fit.network, data.X, data.w, sources)
        if shares is not None:
            by_column = np.bincount(sources, shares, self.n_features_in_)
            self.feature_importances_ = np.maximum(by_column, 0.0)
        return fit

    def _fit_single(
        self,
        chunks: Chunks,
        loss: Loss,
        scale: float,
        fitted: Network | None,
        held: HeldOutRows | None = None,
    ) -> None:
        """Fit a single network, wherever its rows are, until the rows held out say stop, if any."""
        seed = self._seed_for(fitted)
        history = [] if fitted is None else list(self.history_)
        shape = (chunks.facts.n_rows, len(chunks.facts.x_low))
        if held is None:
            recipe = self._recipe(loss, scale, *shape, seed)
            watch = self._watch(history, recipe.n_layers, scale, loss)
            network = boost(chunks, recipe, fitted, watch)
        else:
            recipe = large_recipe(self, loss, scale, *shape, seed)
            watch = self._watch(history, recipe.n_layers, scale, loss)
            stopping = HeldOutStopping(held, loss, self.max_seconds)
            network = stopping.kept(boost(chunks, recipe, fitted, watch, stopping))
        self._keep(network, history[: len(network.layers)], seed, loss)

    def _describe(self, source: BlockArrays) -> None:
        """After a fit: the columns there were, as scikit-learn has it, and how they are encoded."""
        self.n_features_in_, self._encoder = source.n_columns or 0, source.encoder
        self.__dict__.pop("feature_names_in_", None)
        if source.names is not None:
            self.feature_names_in_ = np.array(source.names, dtype=object)

    def _seed_for(self, fitted: Network | None) -> int:
        """A seed for a new model, or that of the one that layers are added to."""
        random = check_random_state(self.random_state)
        return int(random.randint(2**31 - 1)) if fitted is None else self._seed

    def _keep(
        self, network: Network, history: list[dict[str, float]], seed: int, loss: Loss
    ) -> None:
        """Take on a fitted network; what was known of another is forgotten."""
        for name in ("oof_prediction_", "oof_score_", "feature_importances_", "_calibration"):
            self.__dict__.pop(name, None)
        self.network_, self.history_, self._seed, self._loss = network, history, seed, loss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = self._prepares()
        return tags

    def _sources(self, width: int) -> Indices:
        """For every column that the network sees, the number of the column it is made of."""
        return (
            np.arange(width) if self._encoder is None else np.array(self._encoder.sources, np.intp)
        )

    def _watch(
        self, history: list[dict[str, float]], n_layers: int, scale: float, loss: Loss
    ) -> Callable[[LayerRecord], None]:
        """Keeps a record of every layer in the units of y, and shows it if asked."""
        progress = Progress(type(self).__name__, n_layers, getattr(self, "verbose", 0))

        def watch(record: LayerRecord) -> None:
            record = in_units(record, scale, loss.degree or 0)
            history.append(asdict(record))
            progress(record)

        return watch

    def _fitted_before(self, n_columns: int, n_outputs: int) -> Network | None:
        """The network that ``warm_start`` adds layers to, if there is one and it still fits."""
        fitted: Network | None = getattr(self, "network_", None)
        if fitted is None or not getattr(self, "warm_start", False):
            return None
        if is_auto(self.n_layers):
            raise ValueError(
                "warm_start adds layers up to a number, so n_layers must be one, not 'auto'."
            )
        if len(fitted.mean) != n_columns:
            raise ValueError(
                f"X has {n_columns} features but the last fit had {len(fitted.mean)}, so "
                "warm_start cannot go on from it. Set warm_start=False to start afresh."
            )
        if self.sample_splitting:
            raise ValueError(
                "warm_start cannot add layers under sample_splitting, which shares the rows out "
                "among a number of layers fixed beforehand. Set one of the two to False."
            )
        if self.n_layers < len(fitted.layers):
            raise ValueError(
                f"n_layers={self.n_layers} is less than the {len(fitted.layers)} layers already "
                "fitted, and warm_start only adds layers. Raise n_layers, or set warm_start=False."
            )
        if len(fitted.heads[-1].b) != n_outputs:
            raise ValueError(
                "y has another number of outputs or classes than in the last fit, so warm_start "
                "cannot go on from it. Set warm_start=False to start afresh."
            )
        return fitted

    def _prepares(self) -> bool:
        """Whether tables are encoded here; a single network takes X as it is."""
        automatic = is_auto(getattr(self, "n_layers", 0))
        return automatic and getattr(self, "preprocess", None) is not None

    def _read(
        self, X: Any, y: Any, sample_weight: Any, task: str
    ) -> tuple[Array, np.ndarray, Array | None]:
        """What ``fit`` is given: X as numbers, y, and weights."""
        self._encoder = None
        if not self._prepares():
            X, y = read_arrays(self, X, y, task)
        else:
            X, y = read_table_and_target(self, X, y, task)
        w = checked_weights(sample_weight, y)
        if task == "classification":
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        if self._prepares():
            self._encoder, X = encode_fit(X, y, w, task)
        return X, y, w

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "network_")
        X = read_again(self, X, self._encoder)
        names = getattr(self, "feature_names_in_", None)
        check_inputs(X, None if names is None or self._encoder else list(names))
        return X

    def transform(self, X: Any) -> Array:
        """The learned representation Φ_T(x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, D)
        """
        X = self._checked(X)
        return self.network_.transform(X)

    def input_gradient(self, X: Any) -> Array:
        """How the prediction at each row changes with its inputs: exact derivatives.

        Of ``predict`` for regression (of the logarithm of the mean with the Poisson loss), of
        ``decision_function`` for classification. Averages of its squares tell which columns the
        model uses; multiply by the columns' standard deviations to compare them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_features_in), or (n_samples, n_features_in, d) if the model
        has several outputs or more than two classes
        """
        table, X = X, self._checked(X)
        gradient = self._output_scale() * input_gradient(self.network_, X)
        if self._encoder is not None:
            gradient = self._encoder.pull(table, gradient)
        return gradient[:, :, 0] if self._one_output() else gradient

    def _output_scale(self) -> float:
        """What one unit of the raw prediction is in units of y."""
        return 1.0

    def _one_output(self) -> bool:
        """Whether predictions have one number a row."""
        return len(self.network_.heads[-1].b) == 1

    def _raw(self, X: Any) -> Array:
        X = self._checked(X)
        return self.network_.raw(X)

    def _staged_raw(self, X: Any) -> list[Array]:
        X = self._checked(X)
        return self.network_.staged_raw(X)
