"""The published model variants, and their hyper-parameters translated into our recipes.

Each published run stores the hyper-parameters that were chosen for it, under the names of the
authors' code. A variant maps them to one of our estimators.
"""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.models.recipes import Recipe, Value
from experiments.requests import UsageError, select

# Published name of a kind of features: our name, and the published name of its scale.
FEATURES = {"SWIM": ("swim", "SWIM_scale"), "iid": ("uniform", "iid_scale")}
# The SWIM scale of the first layer in the authors' code when a run stores none.
DEFAULT_SWIM_SCALE = 0.5
# Settings that all published runs share; a run with another value cannot be replayed.
FIXED = {"activation": "tanh", "use_batchnorm": False, "add_features": False, "do_linesearch": True}
Hyperparameters = dict[str, str | int | float | bool]


def ridge(h: Hyperparameters) -> Recipe:
    """Ridge regression on the prepared inputs."""
    return Recipe("Ridge", {"l2_head": h["l2_reg"]})


def logistic(h: Hyperparameters) -> Recipe:
    """Logistic regression on the prepared inputs."""
    return Recipe("LogisticRegression", {"l2_head": h["l2_lambda"]})


def rfnn_regressor(h: Hyperparameters) -> Recipe:
    """One random layer and a ridge head."""
    return Recipe("RFNNRegressor", _random_layer(h) | {"l2_head": h["l2_reg"]})


def rfnn_classifier(h: Hyperparameters) -> Recipe:
    """One random layer and a logistic head."""
    return Recipe("RFNNClassifier", _random_layer(h) | {"l2_head": h["l2_cls"]})


def gradient_regressor(h: Hyperparameters) -> Recipe:
    """Gradient boosting of the representation, Φ_0 = x."""
    parameters = _boosting(h) | _wide_layers(h) | {"strategy": "gradient", "l2_head": h["l2_reg"]}
    return Recipe("RFRBoostRegressor", parameters)


def gradient_classifier(h: Hyperparameters) -> Recipe:
    """Gradient boosting of the representation, Φ_0 = x, with a logistic head."""
    parameters = _boosting(h) | _wide_layers(h) | {"l2_head": h["l2_cls"]}
    return Recipe("RFRBoostClassifier", parameters)


def dense_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with a full step matrix A_t, Φ_0 = x."""
    return _greedy("dense", h, _wide_layers(h))


def diagonal_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with a diagonal step matrix A_t, Φ_0 a random layer."""
    return _greedy("diagonal", h, _first_layer(h))


def scalar_regressor(h: Hyperparameters) -> Recipe:
    """Greedy boosting with a scalar step A_t, Φ_0 a random layer."""
    return _greedy("scalar", h, _first_layer(h))


def _greedy(step_matrix: str, h: Hyperparameters, layers: dict[str, Value]) -> Recipe:
    choice = {"strategy": "greedy", "step_matrix": step_matrix, "l2_head": h["l2_reg"]}
    return Recipe("RFRBoostRegressor", _boosting(h) | layers | choice)


def _boosting(h: Hyperparameters) -> dict[str, Value]:
    """The parameters that every boosted model has."""
    features, scale = FEATURES[h["feature_type"]]
    return {
        "n_layers": h["n_layers"],
        "features": features,
        "feature_scale": h[scale],
        "activation": h["activation"],
        "learning_rate": h["boost_lr"],
        "l2_step": h["l2_ghat"],
    }


def _wide_layers(h: Hyperparameters) -> dict[str, Value]:
    """Parameters of models with Φ_0 = x, whose layers are wider than Φ."""
    widths = (h["randfeat_xt_dim"], h["randfeat_x0_dim"])
    return {"initial": "identity", "n_features": widths}


def _first_layer(h: Hyperparameters) -> dict[str, Value]:
    """Parameters of models whose Φ_0 is a random layer; all layers have its width.

    The stored ``randfeat_*`` widths are ignored, as in the authors' code. Runs with i.i.d. features
    also begin with a SWIM layer, which has its own scale.
    """
    initial, scale = FEATURES[h["upscale_type"]]
    layer: dict[str, Value] = {"initial": initial, "hidden_dim": h["hidden_dim"]}
    if h["upscale_type"] != h["feature_type"]:
        layer["initial_scale"] = h.get(scale, DEFAULT_SWIM_SCALE)
    return layer


def _random_layer(h: Hyperparameters) -> dict[str, Value]:
    features, scale = FEATURES[h["upscale_type"]]
    return {"features": features, "n_features": h["hidden_dim"], "feature_scale": h[scale]}


@dataclass(frozen=True)
class Variant:
    """A variant: our name, its task, its published name, and the translation to a recipe."""

    name: str
    task: str
    published: str
    translate: Callable[[Hyperparameters], Recipe]

    def recipe(self, hyperparameters: Hyperparameters) -> Recipe:
        """Our recipe for a published run of this variant with these hyper-parameters."""
        for key, value in FIXED.items():
            if hyperparameters.get(key, value) != value:
                raise UsageError(
                    f"A published run of {self.published} has {key}={hyperparameters[key]!r}; "
                    f"only {key}={value!r} can be replayed."
                )
        return self.translate(hyperparameters)


# (published name with SWIM features, its ending for i.i.d. features, our name, task, translation)
_FAMILIES = (
    (
        "GradientRFRBoost_ID_batchnormFalse",
        "_featiid",
        "gradient",
        "regression",
        gradient_regressor,
    ),
    ("GreedyRFRBoostDense_ID_batchnormFalse", "_featiid", "dense", "regression", dense_regressor),
    ("GreedyRFRBoostDiag_batchnormFalse", "_featiid", "diagonal", "regression", diagonal_regressor),
    ("GreedyRFRBoostScalar_batchnormFalse", "_featiid", "scalar", "regression", scalar_regressor),
    ("RFNN", "_iid", "rfnn", "regression", rfnn_regressor),
    ("RFRBoost_ID_batchnormFalse", "_featiid", "rfrboost", "classification", gradient_classifier),
    ("RFNN", "_iid", "rfnn", "classification", rfnn_classifier),
)
VARIANTS: tuple[Variant, ...] = (
    *(
        Variant(f"{name}-{kind}", task, published + mark, translate)
        for published, iid_mark, name, task, translate in _FAMILIES
        for kind, mark in (("swim", ""), ("iid", iid_mark))
    ),
    Variant("ridge", "regression", "Ridge", ridge),
    Variant("logistic", "classification", "LogisticRegression", logistic),
)


def variant_names() -> list[str]:
    """The names of all variants; some names stand for one variant of each task."""
    return sorted({variant.name for variant in VARIANTS})


def select_variants(names: list[str] | None) -> tuple[Variant, ...]:
    """The variants with these names; all variants when ``names`` is None."""
    wanted = select("model", names, variant_names())
    return tuple(variant for variant in VARIANTS if variant.name in wanted)
