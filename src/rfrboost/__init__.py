"""Random feature representation boosting: deep random-feature networks in closed form."""

from rfrboost._features import DenseFeatures, FeatureMap, Sampler
from rfrboost._files import file_info, load
from rfrboost._forms import ModelFileError
from rfrboost._losses import Huber, Loss, Poisson, Quantile, SquaredError
from rfrboost._rfnn import RFNNClassifier, RFNNRegressor
from rfrboost._rfrboost import RFRBoostRegressor
from rfrboost._rfrboost_classifier import RFRBoostClassifier
from rfrboost._transformers import FourierFeatures, GaussianFeatures, SWIMFeatures
from rfrboost._version import __version__
from rfrboost.row_blocks import RowBlocks

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
