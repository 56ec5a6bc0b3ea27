"""Stored results as one frame, in the columns of the published runs."""

import json
from pathlib import Path

import pandas as pd

from experiments.datasets import known_tables

COLUMNS = ["protocol", "task", "dataset", "model", "fold", "test_score", "fit_seconds"]


def read_results(out: Path, protocol: str) -> pd.DataFrame:
    """Every good result below ``out`` for a protocol, one row a fold; bad files are left out.

    Tables and figures work on this frame and on the published runs alike.
    """
    rows = [_row(path, protocol) for path in sorted((out / protocol).glob("*/*/fold*.json"))]
    return pd.DataFrame([row for row in rows if row is not None], columns=COLUMNS)


def _row(path: Path, protocol: str) -> tuple | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        job, scores = record["job"], record["scores"]
        if record["status"] != "ok":
            return None
        task = known_tables()[job["dataset"]].task
        identity = (job["dataset"], job["model"], job["fold"])
        return (protocol, task, *identity, scores["test_score"], scores["fit_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
