"""The report about a model as a function of the package; its parts are in ``_report``."""

import os
from pathlib import Path
from typing import Any

import numpy as np


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str] = "report.html",
    *,
    folds: int = 5,
    random_state: int = 0,
    groups: Any = None,
    cv: Any = None,
    sample_weight: Any = None,
) -> Path:
    """Write one page about a model: an HTML file that needs no other file and no network.

    It has scores with their spread beside those of boosted trees and a linear model, residuals or
    calibration, the coverage of intervals or sets, importances, partial dependence and
    interactions, the worst predicted rows, the columns, and how the model was made. The rows given
    may be those of the fit: for scores and errors the model's settings are fitted again without
    the rows of each fold, so a report takes ``folds`` fits. It shows some rows of X and y.

    Parameters
    ----------
    model : RFRBoostRegressor, RFRBoostClassifier, RFNNRegressor or RFNNClassifier
        A fitted model of one target.
    X : array-like of shape (n_samples, n_features_in)
        Rows with a label; at most 5,000 of them are used for cross-validation.
    y : array-like of shape (n_samples,)
        Their labels. If y has a name, as a column of a data frame has, the page uses it.
    path : str or path, default="report.html"
        Where to write the page; replaced if it exists.
    folds : int, default=5
        The number of cross-validation folds.
    random_state : int, default=0
        Draws folds and samples of rows.
    groups : array-like of shape (n_samples,), optional
        The group of each row, such as a customer or a day: folds hold out whole groups, as in
        ``fit``. Pass it if ``fit`` had it, or scores are too good.
    cv : cross-validation splitter, optional
        Its folds take the place of ``folds``: ``TimeSeriesSplit()``, for example, as in ``fit``.
    sample_weight : array-like of shape (n_samples,), optional
        The weight of each row, in fits and in scores.

    Returns
    -------
    pathlib.Path
        The path of the page. Needs pandas and matplotlib
        (``pip install 'rfrboost[parquet,plot]'``).
    """
    try:
        from rfrboost.inspection._report.evidence import HoldingOut
        from rfrboost.inspection._report.write import report_text
    except ImportError as error:
        raise ImportError(
            "The report needs pandas and matplotlib: pip install 'rfrboost[parquet,plot]'."
        ) from error
    out = Path(path)
    own_groups, weights = map(optional_array, (groups, sample_weight))
    holding_out = HoldingOut(folds, random_state, own_groups, weights, cv)
    out.write_text(report_text(model, X, y, holding_out), encoding="utf-8")
    return out


def optional_array(values: Any) -> np.ndarray | None:
    """Values as an array, if there are any."""
    return None if values is None else np.asarray(values)
