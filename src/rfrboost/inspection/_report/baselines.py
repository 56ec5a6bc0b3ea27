"""The scikit-learn models that ours is compared with: boosted trees and a linear model.

Each is a pipeline that takes the same data frame as rfrboost and encodes it as the model needs.
Settings are scikit-learn's defaults, except that ridge regression chooses its penalty and
logistic regression may take 1,000 iterations.
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

# The most categories of a column; the rarest become one category. The trees can take 255 at most,
# and a linear model gets a column for each.
TREE_LEVELS = 250
LINEAR_LEVELS = 100
# Penalties that ridge regression chooses from, for standardised columns.
PENALTIES = np.logspace(-3, 3, 7)
# Kinds of NumPy dtypes: durations and dates, and the columns that plain_frame makes numeric.
TIMES = "mM"
NUMERIC = "fmM"


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A data frame with dates and durations as days and categories as text."""
    return pd.DataFrame({name: plain_column(frame[name]) for name in frame.columns})


def plain_column(column: pd.Series) -> pd.Series:
    """One column as numbers, or as text with NaN for missing values."""
    kind = column.dtype.kind
    if kind in TIMES:
        zero = pd.Timedelta(0) if kind == "m" else pd.Timestamp(0, tz=column.dt.tz)
        return (column - zero) / pd.Timedelta(days=1)
    if kind == "f":
        return column
    return column.astype(object).map(str, na_action="ignore").where(column.notna(), np.nan)


def by_kind(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns that :func:`plain_frame` makes numeric, and those that it makes text.

    Columns without any value are left out, because the trees cannot bin them.
    """
    held = [name for name in frame.columns if frame[name].notna().any()]
    numbers = [name for name in held if frame[name].dtype.kind in NUMERIC]
    return numbers, [name for name in held if frame[name].dtype.kind not in NUMERIC]


def trees(frame: pd.DataFrame, y: np.ndarray, task: str, seed: int) -> Any:
    """Histogram gradient boosting, which takes missing values and category codes directly."""
    numbers, categories = by_kind(frame)
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=TREE_LEVELS,
    )
    categorical = list(range(len(categories)))
    if task == "regression":
        model: Any = HistGradientBoostingRegressor(
            categorical_features=categorical, random_state=seed
        )
    else:
        # Early stopping holds out rows of every class, which needs two rows of each.
        alone = np.unique(y, return_counts=True)[1].min() < 2
        model = HistGradientBoostingClassifier(
            categorical_features=categorical,
            random_state=seed,
            early_stopping=False if alone else "auto",
        )
    encoder = make_column_transformer((codes, categories), ("passthrough", numbers))
    return make_pipeline(FunctionTransformer(plain_frame), encoder, model)


def linear(frame: pd.DataFrame, y: np.ndarray, task: str, seed: int) -> Any:
    """Ridge or logistic regression on standardised numbers and one column per category."""
    numbers, categories = by_kind(frame)
    filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    indicators = OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=LINEAR_LEVELS, sparse_output=False
    )
    encoder = make_column_transformer(
        (make_pipeline(filled, StandardScaler()), numbers), (indicators, categories)
    )
    model = RidgeCV(PENALTIES) if task == "regression" else LogisticRegression(max_iter=1000)
    return make_pipeline(FunctionTransformer(plain_frame), encoder, model)
