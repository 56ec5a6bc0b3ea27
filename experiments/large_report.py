"""The larger-scale results as rows and as text, ours and the published ones in one form."""

from pathlib import Path

import pandas as pd

from experiments.comparison import markdown_table
from experiments.errors import UsageError
from experiments.jobs import Result
from experiments.large_grids import PUBLISHED_NAMES
from experiments.large_tables import LARGE_TABLES
from experiments.naming import label

COLUMNS = ["table", "model", "rows", "seed", "score", "fit_seconds"]
CONFIDENCE = 0.95


def result_rows(results: list[Result]) -> pd.DataFrame:
    """One row a good result, with what the search chose."""
    rows = [
        {
            "table": r.job.dataset,
            "model": r.job.model,
            "rows": int(r.job.protocol.removeprefix("rows-")),
            "seed": r.job.fold,
            "score": r.scores.test_score,
            "fit_seconds": r.scores.fit_seconds,
            "refit_seconds": r.scores.details["refit_seconds"],
            "chosen": " ".join(f"{k}={v:g}" for k, v in r.scores.details["chosen"].items()),
        }
        for r in results
        if r.scores is not None
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "refit_seconds", "chosen"])


def read_published(path: Path | None) -> pd.DataFrame:
    """The published runs in the columns of ours; no rows without a file."""
    if path is None:
        return pd.DataFrame(columns=COLUMNS)
    try:
        runs = pd.read_parquet(path)
        names = {table.published: table.id for table in LARGE_TABLES.values()}
        runs = runs.rename(columns={"train_size": "rows"}).assign(
            table=runs["dataset"].map(names), model=runs["model"].map(PUBLISHED_NAMES)
        )
        return runs.dropna(subset=["table"])[COLUMNS]
    except (OSError, ValueError, KeyError) as error:
        raise UsageError(f"{path} does not hold the published runs ({error}).") from error


def curve(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Mean and half width of the 95 % interval over seeds, by size; no width for one seed."""
    from scipy import stats

    groups = rows.groupby("rows")[value]
    count = groups.size()
    quantile = pd.Series(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1), index=count.index)
    half = quantile * groups.std(ddof=1) / count**0.5
    return pd.DataFrame({"mean": groups.mean(), "half": half.fillna(0.0)})


def markdown_report(
    rows: pd.DataFrame, published: pd.DataFrame, failures: list[Result], left_out: list[str]
) -> str:
    """Every table's means over seeds, ours beside the published, and what is not there."""
    parts = [
        "# Larger-scale experiments\n",
        "Accuracy (classification) or RMSE of the scaled label (regression), and seconds of search "
        "and refit; means over seeds.\nOurs: one CPU core a job. Published: a GPU.\n",
    ]
    parts += [
        f"- failed: {r.job.dataset} {r.job.model} at {r.job.protocol.removeprefix('rows-')} rows, "
        f"seed {r.job.fold}: {r.error}"
        for r in failures
    ]
    parts += [f"- left out for time: {line}" for line in left_out]
    for table, part in rows.groupby("table", sort=False):
        theirs = published[published["table"] == table]
        parts.append(f"\n## {LARGE_TABLES[table].name}\n\n{markdown_table(means(part, theirs))}")
    return "\n".join(parts)


def means(rows: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per model and size."""
    keys = ["model", "rows"]
    ours = rows.groupby(keys, sort=False).agg(
        seeds=("seed", "size"), score=("score", "mean"), seconds=("fit_seconds", "mean")
    )
    theirs = published.groupby(keys).agg(
        published=("score", "mean"), published_seconds=("fit_seconds", "mean")
    )
    table = ours.join(theirs.astype(float), how="left").reset_index()
    return table.assign(model=table["model"].map(label))
