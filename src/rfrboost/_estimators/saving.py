"""``save``, for every estimator."""

import os
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rfrboost._files.atomic import write_atomically
from rfrboost._files.container import pack, unpack
from rfrboost._files.estimators import FittedState, read_parameters, write_parameters
from rfrboost._files.schema import ModelFileError, State
from rfrboost._version import __version__


class SavedEstimator(BaseEstimator):
    """An estimator that can be saved: ``_fitted_state`` says what its fitted state is."""

    _fitted_state: ClassVar[FittedState]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, for :func:`rfrboost.load`.

        The file holds arrays (safetensors) and a JSON header, and no pickle: loading it runs no
        code. A loaded model predicts the same bits and can be fitted on with ``warm_start``.
        Needs the package safetensors (``pip install 'rfrboost[files]'``).

        Parameters
        ----------
        path : str or path
            Replaced at once if it exists; if anything goes wrong it stays as it was.

        Raises
        ------
        ModelFileError
            If a parameter is an object of one's own: a loss, a sampler, a transformer, or a
            RandomState.
        """
        check_is_fitted(self)
        try:
            data = pack(to_state(self), __version__)
            # What could not be loaded again must not be written.
            from_state(type(self), unpack(data))
        except ModelFileError as error:
            raise ModelFileError(f"Cannot save this {type(self).__name__}: {error}.") from error
        write_atomically(path, data)


def to_state(estimator: SavedEstimator) -> dict[str, State]:
    """Everything about a fitted estimator as arrays and JSON values."""
    cls = type(estimator)
    if not cls.__module__.startswith("rfrboost."):
        raise ModelFileError("its class is not one of rfrboost's own")
    return {
        "estimator": cls.__name__,
        "parameters": write_parameters(estimator),
        "fitted": cls._fitted_state.write(estimator),
    }


def from_state(cls: type[SavedEstimator], state: dict[str, State]) -> Any:
    """The fitted estimator of a class that a state describes."""
    estimator = read_parameters(cls, state["parameters"])
    cls._fitted_state.read(state["fitted"], estimator)
    return estimator
