"""The scikit-learn estimators: parameters, validation, and the two routes of a fit."""
