"""The models of the larger-scale experiments and their grids, as in the paper's appendix.

Where its table and the published runs differ, the runs are followed: one penalty for head and
steps alike is searched for RFRBoost, and 1e-5 is among the penalties of the linear models.
"""

from experiments.grid import combinations, grid
from experiments.models import Recipe

PENALTIES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
BOOSTING = {"n_features": (512, 512), "feature_scale": 0.5, "learning_rate": 1.0}
DEPTHS_AND_PENALTIES = [
    {"n_layers": depth, "l2_head": l2, "l2_step": l2} for l2 in PENALTIES for depth in (1, 3, 6)
]
HEADS = combinations({"l2_head": PENALTIES})
TREES = combinations(
    {
        "learning_rate": [0.1, 0.033, 0.01],
        "n_estimators": [250, 500, 1000],
        "max_depth": [1, 3, 6, 10],
    }
)
NETWORK = {
    "hidden_dim": None,
    "bottleneck_dim": 512,
    "n_blocks": 3,
    "end_lr_factor": 0.01,
    "weight_decay": 1e-5,
    "batch_size": 256,
}
EPOCHS = combinations({"lr": [1e-1, 1e-2, 1e-3], "n_epochs": [10, 20, 30]})


def grids(task: str) -> dict[str, Recipe]:
    """The grid of each model of a task, the cheap models first."""
    kind = "Regressor" if task == "regression" else "Classifier"
    linear = ("ridge", "Ridge") if task == "regression" else ("logistic", "LogisticRegression")
    by = "rmse" if task == "regression" else "error rate"
    return {
        linear[0]: grid(linear[1], {}, HEADS, by),
        "rfnn-swim": grid(f"RFNN{kind}", {"n_features": 512, "feature_scale": 0.5}, HEADS, by),
        "rfrboost-swim": grid(f"RFRBoost{kind}", BOOSTING, DEPTHS_AND_PENALTIES, by),
        "mlp": grid(f"MLPResNet{kind}", NETWORK, EPOCHS, by),
        "xgboost": grid(f"XGB{kind}", {"reg_lambda": 1.0}, TREES, by),
    }


MODELS = sorted({*grids("regression"), *grids("classification")})
# The models that need a library of their own: (library, extra, what a reader calls it).
LIBRARIES = {
    "mlp": ("torch", "torch", "The MLP ResNet"),
    "xgboost": ("xgboost", "experiments", "XGBoost"),
}
PUBLISHED_NAMES = {
    "Logistic Regression": "logistic",
    "Ridge": "ridge",
    "RFNN": "rfnn-swim",
    "RFRBoost": "rfrboost-swim",
    "E2E MLP ResNet": "mlp",
    "XGBoost GPU": "xgboost",
}
