"""One model in three places: where it was fitted, loaded from its file, and in onnxruntime."""

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from experiments.datasets import LABEL

# Threads of the process that fits, and of the one that loads.
FITTED_ON, LOADED_ON = 1, 2
OTHER_ROWS = 1000
SEED = 0


@dataclass(frozen=True)
class Exported:
    """What was found on one table.

    Differences are the largest over rows, of numbers in units of the predictions' standard
    deviation, of classes between probabilities. ``rounding`` is what the model itself makes of
    inputs rounded to single precision; ``onnx`` is beyond that, and None where ONNX is refused.
    """

    rows: int
    other_rows: int
    columns: int
    classes: int
    model_bytes: int
    loaded_equal: bool
    loaded: float
    rounding: float | None = None
    onnx: float | None = None
    onnx_bytes: int | None = None
    refused: str | None = None


def compared(frame: pd.DataFrame, task: str, rows: int) -> Exported:
    """Fit on some rows of a table, and compare what is said of others."""
    with threadpool_limits(limits=FITTED_ON):
        training, others = parts(frame, rows)
        model = fitted(training, task)
        X = others.drop(columns=LABEL)
        here = predictions(model, X)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.rfrboost"
            model.save(path)
            elsewhere, size = in_new_process(path, X), path.stat().st_size
        return Exported(
            rows=len(training),
            other_rows=len(others),
            columns=X.shape[1],
            classes=len(getattr(model, "classes_", ())),
            model_bytes=size,
            loaded_equal=here.tobytes() == elsewhere.tobytes(),
            loaded=difference(elsewhere, here, here),
            **in_onnx(model, X, here),
        )


def parts(frame: pd.DataFrame, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Random rows to fit on, and others; of a short table two thirds and the rest."""
    shuffled = frame.sample(frac=1, random_state=SEED)
    first = min(rows, 2 * len(frame) // 3)
    return shuffled[:first], shuffled[first : first + OTHER_ROWS]


def fitted(training: pd.DataFrame, task: str) -> Any:
    """Our estimator as it comes."""
    from rfrboost import RFRBoostClassifier, RFRBoostRegressor

    X, y = training.drop(columns=LABEL), training[LABEL]
    if task == "regression":
        return RFRBoostRegressor(random_state=SEED).fit(X, y.to_numpy(float))
    return RFRBoostClassifier(random_state=SEED).fit(X, y.astype(str).to_numpy())


def predictions(model: Any, X: pd.DataFrame) -> NDArray:
    """Numbers (n) or probabilities (n, classes)."""
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def difference(one: NDArray, other: NDArray, here: NDArray) -> float:
    """The largest difference, in units of what ``here``, the model's predictions, say."""
    spread = float(here.std()) if here.ndim == 1 else 1.0
    return float(np.abs(one.reshape(here.shape) - other).max() / (spread or 1.0))


def in_new_process(path: Path, X: pd.DataFrame) -> NDArray:
    """What the model in a file predicts in a process that knows nothing else."""
    # Not forked: a fork would have the model in its memory, and the threads of this process.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(loaded_predictions, path, X).result()


def loaded_predictions(path: Path, X: pd.DataFrame) -> NDArray:
    """Load a model and predict, on another number of threads."""
    import rfrboost

    with threadpool_limits(limits=LOADED_ON):
        return predictions(rfrboost.load(path), X)


def in_onnx(model: Any, X: pd.DataFrame, here: NDArray) -> dict[str, Any]:
    """The fields of :class:`Exported` that are about ONNX."""
    try:
        graph = model.to_onnx().SerializeToString()
    except ValueError as refusal:
        return {"refused": str(refusal)}
    feed = model.onnx_inputs(X)
    numbers = {name: column.ravel() for name, column in feed.items() if column.dtype != object}
    rounded = predictions(model, X.assign(**numbers))
    return {
        "rounding": difference(rounded, here, here),
        "onnx": difference(answered(graph, feed), rounded, here),
        "onnx_bytes": len(graph),
    }


def answered(graph: bytes, feed: dict[str, NDArray]) -> NDArray:
    """The last output of a graph: numbers, or the probabilities after the labels."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = FITTED_ON
    session = onnxruntime.InferenceSession(graph, options, ["CPUExecutionProvider"])
    return session.run(None, feed)[-1]
