"""Labels of rows: weights by class, and several labels for each row.

A matrix of labels (n, L) says which of L labels a row has, 1, and which it has not, 0. All labels
are fitted together, with one logit for each; :class:`LabelTargets` is their codec. Columns that
hold more than two classes, or others than 0 and 1, are refused: each needs a model of its own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array

from rfrboost._auto.conformal import HeldOut
from rfrboost._estimators.fitted import ClassTargets, as_frame
from rfrboost._model.losses import Loss
from rfrboost._numerics.arrays import frozen
from rfrboost._typing import Array

#: the values of a label: a row has it not, or has it
ABSENT_PRESENT = frozen(np.array([0, 1]))


@dataclass(frozen=True)
class LabelTargets(ClassTargets):
    """Several labels for each row: ``n_labels`` columns of 0 and 1, which are the ``classes``."""

    n_labels: int

    @property
    def one_output(self) -> bool:
        return False

    @property
    def n_outputs(self) -> int:
        return self.n_labels

    @property
    def listed(self) -> np.ndarray:
        """0 and 1 for each label (L, 2).

        Metrics and cross-validation of scikit-learn take that for several labels, whatever L is.
        """
        return np.tile(self.classes, (self.n_labels, 1))

    def labels(self, probabilities: Array) -> np.ndarray:
        """Which labels are more probable than not (n, L)."""
        present: np.ndarray = self.classes[(probabilities > 0.5).astype(np.intp)]
        return present

    def as_handed_in(self, Y: Array) -> np.ndarray:
        return Y.astype(self.classes.dtype)

    def encode(self, y: Any, name: str = "y") -> Array:
        """A matrix of labels as the loss sees it; refuses another number of labels."""
        Y = label_matrix(y, name)
        if Y.shape[1] != self.n_labels:
            raise ValueError(f"{name} has {Y.shape[1]} labels, but y has {self.n_labels}.")
        return Y

    def encode_validation(self, y_val: Any, Y: Array) -> Array:
        """The labels of validation rows; each that some rows of y have and others not, too."""
        found = self.encode(y_val, "y_val")
        missing = np.flatnonzero((np.ptp(found, axis=0) == 0) & (np.ptp(Y, axis=0) > 0))
        if len(missing):
            raise ValueError(
                f"y_val must contain rows with and rows without the label of column {missing[0]}, "
                "as y does. How much each label counts is weighed by these rows."
            )
        return found

    def score(self, loss: Loss, raw: Array, Y: Array, w: Array | None) -> float:
        """The share of rows all of whose labels are right, as scikit-learn's accuracy."""
        predicted = self.labels(loss.predict(raw))
        return float(accuracy_score(self.as_handed_in(Y), predicted, sample_weight=w))

    def calibration(self, loss: Loss, held_out: tuple[HeldOut, ...]) -> None:
        """None: sets are of classes that exclude each other."""


def n_columns_of(y: Any) -> int:
    """How many columns y has; 1 if it has one axis, or rows of different lengths."""
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:
        return 1
    return int(shape[1]) if len(shape) == 2 else 1


def labels_to_fit(y: Any, class_weight: Any) -> Array:
    """A matrix of labels (n, L); refuses weights by class, as a row has one for all its labels."""
    if class_weight is not None:
        raise ValueError(
            "class_weight is for one label per row, and y has several columns: a row counts alike "
            "for all of them. Pass sample_weight, or fit a model for each column with "
            "sklearn.multioutput.MultiOutputClassifier."
        )
    return label_matrix(y, "y")


def label_matrix(y: Any, name: str) -> Array:
    """A matrix of labels as numbers (n, L); refuses what is not one."""
    Y = check_array(as_frame(y), accept_sparse=True, dtype=None, input_name=name)
    Y = Y.toarray() if sparse.issparse(Y) else Y
    Y = np.asarray(Y.tolist()) if Y.dtype == object else Y
    if Y.dtype.kind not in "biuf" or not ((Y == 0) | (Y == 1)).all():
        raise ValueError(
            f"{name} has {Y.shape[1]} columns that do not all hold 0 and 1 alone. Several columns "
            "are taken as labels that a row has, 1, or has not, 0. For columns of other classes "
            "(multi-output classification) fit sklearn.multioutput.MultiOutputClassifier("
            "RFRBoostClassifier()), which has a model for each column."
        )
    return Y.astype(float)


def class_weighted(w: Array | None, labels: np.ndarray, class_weight: Any) -> Array:
    """Weights (n,) times the factor of each row's class."""
    classes, codes = np.unique(labels, return_inverse=True)
    rows = np.ones(len(codes)) if w is None else w
    if class_weight == "balanced":
        mass = np.bincount(codes, rows)
        factors = np.divide(mass.sum(), len(mass) * mass, out=np.zeros(len(mass)), where=mass > 0)
    else:
        unknown = [label for label in class_weight if label not in classes]
        if unknown:
            raise ValueError(
                f"class_weight names the class {str(unknown[0])!r}, which is not in y. Name "
                f"classes as in y: {', '.join(map(repr, classes.tolist()[:10]))}."
            )
        factors = np.array(
            [class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float
        )
        if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
            raise ValueError("class_weight must be numbers of zero or more, some of them positive.")
    weighted: Array = rows * factors[codes]
    return weighted
