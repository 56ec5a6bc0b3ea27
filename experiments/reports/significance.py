"""Tests of differences: Wilcoxon's signed-rank test over datasets, paired t test over folds."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

ALPHA = 0.05


def pairwise_p_values(scores: pd.DataFrame) -> pd.DataFrame:
    """Wilcoxon's signed-rank test of all pairs of models over datasets, with Holm's correction.

    ``scores`` (datasets, models) becomes p-values (models, models).
    """
    from scikit_posthocs import posthoc_wilcoxon

    long = scores.melt(var_name="model", value_name="score")
    # Two models with equal scores everywhere give 0/0: no difference, p = 1.
    with np.errstate(invalid="ignore", divide="ignore"):
        p_values = posthoc_wilcoxon(long, "score", "model").fillna(1.0)
    table = p_values.to_numpy(copy=True)
    upper = np.triu_indices_from(table, k=1)
    table[upper] = table.T[upper] = holm(list(table[upper]))
    return pd.DataFrame(table, index=p_values.index, columns=p_values.columns)


def signed_rank_p_value(differences: NDArray) -> float:
    """p of Wilcoxon's signed-rank test that the median is zero; 1 if all differences are zero."""
    # Rounded, so that rounding errors do not count as differences.
    differences = np.round(differences, 12)
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def holm(p_values: list[float]) -> list[float]:
    """Holm's correction, which bounds the probability of any false rejection."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]]


def paired_t_p_value(differences: NDArray) -> float:
    """p of a paired t test over the folds of one dataset; NaN if the differences do not vary.

    Folds share training rows, so that p is somewhat too small.
    """
    n = len(differences)
    spread = np.std(differences, ddof=1) if n > 1 else 0.0
    if spread < 1e-12:
        return float("nan")
    t = np.mean(differences) / (spread / np.sqrt(n))
    return float(2 * stats.t.sf(abs(t), n - 1))


def p_value_text(p: float) -> str:
    """A p-value as text: three decimals, NaN as a dash."""
    if np.isnan(p):
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
