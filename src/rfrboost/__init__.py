"""Random feature representation boosting: deep random-feature networks in closed form."""

from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._estimators.classifier import RFRBoostClassifier
from rfrboost._estimators.regressor import RFRBoostRegressor
from rfrboost._estimators.rfnn import RFNNClassifier, RFNNRegressor
from rfrboost._estimators.transformers import FourierFeatures, GaussianFeatures, SWIMFeatures
from rfrboost._files.io import file_info, load
from rfrboost._files.schema import ModelFileError
from rfrboost._model.features import DenseFeatures, FeatureMap
from rfrboost._model.losses import Huber, Loss, Poisson, Quantile, SquaredError
from rfrboost._model.samplers import Sampler
from rfrboost._version import __version__

__all__ = [
    "DenseFeatures",
    "FeatureMap",
    "FourierFeatures",
    "GaussianFeatures",
    "Huber",
    "Loss",
    "ModelFileError",
    "Poisson",
    "Quantile",
    "RFNNClassifier",
    "RFNNRegressor",
    "RFRBoostClassifier",
    "RFRBoostRegressor",
    "RowBlocks",
    "SWIMFeatures",
    "Sampler",
    "SquaredError",
    "__version__",
    "file_info",
    "load",
]
