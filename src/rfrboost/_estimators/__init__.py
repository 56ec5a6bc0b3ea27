"""The scikit-learn estimators: parameters, validation, and the three routes of a fit."""
