"""Random feature representation boosting: deep random-feature networks in closed form.

A public name is imported from its module when it is first used. Importing the package is therefore
quick, and what a program does not use (scikit-learn takes a second) is not loaded. The names stand
in two places, which a test compares: in ``_HOME`` for Python, and in the block below it for type
checkers and editors, which do not run code.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rfrboost._version import __version__

#: the module of each public name
_HOME = {
    "ColumnReport": "rfrboost._tables.report",
    "DenseFeatures": "rfrboost._model.features",
    "FeatureMap": "rfrboost._model.features",
    "FourierFeatures": "rfrboost._estimators.transformers",
    "GaussianFeatures": "rfrboost._estimators.transformers",
    "Huber": "rfrboost._model.losses",
    "Loss": "rfrboost._model.losses",
    "ModelFileError": "rfrboost._files.schema",
    "Poisson": "rfrboost._model.losses",
    "Quantile": "rfrboost._model.losses",
    "RFNNClassifier": "rfrboost._estimators.rfnn",
    "RFNNRegressor": "rfrboost._estimators.rfnn",
    "RFRBoostClassifier": "rfrboost._estimators.classifier",
    "RFRBoostRegressor": "rfrboost._estimators.regressor",
    "RowBlocks": "rfrboost._blocks.row_blocks",
    "SWIMFeatures": "rfrboost._estimators.transformers",
    "Sampler": "rfrboost._model.samplers",
    "SquaredError": "rfrboost._model.losses",
    "UnseenValuesWarning": "rfrboost._tables.report",
    "file_info": "rfrboost._files.header",
    "load": "rfrboost._files.io",
}

if TYPE_CHECKING:
    from rfrboost._blocks.row_blocks import RowBlocks as RowBlocks
    from rfrboost._estimators.classifier import RFRBoostClassifier as RFRBoostClassifier
    from rfrboost._estimators.regressor import RFRBoostRegressor as RFRBoostRegressor
    from rfrboost._estimators.rfnn import RFNNClassifier as RFNNClassifier
    from rfrboost._estimators.rfnn import RFNNRegressor as RFNNRegressor
    from rfrboost._estimators.transformers import FourierFeatures as FourierFeatures
    from rfrboost._estimators.transformers import GaussianFeatures as GaussianFeatures
    from rfrboost._estimators.transformers import SWIMFeatures as SWIMFeatures
    from rfrboost._files.header import file_info as file_info
    from rfrboost._files.io import load as load
    from rfrboost._files.schema import ModelFileError as ModelFileError
    from rfrboost._model.features import DenseFeatures as DenseFeatures
    from rfrboost._model.features import FeatureMap as FeatureMap
    from rfrboost._model.losses import Huber as Huber
    from rfrboost._model.losses import Loss as Loss
    from rfrboost._model.losses import Poisson as Poisson
    from rfrboost._model.losses import Quantile as Quantile
    from rfrboost._model.losses import SquaredError as SquaredError
    from rfrboost._model.samplers import Sampler as Sampler
    from rfrboost._tables.report import ColumnReport as ColumnReport
    from rfrboost._tables.report import UnseenValuesWarning as UnseenValuesWarning
else:
    # Where type checkers see it, every name would exist.
    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used, and keep it."""
        if name not in _HOME:
            raise AttributeError(f"module 'rfrboost' has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    """What the module holds, and the public names that were not used yet."""
    return sorted({*globals(), *_HOME})
