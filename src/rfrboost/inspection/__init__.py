"""Importances and figures of fitted models, one function call each.

Every ``plot_`` function needs matplotlib (``pip install 'rfrboost[plot]'``). It draws into ``ax``
if one is given, and into a new figure otherwise. It returns a display: the numbers that were
drawn, ``ax_`` and ``figure_``. The other functions need nothing beyond the package.

The models are scikit-learn estimators, so scikit-learn's ``permutation_importance``,
``partial_dependence`` and ``PartialDependenceDisplay`` work with them, also on data frames with
categories. :func:`shap_explainer` makes an explainer of shap for any data frame.
"""

from rfrboost.inspection._attribution import Attribution, attribute
from rfrboost.inspection._calibration import (
    CalibrationDisplay,
    expected_calibration_error,
    plot_calibration,
)
from rfrboost.inspection._dependence import (
    DependenceDisplay,
    InteractionsDisplay,
    interactions,
    plot_dependence,
    plot_interactions,
)
from rfrboost.inspection._importances import ImportancesDisplay, importances, plot_importances
from rfrboost.inspection._learning_curve import LearningCurveDisplay, plot_learning_curve
from rfrboost.inspection._page import report
from rfrboost.inspection._representation import RepresentationDisplay, plot_representation
from rfrboost.inspection._residuals import ResidualsDisplay, plot_residuals
from rfrboost.inspection._shap import shap_explainer
from rfrboost.inspection._threshold import Threshold, best_threshold

__all__ = [
    "Attribution",
    "CalibrationDisplay",
    "DependenceDisplay",
    "ImportancesDisplay",
    "InteractionsDisplay",
    "LearningCurveDisplay",
    "RepresentationDisplay",
    "ResidualsDisplay",
    "Threshold",
    "attribute",
    "best_threshold",
    "expected_calibration_error",
    "importances",
    "interactions",
    "plot_calibration",
    "plot_dependence",
    "plot_importances",
    "plot_interactions",
    "plot_learning_curve",
    "plot_representation",
    "plot_residuals",
    "report",
    "shap_explainer",
]
