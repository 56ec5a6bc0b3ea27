"""Ranges of hyper-parameters as data, and the spaces of every model that is searched.

The ranges of RFRBoost, RFNN, ridge, logistic regression, XGBoost and the MLP are those of the
paper's table of hyper-parameter ranges, in our parameters' names. Of what the table leaves out,
the scale of i.i.d. features and the width of a first layer have the range that the published
choices fill.
"""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Real:
    """A number from ``low`` to ``high``."""

    low: float
    high: float
    log: bool

    def suggest(self, trial: Any, name: str) -> float:
        """The value of an Optuna trial."""
        return trial.suggest_float(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Whole:
    """A whole number from ``low`` to ``high``, both included."""

    low: int
    high: int
    log: bool

    def suggest(self, trial: Any, name: str) -> int:
        """The value of an Optuna trial."""
        return trial.suggest_int(name, self.low, self.high, log=self.log)


@dataclass(frozen=True)
class Choice:
    """One of several whole numbers."""

    options: tuple[int, ...]

    def suggest(self, trial: Any, name: str) -> int:
        """The value of an Optuna trial."""
        return trial.suggest_categorical(name, self.options)


Space = dict[str, Real | Whole | Choice]


@dataclass(frozen=True)
class Search:
    """A recipe whose parameters are yet to be found: where to look for them, and how long."""

    estimator: str
    fixed: dict[str, Any] = field(hash=False)
    space: Space = field(hash=False)
    trials: int
    inner_folds: int


PENALTY = Real(1e-5, 10.0, log=True)
WIDTH = Whole(16, 512, log=True)
SWIM_SCALE = Real(0.25, 2.0, log=False)
IID_SCALE = Real(0.1, 10.0, log=True)

LINEAR: Space = {"l2_head": PENALTY}
RFNN: Space = {"l2_head": PENALTY, "n_features": WIDTH}
BOOSTED: Space = {
    "n_layers": Whole(1, 10, log=True),
    "l2_head": PENALTY,
    "l2_step": PENALTY,
    "learning_rate": Real(0.1, 1.0, log=True),
}
XGBOOST: Space = {
    "reg_alpha": Real(1e-5, 1e-2, log=True),
    "reg_lambda": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "max_depth": Whole(1, 10, log=False),
}
MLP: Space = {
    "n_blocks": Whole(1, 10, log=False),
    "lr": Real(1e-6, 1e-1, log=True),
    "end_lr_factor": Real(0.01, 1.0, log=True),
    "n_epochs": Whole(10, 50, log=True),
    "weight_decay": Real(1e-6, 1e-3, log=True),
    "batch_size": Choice((128, 256, 384, 512)),
    "hidden_dim": WIDTH,
}
# The next three are not in the paper. Rounds, rate and penalty as for XGBoost, so that no
# library gets a larger budget of trees; the size of a tree in the library's own terms.
LIGHTGBM: Space = {
    "reg_lambda": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "num_leaves": Whole(2, 256, log=True),
    "min_child_samples": Whole(1, 100, log=True),
}
HISTOGRAM: Space = {
    "l2_regularization": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "max_iter": Whole(50, 1000, log=True),
    "max_leaf_nodes": Whole(2, 256, log=True),
    "min_samples_leaf": Whole(1, 100, log=True),
}
# A symmetric tree of depth 8 has 256 leaves, the most that the others can have.
CATBOOST: Space = {
    "l2_leaf_reg": Real(1e-3, 100.0, log=True),
    "learning_rate": Real(0.01, 0.5, log=True),
    "n_estimators": Whole(50, 1000, log=True),
    "max_depth": Whole(1, 8, log=False),
}
