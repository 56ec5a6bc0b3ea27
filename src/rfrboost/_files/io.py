"""``save`` and ``load``: estimators in files, which are read as if anybody had written them."""

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from rfrboost._estimators.base import NetworkEstimator
from rfrboost._estimators.classifier import RFRBoostClassifier
from rfrboost._estimators.regressor import RFRBoostRegressor
from rfrboost._estimators.rfnn import RFNNClassifier, RFNNRegressor
from rfrboost._estimators.transformers import (
    FourierFeatures,
    GaussianFeatures,
    RandomFeatures,
    SWIMFeatures,
)
from rfrboost._files.atomic import write_atomically
from rfrboost._files.container import NEWER_FORMAT, OLDER_FORMAT, pack, read_document, unpack
from rfrboost._files.estimators import (
    read_features,
    read_model,
    read_parameters,
    write_features,
    write_model,
    write_parameters,
)
from rfrboost._files.header import opened, size_of
from rfrboost._files.schema import ModelFileError, State
from rfrboost._version import __version__

Estimator = NetworkEstimator | RandomFeatures

#: what files call the estimators; a class may be renamed, its tag stays
ESTIMATORS: dict[str, type[Estimator]] = {
    "RFRBoostRegressor": RFRBoostRegressor,
    "RFRBoostClassifier": RFRBoostClassifier,
    "RFNNRegressor": RFNNRegressor,
    "RFNNClassifier": RFNNClassifier,
    "SWIMFeatures": SWIMFeatures,
    "GaussianFeatures": GaussianFeatures,
    "FourierFeatures": FourierFeatures,
}
TAGS = {cls: tag for tag, cls in ESTIMATORS.items()}


def save_estimator(estimator: Estimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all."""
    check_is_fitted(estimator)
    try:
        data = pack(to_state(estimator), __version__, format_for(estimator))
        # A file that could not be loaded again must not be written.
        from_state(unpack(data))
    except ModelFileError as error:
        raise ModelFileError(f"Cannot save this {type(estimator).__name__}: {error}.") from error
    write_atomically(path, data)


def format_for(estimator: Estimator) -> int:
    """The oldest format that can hold an estimator.

    Format 1 cannot hold a scale for each output, nor a compressed model.
    """
    if not isinstance(estimator, NetworkEstimator):
        return OLDER_FORMAT
    fitted = estimator._model()
    newer = len(fitted.targets.scale.scale) > 1 or fitted.compression is not None
    return NEWER_FORMAT if newer else OLDER_FORMAT


def to_state(estimator: Estimator) -> dict[str, State]:
    """Everything about a fitted estimator as arrays and JSON values."""
    tag = TAGS.get(type(estimator))
    if tag is None:
        raise ModelFileError("its class is not one of rfrboost's own")
    parameters = write_parameters(estimator)
    if isinstance(estimator, NetworkEstimator):
        fitted = write_model(estimator._model())
    else:
        fitted = write_features(estimator)
    return {"estimator": tag, "parameters": parameters, "fitted": fitted}


def from_state(state: dict[str, State]) -> Any:
    """The fitted estimator that a state describes."""
    cls = ESTIMATORS.get(state["estimator"])
    if cls is None:
        raise ModelFileError(f"it holds an unknown estimator {state['estimator'][:80]!r}")
    estimator: Any = read_parameters(cls, state["parameters"])
    if isinstance(estimator, NetworkEstimator):
        automatic = estimator._parameters().automatic
        estimator._fitted = read_model(state["fitted"], estimator._task, automatic)
    else:
        read_features(state["fitted"], estimator)
    return estimator


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator that ``save`` wrote to a file.

    Nothing in the file is run or imported. A file that is cut short, altered, from a later format
    or not a model file at all is refused. Somebody who alters a file and computes its checksum anew
    can make a model that predicts nonsense, but nothing worse. The memory that is taken is that of
    the arrays, once, and for the header at most 256 MB, or fifty times its size.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        As it was saved: parameters, predictions to the bit, and the history, in which the seconds
        that layers took are 0.

    Raises
    ------
    ModelFileError
        If the file cannot be used; the message says why.
    """
    with opened(path) as stream:
        return from_state(read_document(stream, size_of(stream)))
