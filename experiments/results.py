"""Stored results as one frame, in the columns of the published runs."""

import json
from pathlib import Path

import pandas as pd

from experiments.datasets import known_tables

COLUMNS = ["protocol", "task", "dataset", "model", "fold", "test_score", "fit_seconds", "search"]


def read_results(out: Path, protocol: str) -> pd.DataFrame:
    """Every good result below ``out`` for a protocol, one row a fold; bad files are left out.

    Tables and figures work on this frame and on the published runs alike.
    """
    rows = [_row(path, protocol) for path in sorted((out / protocol).glob("*/*/fold*.json"))]
    return pd.DataFrame([row for row in rows if row is not None], columns=COLUMNS)


def searches(results: pd.DataFrame) -> str:
    """How long the searches behind these results were, in words; empty where none was made."""
    return " or ".join(sorted(set(results["search"]) - {""}))


def _search(recipe: dict) -> str:
    if "trials" not in recipe:
        return ""
    return f"{recipe['trials']} trials on {recipe['inner_folds']} inner folds"


def _row(path: Path, protocol: str) -> tuple | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        job, scores = record["job"], record["scores"]
        if record["status"] != "ok":
            return None
        task = known_tables()[job["dataset"]].task
        identity = (job["dataset"], job["model"], job["fold"])
        measured = (scores["test_score"], scores["fit_seconds"])
        return (protocol, task, *identity, *measured, _search(job["recipe"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
