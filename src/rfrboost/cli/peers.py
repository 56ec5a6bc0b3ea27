"""The models of scikit-learn that ``evaluate`` sets beside ours, with the encoding they need."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from rfrboost.cli.tasks import Task

# The trees' own limit on categories is 255; rarer ones are one category.
TREE_LEVELS, LINEAR_LEVELS = 250, 100
PENALTIES = np.logspace(-3, 3, 7)


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Dates and durations as numbers of days, categories as text."""
    return pd.DataFrame({name: plain_column(frame[name]) for name in frame.columns})


def plain_column(column: pd.Series) -> pd.Series:
    """One column as numbers, or as text with NaN for holes."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "mM":
        zero = (
            pd.Timedelta(0) if kind == "m" else pd.Timestamp(0, tz=getattr(column.dt, "tz", None))
        )
        return (column - zero) / pd.Timedelta(days=1)
    if kind == "f":
        return column
    return column.astype(object).map(str, na_action="ignore").where(column.notna(), np.nan)


def sorted_out(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns that :func:`plain_frame` makes numbers of, and the others.

    Those with nothing in them are left out: trees cannot bin them.
    """
    held = [name for name in frame.columns if frame[name].notna().any()]
    kinds = {name: getattr(frame[name].dtype, "kind", "O") for name in held}
    numbers = [name for name, kind in kinds.items() if kind in "fmM"]
    return numbers, [name for name, kind in kinds.items() if kind not in "fmM"]


def trees(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
    """Histogram gradient boosting, which takes holes and codes of categories as they are."""
    numbers, words = sorted_out(frame)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=TREE_LEVELS,
    )
    categorical = list(range(len(words)))
    if task == Task.REGRESSION:
        model: Any = HistGradientBoostingRegressor(
            categorical_features=categorical, random_state=seed
        )
    else:
        # Stopping early holds rows of every class out, of which a class with one row has none.
        alone = np.unique(y, return_counts=True)[1].min() < 2
        model = HistGradientBoostingClassifier(
            categorical_features=categorical,
            random_state=seed,
            early_stopping=False if alone else "auto",
        )
    encoder = make_column_transformer((codes, words), ("passthrough", numbers))
    return make_pipeline(FunctionTransformer(plain_frame), encoder, model)


def linear(frame: pd.DataFrame, y: np.ndarray, task: Task, seed: int) -> Any:
    """Ridge or logistic regression on standardised numbers and one column a category."""
    numbers, words = sorted_out(frame)
    filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    indicators = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=LINEAR_LEVELS, sparse_output=False
    )
    encoder = make_column_transformer(
        (make_pipeline(filled, StandardScaler()), numbers), (indicators, words)
    )
    model = RidgeCV(PENALTIES) if task == Task.REGRESSION else LogisticRegression(max_iter=1000)
    return make_pipeline(FunctionTransformer(plain_frame), encoder, model)
