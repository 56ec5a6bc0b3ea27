"""What a fitted model answers, digests of it, and words for how two answers differ."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

#: rows whose gradients are taken: a table of rows × columns × outputs each
GRADIENT_ROWS = 60

Answers = dict[str, np.ndarray]


def history(model: Any) -> np.ndarray:
    """Loss, step length and gradient norm of every layer; its seconds are left out."""
    records = model.history_
    return np.array([[r["loss"], r["step_length"], r["gradient_norm"]] for r in records])


def onnx_constants(model: Any) -> np.ndarray:
    """Digests of the arrays in the ONNX graph, sorted, so that names and order do not matter."""
    from onnx.numpy_helper import to_array

    return np.array(sorted(digest(to_array(c)) for c in model.to_onnx().graph.initializer))


#: what every model is asked; most models refuse some of it
QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, X: model.predict(X),
    "predict, one row": lambda model, X: model.predict(X[:1]),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "transform": lambda model, X: model.transform(X),
    "staged_predict": lambda model, X: list(model.staged_predict(X)),
    "staged_predict_proba": lambda model, X: list(model.staged_predict_proba(X)),
    "predict with return_std": lambda model, X: model.predict(X, return_std=True)[1],
    "predict_interval": lambda model, X: model.predict_interval(X, coverage=0.8),
    "predict_set": lambda model, X: model.predict_set(X, coverage=0.8),
    "input_gradient": lambda model, X: model.input_gradient(X[:GRADIENT_ROWS]),
    "feature_importances_": lambda model, X: model.feature_importances_,
    "oof_prediction_": lambda model, X: model.oof_prediction_,
    "oof_score_": lambda model, X: model.oof_score_,
    "history_": lambda model, X: history(model),
    "get_feature_names_out": lambda model, X: model.get_feature_names_out(),
    "ONNX constants": lambda model, X: onnx_constants(model),
}


def answers_of(model: Any, X: Any) -> Answers:
    """The answer to every question, or the name of the error that a model refuses it with.

    The error's text may differ between commits. A model that neither predicts nor transforms is
    not fitted, and its error is raised.
    """
    found: Answers = {}
    for question, ask in QUESTIONS.items():
        try:
            found[question] = np.asarray(ask(model, X))
        except Exception as error:
            found[question] = np.array(type(error).__name__)
    if found["transform"].ndim == 0:
        model.transform(X)
    return found


def is_text(array: np.ndarray) -> bool:
    """Whether an array holds strings or objects, whose bytes say nothing."""
    return array.dtype.kind in "OU"


def form(array: np.ndarray) -> str:
    """Type and shape; how long the longest string is does not matter."""
    kind = {"O": "object", "U": "str"}.get(array.dtype.kind, array.dtype.str)
    return f"{kind} {array.shape}"


def digest(array: np.ndarray) -> str:
    """SHA-256 of type, shape and bits; strings and objects by what they print."""
    bits = repr(array.tolist()).encode() if is_text(array) else array.tobytes()
    return hashlib.sha256(f"{form(array)} ".encode() + bits).hexdigest()


def fingerprint(answers: Answers) -> str:
    """One digest of all answers."""
    parts = [f"{question} {digest(array)}" for question, array in sorted(answers.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def described(array: np.ndarray) -> str:
    """Type and shape, or the one string that names a refusal."""
    return array.item() if is_text(array) and array.ndim == 0 else form(array)


def difference(old: np.ndarray, new: np.ndarray) -> str | None:
    """How two arrays differ, in words; None if they are equal to the bit."""
    if digest(old) == digest(new):
        return None
    if form(old) != form(new):
        return f"{described(old)} became {described(new)}"
    unlike = old != new
    if old.dtype.kind != "f":
        return f"{np.sum(unlike)} of {old.size} values differ"
    unlike &= ~(np.isnan(old) & np.isnan(new))
    if not unlike.any():
        return "equal values of other bits (signs of zeros, or kinds of NaN)"
    gap = np.abs(old[unlike] - new[unlike])
    size = np.nanmax(np.abs(old), initial=0.0, where=np.isfinite(old)) or 1.0
    return (
        f"{np.sum(unlike)} of {old.size} values differ, by at most {gap.max():.2g} "
        f"({gap.max() / size:.1g} of the largest)"
    )


def differences(old: Answers, new: Answers) -> list[str]:
    """A line for every question that is answered differently."""
    found = []
    for question in sorted(old.keys() | new.keys()):
        if question not in old or question not in new:
            found.append(f"{question}: only one of the two was asked")
            continue
        words = difference(old[question], new[question])
        if words is not None:
            found.append(f"{question}: {words}")
    return found
