"""The text of ``raw-tables``: every table, the means, and the ten beside the encoding by hand."""

import numpy as np
import pandas as pd

from experiments.comparison import markdown_table
from experiments.datasets import Table

OURS = "rfrboost"
HEADER = """\
# `rfrboost evaluate` on raw tables

Five folds, no option but the target, holes and categories as they are. The error is that of numbers
in units of their standard deviation, √(1 − R²), and of classes the share of wrong ones; it is
averaged over folds. Seconds are those of fitting and predicting one fold.
"""


def errors(scores: pd.DataFrame) -> pd.Series:
    """The error of every fold."""
    if "accuracy" in scores:
        return 1 - scores["accuracy"]
    return np.sqrt(np.maximum(1 - scores["R²"], 0))


def means(scores: pd.DataFrame) -> pd.DataFrame:
    """Error and seconds by model, over folds."""
    frame = scores.assign(error=errors(scores))
    return frame.groupby("model", sort=False)[["error", "seconds"]].mean()


def report(
    tables: list[Table],
    scores: dict[int, pd.DataFrame],
    beside: dict[int, pd.DataFrame],
    failures: dict[str, str],
) -> str:
    """All of it as markdown."""
    known = [table for table in tables if table.id in scores]
    parts = [HEADER, f"{len(known)} of {len(tables)} tables were evaluated.\n"]
    parts += [f"{name} failed: {said}\n" for name, said in failures.items()]
    if known:
        rows = [table_row(table, scores[table.id]) for table in known]
        parts += [
            "## Means over tables\n",
            markdown_table(summary(known, scores)),
            "## Table by table\n",
            markdown_table(pd.DataFrame(rows)),
        ]
    if beside:
        frame = pd.DataFrame(
            [hand_row(t, scores[t.id], beside[t.id]) for t in known if t.id in beside]
        )
        parts += ["## Beside an encoding by hand\n", markdown_table(frame), hand_sentence(frame)]
    return "\n".join(parts)


def kind_of(scores: pd.DataFrame) -> str:
    """The task that was detected."""
    return "classes" if "accuracy" in scores else "numbers"


def linear_as_one(name: str) -> str:
    """Ridge and logistic regression are one model here."""
    return "linear model" if name.endswith(" regression") else name


def table_row(table: Table, scores: pd.DataFrame) -> dict[str, object]:
    """One table: what was found, and each model's error."""
    of = means(scores)
    found = {"table": f"{table.id} {table.name}", "label": kind_of(scores)}
    found |= {f"{linear_as_one(name)}, error": of.loc[name, "error"] for name in of.index}
    return {**found, "our seconds": of.loc[OURS, "seconds"]}


def summary(tables: list[Table], scores: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Mean error and seconds of every model, by kind of label."""
    rows = []
    for kind in ("numbers", "classes"):
        chosen = [means(scores[t.id]) for t in tables if kind_of(scores[t.id]) == kind]
        for name in chosen[0].index if chosen else []:
            rows.append(
                {
                    "label": kind,
                    "tables": len(chosen),
                    "model": linear_as_one(name),
                    "mean error": float(np.mean([of.loc[name, "error"] for of in chosen])),
                    "best on": sum(of["error"].idxmin() == name for of in chosen),
                    "seconds a fold": float(np.mean([of.loc[name, "seconds"] for of in chosen])),
                }
            )
    return pd.DataFrame(rows)


def hand_row(table: Table, scores: pd.DataFrame, by_hand: pd.DataFrame) -> dict[str, object]:
    """One table, ours as it is and encoded by hand."""
    raw, hand = means(scores).loc[OURS, "error"], float(errors(by_hand).mean())
    ratio = raw / hand if hand > 0 else 1.0
    name = f"{table.id} {table.name}"
    return {"table": name, "raw, error": raw, "by hand, error": hand, "raw ÷ by hand": ratio}


def hand_sentence(frame: pd.DataFrame) -> str:
    """The means, in a sentence."""
    raw, hand = frame["raw, error"], frame["by hand, error"]
    ratio = np.exp(np.log(frame["raw ÷ by hand"]).mean())
    return (
        f"Mean error {raw.mean():.4f} raw, {hand.mean():.4f} by hand; raw is better on "
        f"{int((raw < hand).sum())} of {len(frame)}; geometric mean of the ratios {ratio:.4f}.\n"
    )
