"""The report about a model: one page with its scores, errors, columns and importances."""
