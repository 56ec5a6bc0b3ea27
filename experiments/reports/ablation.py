"""The tables of the ``ablation`` command: SWIM against i.i.d. features, and the kinds of step.

Tests are Wilcoxon's signed-rank tests over datasets, with Holm's correction over the rows of a
table.
"""

import numpy as np
import pandas as pd

from experiments.models.naming import IID, SWIM, in_order, label
from experiments.reports.significance import holm, p_value_text, signed_rank_p_value
from experiments.reports.summaries import (
    LOWER_IS_BETTER,
    SCORE,
    TASKS,
    Complete,
    complete_part,
    left_out_text,
    summary_rows,
)

STEPS = [kind + SWIM for kind in ("gradient", "dense", "diagonal", "scalar")]


def ablation_tables(runs: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The tables by title, and a note for each about datasets that are left out."""
    tables = {}
    notes = []
    for task in TASKS:
        of_task = runs[runs["task"] == task]
        pairs = feature_pairs(of_task)
        groups = {
            f"SWIM against i.i.d., {task}": (
                [name for pair in pairs for name in pair],
                feature_rows,
            ),
            f"Kinds of step, {task}": ([s for s in STEPS if s in set(of_task["model"])], step_rows),
        }
        for title, (models, rows) in groups.items():
            if len(models) > 1:
                part = complete_part(of_task[of_task["model"].isin(models)], task)
                tables[title] = rows(part)
                notes += [f"{title}. {left_out_text(part)}"] if part.left_out else []
    return tables, notes


def feature_pairs(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """The names of each model that has runs with SWIM and with i.i.d. features: (SWIM, i.i.d.)."""
    models = set(runs["model"])
    stems = [m.removesuffix(SWIM) for m in in_order(list(models)) if m.endswith(SWIM)]
    return [(stem + SWIM, stem + IID) for stem in stems if stem + IID in models]


def feature_rows(part: Complete) -> pd.DataFrame:
    """Two rows per model, SWIM first; the test compares the two."""
    summary = summary_rows(part).set_index("model")
    pairs = feature_pairs(part.runs)
    gains = {pair: _gain(part, *pair) for pair in pairs}
    p_values = holm([signed_rank_p_value(gain) for gain in gains.values()])
    rows = [
        {
            "model": label(pair[0]),
            "features": features,
            "datasets": len(part.datasets),
            f"mean {SCORE[part.task]}": summary.loc[name, "mean_score"],
            "wins": int((sign * gains[pair] > 0).sum()),
            "fit seconds": summary.loc[name, "fit_seconds"],
            "p": p,
        }
        for pair, p in zip(pairs, p_values, strict=True)
        for name, features, sign in ((pair[0], "SWIM", 1), (pair[1], "i.i.d.", -1))
    ]
    return pd.DataFrame(rows)


def step_rows(part: Complete) -> pd.DataFrame:
    """One row per kind of step: datasets where it is best, and a test against the first kind."""
    scores = part.scores()
    best = part.ranks().eq(1).sum()  # a shared first place has rank 1.5 and is no win
    first, *others = part.models
    p_values = holm([signed_rank_p_value(_gain(part, other, first)) for other in others])
    summary = summary_rows(part)
    return pd.DataFrame(
        {
            "model": summary["label"],
            "datasets": summary["datasets"],
            f"mean {SCORE[part.task]}": summary["mean_score"],
            "mean rank": summary["mean_rank"],
            "wins": [int(best[model]) for model in scores.columns],
            "fit seconds": summary["fit_seconds"],
            f"p against {label(first)}": [float("nan"), *p_values],
        }
    )


def _gain(part: Complete, model: str, other: str) -> np.ndarray:
    """How much better ``model`` is than ``other`` on each dataset."""
    scores = part.scores()
    sign = -1.0 if LOWER_IS_BETTER[part.task] else 1.0
    return np.round(sign * (scores[model] - scores[other]).to_numpy(), 12)


def as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as they are printed: numbers with three decimals."""
    text = rows.copy()
    for column in text.select_dtypes("float"):
        form = p_value_text if column.split()[0] == "p" else "{:.3f}".format
        text[column] = rows[column].map(form)
    return text
