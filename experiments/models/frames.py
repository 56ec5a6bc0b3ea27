"""Data frames with categories, in the form that each library of trees reads.

A separate module, because importing it imports pandas and scikit-learn, which ``--help`` does not
need.
"""

from typing import Any, Self

import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

Inputs = NDArray | pd.DataFrame
# The text that stands for a missing level.
MISSING = "(missing)"


class FrameReader(BaseEstimator):
    """Fits ``model`` on data frames whose columns are numbers or of a categorical dtype.

    Columns get their positions as names, because LightGBM refuses some characters. LightGBM and
    XGBoost know categories by their dtype. If ``names_categories`` is true, as for CatBoost,
    categories are passed as text, missing ones too, and their columns as ``cat_features``. Arrays
    are passed on unchanged.
    """

    def __init__(self, model: Any, names_categories: bool) -> None:
        self.model = model
        self.names_categories = names_categories

    def fit(self, X: Inputs, y: NDArray) -> Self:
        """Fit on X (n, p) and y (n)."""
        read, texts = self._read(X)
        if texts:
            self.model.fit(read, y, cat_features=texts)
        else:
            self.model.fit(read, y)
        return self

    def predict(self, X: Inputs) -> NDArray:
        """The model's predictions."""
        return self.model.predict(self._read(X)[0])

    def predict_proba(self, X: Inputs) -> NDArray:
        """The model's class probabilities."""
        return self.model.predict_proba(self._read(X)[0])

    def _read(self, X: Inputs) -> tuple[Inputs, list[str]]:
        """X as the model takes it, and the names of the categories that are passed as text."""
        if not isinstance(X, pd.DataFrame):
            return X, []
        frame = by_position(X)
        texts = categories(frame) if self.names_categories else []
        return frame.assign(**{name: as_text(frame[name]) for name in texts}), texts


def by_position(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with columns named c0, c1, …"""
    return frame.set_axis([f"c{j}" for j in range(frame.shape[1])], axis=1)


def as_text(column: pd.Series) -> pd.Series:
    """Levels as text; a missing one is a level of its own."""
    return column.astype(object).where(column.notna(), MISSING).map(str)


def categories(frame: pd.DataFrame) -> list[str]:
    """The names of the columns of a categorical dtype."""
    return list(frame.select_dtypes("category").columns)
