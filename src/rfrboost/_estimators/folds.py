"""Folds as the user wants them: ``groups`` in ``fit`` and ``cv``, as the splits of an ensemble.

Splits are masks over all rows of X (:class:`~rfrboost._auto.bags.Splits`). What no ensemble could
be fitted by is refused with the reason. Without ``groups`` and ``cv`` the ensemble cuts rows into
folds by itself, and this module is not needed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.utils.validation import _num_samples, check_consistent_length, column_or_1d

from rfrboost._auto.bags import ONE_MEMBER_FOLDS, Splits
from rfrboost._estimators.parameters import Parameters
from rfrboost._typing import Mask

# The most splits, as many as there may be bags.
MOST_SPLITS = 100

# Rows to be encoded, and the rows whose targets they are encoded by.
Encoding = tuple[Mask, Mask]


def splits_of(
    parameters: Parameters, task: str, X: Any, y: np.ndarray, groups: Any, present: Mask
) -> Splits:
    """The rows that each member is fitted on and holds out, by ``cv`` and ``groups``.

    ``X`` is the table as it came, y (n,) or (n, k); rows that are not ``present`` weigh nothing,
    and are in no split.
    """
    n = _num_samples(X)
    if groups is not None:
        groups = checked_groups(groups, n)
    found = list(pairs(parameters, task, X, y, groups))
    if not 1 <= len(found) <= MOST_SPLITS:
        raise ValueError(
            f"cv gives {len(found)} splits of the rows; an ensemble has a member for each, and "
            f"there may be 1 to {MOST_SPLITS} of them."
        )
    fitted = np.stack([mask_of(train, n) for train, _ in found]) & present
    held = np.stack([mask_of(test, n) for _, test in found]) & present
    splits = Splits(fitted, held)
    check_splits(splits, y if task == "classification" else None, groups)
    return splits


def checked_groups(groups: Any, n: int) -> np.ndarray:
    """Groups (n,) without missing ones."""
    labels = column_or_1d(groups)
    check_consistent_length(labels, np.empty(n))
    if any(label is None or label != label for label in labels.tolist()):
        raise ValueError(
            "groups has missing values: give every row a group, for example a number of its own."
        )
    labels = labels.astype(str) if labels.dtype.kind == "O" else labels
    codes: np.ndarray = np.unique(labels, return_inverse=True)[1]
    return codes


def pairs(
    parameters: Parameters, task: str, X: Any, y: np.ndarray, groups: np.ndarray | None
) -> Iterator[tuple[Any, Any]]:
    """Rows to fit and rows to hold out, for each member.

    ``groups`` alone, or with a number of folds, are dealt to folds whole; one bag holds out the
    first of ``ONE_MEMBER_FOLDS`` folds, as it does without groups.
    """
    if parameters.splits_rows:
        classifier = task == "classification" and y.ndim == 1
        yield from check_cv(parameters.cv, y, classifier=classifier).split(X, y, groups)
        return
    assert groups is not None
    n_bags = parameters.bags
    n_folds = min(n_bags if n_bags > 1 else ONE_MEMBER_FOLDS, len(np.unique(groups)))
    if n_folds < 2:
        raise ValueError(
            "groups holds one group only, and members hold out whole groups: leave groups out, or "
            "pass rows of at least two."
        )
    stratified = task == "classification" and y.ndim == 1
    cut = (StratifiedGroupKFold if stratified else GroupKFold)(n_folds)
    for k, pair in enumerate(cut.split(X, y, groups)):
        if k < n_bags:
            yield pair


def mask_of(rows: Any, n: int) -> Mask:
    """Rows, given as indices or as a mask, as a mask (n,)."""
    rows = np.asarray(rows)
    rows = rows if rows.size else rows.astype(np.intp)
    if rows.dtype == bool and rows.shape != (n,):
        raise ValueError(f"cv gives a mask of shape {rows.shape} for {n} rows.")
    mask = np.zeros(n, bool)
    try:
        mask[rows if rows.dtype == bool else rows.astype(np.intp, casting="same_kind")] = True
    except (IndexError, TypeError) as error:
        raise ValueError(
            f"cv should give pairs of indices of rows, each from 0 to {n - 1}: {error}."
        ) from error
    return mask


def check_splits(splits: Splits, labels: np.ndarray | None, groups: np.ndarray | None) -> None:
    """Refuse splits that hold out or fit nothing, mix the two, or leave a class unknown.

    ``labels`` (n,) are those of a classification. Groups may be cut by a splitter that ignores
    them, which is refused too.
    """
    for k, (fitted, held) in enumerate(zip(splits.fitted, splits.held, strict=True)):
        if not (fitted.any() and held.any()):
            what = "hold out" if fitted.any() else "fit"
            raise ValueError(
                f"Split {k} of cv has no rows to {what} (rows of weight zero do not count)."
            )
        both = fitted & held
        if groups is not None:
            both = fitted & np.isin(groups, groups[held])
        if both.any():
            what = "row" if groups is None else "group of the row"
            raise ValueError(
                f"Split {k} of cv fits and holds out the same {what} {int(np.argmax(both))}: "
                "scores on held-out rows would mean nothing. Use a splitter that keeps them apart"
                + ("." if groups is None else ", such as GroupKFold.")
            )
        if labels is not None:
            check_classes(labels, fitted, f"Split {k} of cv has no row to fit")
    if labels is not None:
        check_classes(labels, np.logical_or.reduce(splits.held), "cv holds out no row")


def check_classes(labels: np.ndarray, rows: Mask, problem: str) -> None:
    """Refuse rows that lack a class, of labels (n,) or (n, k)."""
    for column in labels.reshape(len(labels), -1).T:
        missing = np.setdiff1d(column, column[rows])
        if len(missing):
            raise ValueError(
                f"{problem} of the class {str(missing[0])!r}. All classes must be among the rows "
                "that each member is fitted on, and among the rows held out: use fewer splits, or "
                "a splitter that spreads classes, such as StratifiedGroupKFold."
            )


def encodings(splits: Splits) -> list[Encoding]:
    """Which rows may tell what their levels mean, for the target encodings of training rows.

    Held-out rows are encoded by the rows that their member is fitted on. Rows that no member holds
    out are encoded by each other, a fold of them by the others.
    """
    left = np.ones(splits.held.shape[1], bool)
    found = []
    for fitted, held in zip(splits.fitted, splits.held, strict=True):
        found.append((held & left, fitted))
        left = left & ~held
    number = np.cumsum(left)
    folds = [left & (number % ONE_MEMBER_FOLDS == k) for k in range(ONE_MEMBER_FOLDS)]
    return found + [(fold, left & ~fold) for fold in folds]


def refuse_folds() -> None:
    """Folds are of use only where rows are held out."""
    raise ValueError(
        "groups and cv say which rows are held out, but this fit holds out none: n_layers is a "
        "number, or there are fewer than 50 rows. Leave them out."
    )


def refuse_both() -> None:
    """Validation rows leave no choice of rows to hold out."""
    raise ValueError(
        "X_val and y_val are the rows held out, so that groups and cv have no say in that. Pass "
        "either validation rows, or groups or cv."
    )
