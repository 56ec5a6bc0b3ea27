"""Estimators that treat a few rows as if they were many."""

from sklearn.base import clone

from rfrboost._numerics.sizes import Sizes


def with_sizes(model, sizes: Sizes):
    """The same estimator, which takes rows in these sizes (``clone`` forgets them)."""
    model._sizes = sizes
    return model


def clone_with_sizes(model, sizes: Sizes):
    """An unfitted copy of an estimator, which takes rows in these sizes."""
    return with_sizes(clone(model), sizes)
