"""One case of ``benchmarks.limit_cases`` in a process of its own: times, memory and scores as JSON.

python -m benchmarks.limit_run TABLE NUMBER
"""

import json
import sys
import warnings
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.metrics import accuracy_score, d2_log_loss_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.limit_cases import REGRESSION, TABLES, LimitCase, blocks_of
from benchmarks.memory import megabytes
from rfrboost import RFRBoostClassifier, RFRBoostRegressor

# Penalties of the linear model, the best of which is chosen on a fifth of the rows.
ALPHAS = (1.0, 10.0, 100.0, 1e3, 1e4)
# Levels of a column that the linear model sees.
MOST_LEVELS = 1000


def measured(case: LimitCase) -> dict[str, Any]:
    """Fit the case and give its figures; memory is the peak of the fit beyond the data."""
    X, y, X_test, y_test = case.data()
    estimator = RFRBoostRegressor if case.task == REGRESSION else RFRBoostClassifier
    model = estimator(max_seconds=case.limit, random_state=0)
    rows = (blocks_of(X, y),) if case.in_blocks else (X, y)
    before = megabytes("VmRSS")
    began, spent = perf_counter(), process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(*rows)
    wall, process = perf_counter() - began, process_time() - spent
    peak = megabytes("VmHWM") - before
    return {
        "name": case.name,
        "rows": case.rows,
        "columns": case.columns,
        "task": case.task,
        "limit": case.limit,
        "wall": wall,
        "process": process,
        "peak_mb": peak,
        "data_mb": n_bytes(X) / 2**20,
        "score": case.measure,
        "model": score_of(case, model, X_test, y_test),
        "linear": linear_score(case, X, y, X_test, y_test),
        "constant": constant_score(case, y, y_test),
        "layers": len(model.network_.layers),
        "sample": any("sample" in str(own.message) for own in said),
    }


def n_bytes(X: Any) -> float:
    """The size of a table: of an array, of a data frame with its text, of a sparse matrix."""
    if sparse.issparse(X):
        return float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return float(X.memory_usage(deep=True).sum() if isinstance(X, pd.DataFrame) else X.nbytes)


def score_of(case: LimitCase, model: Any, X: Any, y: NDArray) -> float:
    """The score of a fitted model."""
    if case.measure == "D²":
        return float(d2_log_loss_score(y, model.predict_proba(X), labels=model.classes_))
    score = r2_score if case.task == REGRESSION else accuracy_score
    return float(score(y, model.predict(X)))


def constant_score(case: LimitCase, y: NDArray, y_test: NDArray) -> float:
    """The score of the mean or, for labels, of the most frequent one."""
    if case.measure == "D²":
        return 0.0
    if case.task == REGRESSION:
        return float(r2_score(y_test, np.full(len(y_test), y.mean())))
    labels, counts = np.unique(y, return_counts=True)
    return float(np.mean(y_test == labels[np.argmax(counts)]))


def linear_score(case: LimitCase, X: Any, y: NDArray, X_test: Any, y_test: NDArray) -> float:
    """The score of a linear model whose penalty is chosen on a fifth of the rows."""
    fit, held, y_fit, y_held = train_test_split(X, y, test_size=0.2, random_state=0)
    scores = {a: score_of(case, linear(case, X, a).fit(fit, y_fit), held, y_held) for a in ALPHAS}
    best = max(scores, key=scores.__getitem__)
    return score_of(case, linear(case, X, best).fit(X, y), X_test, y_test)


def linear(case: LimitCase, X: Any, alpha: float) -> Any:
    """An unfitted linear model of a table like X."""
    if case.measure == "D²":
        model: Any = LogisticRegression(C=1 / alpha, max_iter=1000)
    else:
        solver = "sparse_cg" if sparse.issparse(X) or isinstance(X, pd.DataFrame) else "auto"
        kind = Ridge if case.task == REGRESSION else RidgeClassifier
        model = kind(alpha=alpha, solver=solver)
    if sparse.issparse(X):
        return model
    if not isinstance(X, pd.DataFrame):
        return make_pipeline(StandardScaler(), model)
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS)
    text = make_column_selector(dtype_exclude=np.number)
    encoder = make_column_transformer((levels, text), remainder=StandardScaler())
    return make_pipeline(encoder, model)


def main() -> None:
    """Print the figures of one case."""
    print(json.dumps(measured(TABLES[sys.argv[1]][int(sys.argv[2])])))


if __name__ == "__main__":
    main()
