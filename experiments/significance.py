"""Is a difference more than chance? Signed ranks over datasets, paired t over folds."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

ALPHA = 0.05


def pairwise_p_values(scores: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon's signed-rank test of every two models over datasets, Holm's correction.

    ``scores`` has a row a dataset and a column a model; the answer a row and a column a model.
    """
    from scikit_posthocs import posthoc_wilcoxon

    long = scores.melt(var_name="model", value_name="score")
    # Two models with equal scores everywhere leave nothing to rank, 0/0: no sign of a difference.
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values = posthoc_wilcoxon(long, "score", "model").fillna(1.0)
    table = p_values.to_numpy(copy=True)
    upper = np.triu_indices_from(table, k=1)
    table[upper] = table.T[upper] = holm(list(table[upper]))
    return pd.DataFrame(table, index=p_values.index, columns=p_values.columns)


def signed_rank_p_value(differences: NDArray) -> float:
    """Wilcoxon's signed-rank test against a median of zero; 1 when all are zero."""
    # Differences that are rounding errors are no evidence.
    differences = np.round(differences, 12)
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def holm(p_values: list[float]) -> list[float]:
    """Holm's correction: the chance of one false alarm among all stays below the level."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def paired_t_p_value(differences: NDArray) -> float:
    """Paired t test over the folds of one dataset; not a number where they do not vary.

    Folds share training rows, so the test is somewhat too ready to see a difference.
    """
    n = len(differences)
    spread = np.std(differences, ddof=1) if n > 1 else 0.0
    if spread < 1e-12:
        return float("nan")
    t = np.mean(differences) / (spread / np.sqrt(n))
    return float(2 * stats.t.sf(abs(t), n - 1))


def p_value_text(p: float) -> str:
    """A p-value to read: three decimals, and a dash where there is none."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
