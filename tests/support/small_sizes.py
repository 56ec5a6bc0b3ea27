"""Estimators that treat a few rows as if they were many."""

from rfrboost._numerics.sizes import Sizes


def with_sizes(model, sizes: Sizes):
    """The same estimator, which takes rows in these sizes (``clone`` forgets them)."""
    model._sizes = sizes
    return model
