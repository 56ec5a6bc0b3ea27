"""shap's explainers for any table: with categories, dates and missing values.

``shap.Explainer(model, X)`` needs a model that can be called, which estimators cannot. The masker
that it makes of X compares cells by ``np.isclose`` (``shap/maskers/_tabular.py``, ``invariants``),
before any model is called, so that text ends in an error. Here a masker chooses cells instead, and
the model sees rows of the same types as X. Without shap, :func:`~rfrboost.inspection.attribute`
gives values of the same meaning.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._models import column_names, outputs, table_of

# The most background rows that are used: each value costs predictions for all of them.
BACKGROUND_ROWS = 50


def shap_explainer(model: Any, X: Any) -> Any:
    """An explainer of shap for a fitted model and the tables that it takes.

    Call it with the rows to explain, a data frame or an array as X, whose columns are found by
    name. Its values are those of the columns in the order of ``fit``, and add up to the prediction,
    or to the probabilities of classes, in the order of ``classes_``. All figures of shap take its
    result. Needs the package shap.

    Parameters
    ----------
    model : fitted regressor or classifier
    X : array-like of shape (n_samples, n_features_in)
        Rows to compare with, such as the training rows: at most 50 of them are used, evenly spaced.

    Returns
    -------
    shap.Explainer

    Examples
    --------
    >>> explain = shap_explainer(model, X)  # doctest: +SKIP
    >>> shap.plots.waterfall(explain(X[:1])[0])  # doctest: +SKIP
    """
    try:
        import shap
    except ImportError as error:
        raise ImportError(
            "shap_explainer needs the package shap: pip install shap. "
            "rfrboost.inspection.attribute gives such values without it."
        ) from error
    check_is_fitted(model)
    table = table_of(model, X)
    places = np.linspace(0, len(table) - 1, min(len(table), BACKGROUND_ROWS)).astype(int)
    background = cells_of(table)[places]

    def masked(mask: np.ndarray, row: np.ndarray) -> tuple[np.ndarray]:
        return (np.where(mask, row, background),)

    def predicted(rows: np.ndarray) -> np.ndarray:
        values = outputs(model, like(table, rows))
        return values[:, 0] if values.shape[1] == 1 else values

    class ByName(shap.explainers.Permutation):  # type: ignore[misc]
        """shap's permutation explainer, which finds the columns of frames by name."""

        def __call__(
            self,
            rows: Any,
            *,
            max_evals: int = 500,
            main_effects: bool = False,
            error_bounds: bool = False,
            batch_size: int | str = "auto",
            outputs: Any = None,
            silent: bool = False,
        ) -> Any:
            return super().__call__(
                table_of(model, rows),
                max_evals=max_evals,
                main_effects=main_effects,
                error_bounds=error_bounds,
                batch_size=batch_size,
                outputs=outputs,
                silent=silent,
            )

    return ByName(predicted, masked, feature_names=column_names(model, table))


def cells_of(table: Any) -> np.ndarray:
    """The cells of a table, as objects if it is a data frame."""
    return np.asarray(table, dtype=object) if hasattr(table, "iloc") else np.asarray(table)


def like(table: Any, cells: np.ndarray) -> Any:
    """Cells as a table of the same kind and types as another."""
    if not hasattr(table, "iloc"):
        return cells
    return type(table)(cells, columns=table.columns).astype(table.dtypes)
