"""What a fitted model answers, boiled down to digests that two processes can compare."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

METHODS = ("predict", "predict_proba", "decision_function", "transform")
STAGED = ("staged_predict", "staged_predict_proba")


def digest(answer: object) -> str:
    """Type, shape and bits of an array; objects by what they print."""
    array = np.asarray(answer)
    bits = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    kind = "U" if array.dtype.kind == "U" else array.dtype.str
    if kind == "U":
        bits = repr(array.tolist()).encode()
    return hashlib.sha256(f"{kind} {array.shape} ".encode() + bits).hexdigest()


def fingerprint(model, X) -> dict[str, str]:
    """Every public answer to X, and what a model knows of itself."""
    found = {name: digest(getattr(model, name)(X)) for name in METHODS if hasattr(model, name)}
    for name in STAGED:
        if hasattr(model, name):
            found[name] = " ".join(digest(stage) for stage in getattr(model, name)(X))
    found["parameters"] = repr(model.get_params())
    found["columns"] = repr(list(model.get_feature_names_out()))
    found["names"] = repr(list(getattr(model, "feature_names_in_", [])))
    found["classes"] = repr(getattr(model, "classes_", None))
    # Without the seconds, which are not saved.
    history = [{**record, "seconds": 0} for record in getattr(model, "history_", [])]
    found["history"] = repr(history)
    return found


def main(folder: Path) -> None:
    """Print the fingerprints of all model files in a folder, with the X beside each."""
    from sklearn.utils.validation import check_is_fitted

    import rfrboost

    found = {}
    for path in sorted(folder.glob("*.rfrboost")):
        model = rfrboost.load(path)
        check_is_fitted(model)
        found[path.stem] = fingerprint(model, np.load(path.with_suffix(".npy")))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
