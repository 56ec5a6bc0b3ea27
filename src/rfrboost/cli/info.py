"""``rfrboost info``: what the header of a model file says, without loading its arrays."""

import math
from pathlib import Path
from typing import Any

from rfrboost import ModelFileError, file_info
from rfrboost.cli.console import CommandError, counted, listed, printable
from rfrboost.cli.notices import described_column, kinds_of
from rfrboost.cli.signature import DATES, NUMBERS, TEXT, Signature, read_signature

# The defaults of the estimators' parameters. They are repeated here because importing the
# estimators takes longer than all the rest; a test compares them.
BOOSTED: dict[str, Any] = {
    "n_layers": "auto",
    "strategy": "gradient",
    "step_matrix": "dense",
    "loss": "squared_error",
    "quantile": 0.5,
    "features": "auto",
    "n_features": "auto",
    "feature_scale": "auto",
    "pair_sampling": "gradient",
    "activation": "tanh",
    "initial": "identity",
    "initial_scale": None,
    "hidden_dim": None,
    "learning_rate": "auto",
    "l2_head": "auto",
    "l2_step": "auto",
    "normalize": False,
    "metric": "auto",
    "preprocess": "auto",
    "categorical_features": "from_dtype",
    "n_bags": 5,
    "class_weight": None,
    "n_jobs": None,
    "max_seconds": None,
    "scoring": None,
    "snapshot": None,
    "sample_splitting": False,
    "random_state": None,
    "warm_start": False,
    "verbose": 0,
    "callbacks": None,
}
SHALLOW: dict[str, Any] = {
    "n_features": 512,
    "loss": "squared_error",
    "quantile": 0.5,
    "features": "swim",
    "feature_scale": 0.5,
    "pair_sampling": "gradient",
    "activation": "tanh",
    "l2_head": 1e-3,
    "random_state": None,
}
DEFAULTS = {
    "RFRBoostRegressor": BOOSTED,
    "RFRBoostClassifier": BOOSTED,
    "RFNNRegressor": SHALLOW,
    "RFNNClassifier": SHALLOW,
}
#: the tag of the loss of models for several labels per row
LABELS_LOSS = "LabelsLogLoss"
# Columns that are described one by one.
MOST_COLUMNS = 100
#: adjectives for what columns held in fit
ADJECTIVES = {NUMBERS: "numeric", DATES: "date", TEXT: "categorical"}


def info(model: str) -> None:
    """Print one fact per line."""
    if not Path(model).exists():
        raise CommandError(f"There is no file {model}.")
    try:
        lines = described(model)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise CommandError(f"Cannot read {model}: its header is damaged.") from error
    width = max(map(len, lines))
    for name, text in lines.items():
        print(f"{name:<{width}}  {printable(text)}")


def described(model: str) -> dict[str, str]:
    """The facts, by their names."""
    found = file_info(model)
    fitted = found["fitted"]
    # Models of older versions have no report.
    report = (fitted.get("encoder") or {}).get("report") or []
    numbers = sum(math.prod(array["shape"]) for array in found["arrays"].values())
    lines = {
        "file": f"{model}, {found['bytes'] / 1e6:.2f} MB",
        "model": str(found["estimator"]),
        "written by": f"rfrboost {found['version']}, format {found['format']}",
        "arrays": f"{counted(len(found['arrays']), 'array')}, {counted(numbers, 'number')}",
        "columns": columns(model, report),
        "training rows": training_rows(found["centres"]),
    }
    if fitted.get("compression"):
        lines["compressed"] = compressed(fitted["compression"])
    for column in report[:MOST_COLUMNS]:
        lines[f"  {printable(column['name'])}"] = described_column(column)
    if "classes" in fitted:
        labels = [str(label) for label in fitted["classes"]["values"]]
        several = fitted["loss"]["kind"] == LABELS_LOSS
        lines["classes"] = (
            "several labels per row, each 0 or 1"
            if several
            else f"{len(labels):,}: {listed(labels, 20)}"
        )
    changed = changed_parameters(found["estimator"], found["parameters"])
    lines["parameters"] = listed(changed, 40) if changed else "the defaults"
    lines["checksum"] = str(found["checksum"])
    return lines


def training_rows(centres: int) -> str:
    """Whether the file holds rows that the model was fitted on."""
    return f"{centres:,} held, as centres of radial features" if centres else "none held"


def compressed(record: dict[str, Any]) -> str:
    """What a smaller model keeps, and what that costs."""
    kept = f"{record['features']:,} of {record['features_before']:,} features"
    errors = f"{record['error_before']:.4g} to {record['error']:.4g}"
    how = "measured on validation rows" if record["measured"] else "estimated"
    return f"{kept}, {record['metric']} from {errors} ({how})"


def columns(model: str, report: list[dict[str, Any]]) -> str:
    """The number of columns, how many are of each kind, and their names."""
    signature = read_signature(model)
    kinds = kinds_of(report) if report else kinds_held(signature)
    names = "" if signature.names is None else f": {listed(signature.names, 20)}"
    return f"{signature.n_columns:,} ({kinds}){names}"


def kinds_held(signature: Signature) -> str:
    """How many columns of each kind a model without a report takes."""
    found = signature.counts()
    counts = [f"{found[kind]:,} {word}" for kind, word in ADJECTIVES.items() if kind in found]
    unused = signature.n_columns - sum(found.values())
    return ", ".join(counts + ([f"{unused:,} not used"] if unused else []))


def changed_parameters(estimator: str, parameters: dict[str, Any]) -> list[str]:
    """The parameters that are not at their defaults."""
    defaults = DEFAULTS.get(estimator, {})
    return [
        f"{name}={value!r}"
        for name, value in parameters.items()
        if name not in defaults or defaults[name] != value
    ]
