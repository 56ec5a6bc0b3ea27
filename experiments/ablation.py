"""The ``ablation`` command: SWIM against i.i.d. features, and the four kinds of boosting step.

Print the paper's ablation tables: each model with SWIM and with i.i.d. features, the mean score,
the datasets won and the seconds of a fit; and, for regression, the gradient step beside the
greedy ones with a dense, a diagonal or a scalar matrix. They are made from the results in --out
(those of replay, by default), or from the published runs with --published.
"""

import argparse

import numpy as np
import pandas as pd

from experiments.comparison import markdown_table
from experiments.errors import UsageError
from experiments.files import write_atomically
from experiments.libraries import require
from experiments.naming import IID, SWIM, in_order, label
from experiments.significance import holm, p_value_text, signed_rank_p_value
from experiments.sources import TASKS, add_source, read_runs, target_folder
from experiments.summaries import (
    LOWER_IS_BETTER,
    SCORE,
    Complete,
    complete_part,
    left_out_text,
    summary_rows,
)

NAME = "ablation"
SUMMARY = "SWIM against i.i.d. features, and the kinds of boosting step, with wins and times"
STEPS = [kind + SWIM for kind in ("gradient", "dense", "diagonal", "scalar")]

HEADER = """\
# Ablation

A win is a dataset with the better mean score over folds; equal scores are a win of nobody.
`p` is that of Wilcoxon's signed-rank test over datasets (two-sided), after Holm's correction over
the rows of its table. Seconds are those of one fit.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_source(parser, out="experiments-output/replay")


def run(arguments: argparse.Namespace) -> int:
    """Make every table before any is written."""
    require("statsmodels", "experiments", "Holm's correction")
    tables, notes = ablation_tables(read_runs(arguments))
    if not tables:
        raise UsageError(
            "An ablation needs a model with SWIM and with i.i.d. features, or two kinds of step; "
            "these runs have neither."
        )
    sections = [f"## {title}\n\n{markdown_table(as_text(rows))}" for title, rows in tables.items()]
    report = "\n".join([HEADER, *sections, *notes])
    folder = target_folder(arguments)
    for title, rows in tables.items():
        write_atomically(folder / f"{file_name(title)}.csv", rows.to_csv(index=False))
    write_atomically(folder / "ablation.md", report)
    print(report)
    return 0


def ablation_tables(runs: pd.DataFrame) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The tables by title, and what had to be left out of them."""
    tables, notes = {}, []
    for task in TASKS:
        of_task = runs[runs["task"] == task]
        pairs = twin_pairs(of_task)
        groups = {
            f"SWIM against i.i.d., {task}": ([name for pair in pairs for name in pair], twin_rows),
            f"Kinds of step, {task}": ([s for s in STEPS if s in set(of_task["model"])], step_rows),
        }
        for title, (models, rows) in groups.items():
            if len(models) > 1:
                part = complete_part(of_task[of_task["model"].isin(models)], task)
                tables[title] = rows(part)
                notes += [f"{title}. {left_out_text(part)}"] if part.left_out else []
    return tables, notes


def twin_pairs(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """The models that are there with SWIM and with i.i.d. features."""
    models = set(runs["model"])
    families = [m.removesuffix(SWIM) for m in in_order(list(models)) if m.endswith(SWIM)]
    return [(f + SWIM, f + IID) for f in families if f + IID in models]


def twin_rows(part: Complete) -> pd.DataFrame:
    """Two rows a model, SWIM first; the test compares the two."""
    summary = summary_rows(part).set_index("model")
    pairs = twin_pairs(part.runs)
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
    """A row a kind of step; wins are datasets where it is best, tests are against the first."""
    scores = part.scores()
    best = part.ranks().eq(1).sum()  # a shared first place has rank 1.5 and is nobody's
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
    """How much better a model is than another, dataset by dataset."""
    scores = part.scores()
    sign = -1.0 if LOWER_IS_BETTER[part.task] else 1.0
    return np.round(sign * (scores[model] - scores[other]).to_numpy(), 12)


def as_text(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as they are printed, every number with three decimals."""
    text = rows.copy()
    for column in text.select_dtypes("float"):
        form = p_value_text if column.split()[0] == "p" else "{:.3f}".format
        text[column] = rows[column].map(form)
    return text


def file_name(title: str) -> str:
    """A title as the stem of a file's name."""
    return title.lower().replace(".", "").replace(",", "").replace(" ", "-")
