"""Looking into fitted models: importances and finished figures, each by one call.

What is computed needs nothing but the package; figures need matplotlib
(``pip install 'rfrboost[plot]'``). Every ``plot_`` function returns a display with the numbers it
drew, ``ax_`` and ``figure_``, and draws into ``ax`` if given one.

The models are scikit-learn estimators, so scikit-learn's ``permutation_importance``,
``partial_dependence`` and ``PartialDependenceDisplay`` and shap's explainers take them as they
are, data frames with categories included.
"""

from rfrboost.inspection._calibration import (
    CalibrationDisplay,
    expected_calibration_error,
    plot_calibration,
)
from rfrboost.inspection._importances import ImportancesDisplay, importances, plot_importances
from rfrboost.inspection._learning_curve import LearningCurveDisplay, plot_learning_curve
from rfrboost.inspection._representation import RepresentationDisplay, plot_representation
from rfrboost.inspection._residuals import ResidualsDisplay, plot_residuals

__all__ = [
    "CalibrationDisplay",
    "ImportancesDisplay",
    "LearningCurveDisplay",
    "RepresentationDisplay",
    "ResidualsDisplay",
    "expected_calibration_error",
    "importances",
    "plot_calibration",
    "plot_importances",
    "plot_learning_curve",
    "plot_representation",
    "plot_residuals",
]
