"""Random feature representation boosting: deep random-feature networks in closed form."""

from rfrboost._features import DenseFeatures, FeatureMap, Sampler
from rfrboost._losses import Huber, Loss, Poisson, Quantile, SquaredError
from rfrboost._rfnn import RFNNClassifier, RFNNRegressor
from rfrboost._rfrboost import RFRBoostClassifier, RFRBoostRegressor
from rfrboost._transformers import FourierFeatures, GaussianFeatures, SWIMFeatures

__version__ = "0.1.0"

__all__ = [
    "DenseFeatures",
    "FeatureMap",
    "FourierFeatures",
    "GaussianFeatures",
    "Huber",
    "Loss",
    "Poisson",
    "Quantile",
    "RFNNClassifier",
    "RFNNRegressor",
    "RFRBoostClassifier",
    "RFRBoostRegressor",
    "SWIMFeatures",
    "Sampler",
    "SquaredError",
    "__version__",
]
