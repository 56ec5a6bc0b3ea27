"""Classifiers: targets that are labels, and ``RFRBoostClassifier`` with its parameters."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.fitted import ClassTargets
from rfrboost._estimators.intervals import check_coverage, class_sets_of
from rfrboost._estimators.options.constraints import BOOST_CONSTRAINTS, CLASS_CONSTRAINTS
from rfrboost._estimators.parameters import is_auto
from rfrboost._typing import Array


class NetworkClassifier(ClassifierMixin, NetworkEstimator):
    """Classification on top of a network: one logit for two classes, softmax for more.

    Of several labels per row, one logit for each.
    """

    _task = "classification"

    @property
    def classes_(self) -> np.ndarray:
        """The class labels, sorted; of several labels per row 0 and 1 for each (n_labels, 2)."""
        return self._targets().listed

    def _targets(self) -> ClassTargets:
        """How labels are encoded."""
        targets = self._model().targets
        assert isinstance(targets, ClassTargets)
        return targets

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Logits: of shape (n_samples,) for two classes, (n_samples, n_classes) for more.

        Of several labels per row, (n_samples, n_labels).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        fitted = self._model()
        raw = fitted.network.raw(fitted.inputs.read(self, X))
        return raw[:, 0] if raw.shape[1] == 1 else raw

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, columns in the order of ``classes_``.

        Of several labels per row, the probability that a row has each of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
        """
        fitted = self._model()
        return fitted.loss.predict(fitted.network.raw(fitted.inputs.read(self, X)))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities that :meth:`predict_proba` gives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            −∞ where a probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class; of several labels per row, 1 for each more probable than not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        return self._targets().labels(self.predict_proba(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after 0, 1, …, T layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        fitted = self._model()
        for raw in fitted.network.staged_raw(fitted.inputs.read(self, X)):
            yield fitted.loss.predict(raw)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predicted classes after 0, 1, …, T layers; the last equals ``predict(X)``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        """
        for probabilities in self.staged_predict_proba(X):
            yield self._targets().labels(probabilities)


class RFRBoostClassifier(NetworkClassifier):
    """Random feature representation boosting for classification.

    With its defaults it is an ensemble that needs no tuning, as :class:`RFRBoostRegressor`
    describes.

    With ``n_layers`` a number it is Algorithm 2 of the paper with the logistic loss, a *single
    network*: one logit for two classes, softmax for more. Each layer regresses Y − p on random
    features, searches along that direction, and refits the head

        (1/n) Σ w_i·log_loss(W_tᵀΦ_t(x_i) + b, y_i) + l2_head·‖W_t‖²

    (scikit-learn's C is 1/(2·n·l2_head)). X should then be standardised.

    If y is a matrix of 0 and 1 with several columns, each is a label that a row has or has not
    (multilabel classification). One model then predicts all labels, with a logit for each; the loss
    is the sum of their log losses.

    Parameters
    ----------
    n_layers : int or "auto", default="auto"
        "auto" fits the ensemble. A number is T, the layers of a single network; with 0 the model is
        logistic regression on Φ₀.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of rows, by class; a class that a dict does not name has 1.
        "balanced" gives all classes the same weight in all. Probabilities, ``oof_score_`` and
        ``predict_set`` are then those of rows weighted so. Refused for several labels per row.
    categorical_features, preprocess, n_bags, max_seconds, scoring, snapshot
        As in :class:`RFRBoostRegressor`.
    random_state, n_jobs, verbose, callbacks
        As in :class:`RFRBoostRegressor`.
    features, n_features, feature_scale, pair_sampling, activation, metric
        The random features f_t, as in :class:`RFRBoostRegressor`.
    learning_rate, l2_head, l2_step
        η and the penalties of W_t and A_t, as in :class:`RFRBoostRegressor`.

    Other Parameters
    ----------------
    initial, initial_scale, hidden_dim
        Single networks: Φ₀ and its width D, as in :class:`RFRBoostRegressor`.
    normalize, sample_splitting, warm_start
        Single networks, as in :class:`RFRBoostRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,) or (n_labels, 2)
        The class labels, sorted; of several labels per row, 0 and 1 for each of them.
    oof_prediction_ : ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
        Ensemble: out-of-fold probabilities of every training row.
    oof_score_ : float
        Ensemble: the accuracy of the out-of-fold predictions, or their ``scoring``. Of several
        labels per row, as in ``score``, the share of rows all of whose labels are right.
    network_, history_, column_report_, feature_importances_, compression_, n_features_in_,
    feature_names_in_
        As in :class:`RFRBoostRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rfrboost import RFRBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> RFRBoostClassifier(random_state=0).fit(X, y).oof_score_ > 0.9
    True
    """

    _fits_ensembles: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        n_layers: int | str = "auto",
        *,
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
        class_weight: Any = None,
        sample_splitting: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.n_layers = n_layers
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
        self.class_weight = class_weight
        self.sample_splitting = sample_splitting
        self.random_state = random_state
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callbacks = callbacks

    def predict_set(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Sets of classes that hold the right one for a share ``coverage`` of new rows.

        Of an ensemble only. A class is left out if the members give it less probability than they
        gave the right classes of all but a share of the rows they held out (cross-conformal
        prediction; with ``X_val`` in ``fit``, split conformal from those rows). Judging classes by
        their probability gives the smallest sets on average (least ambiguous sets; Sadinle, Lei
        and Wasserman, 2019); it promises nothing for each class by itself. The most probable
        class is always in, so that no set is empty, and where it is right more often than
        ``coverage`` so is the set. Refused for several labels per row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_in)
        coverage : float, default=0.9
            Between 0 and 1, both excluded. Where there are too few rows to tell, sets hold all
            classes.

        Returns
        -------
        ndarray of bool, of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        check_coverage(coverage)
        fitted = self._model()
        X = fitted.inputs.read(self, X)
        return class_sets_of(fitted, X, coverage, is_auto(self.n_layers))

    def _encodes_tables(self) -> bool:
        return self.n_layers == "auto" and self.preprocess is not None
