"""Results of the ``large-scale`` command, ours and published, as rows, Markdown and figures."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.data.large_tables import LARGE_TABLES, LargeTable
from experiments.models.grids import PUBLISHED_NAMES
from experiments.models.naming import in_order, label, look
from experiments.reports.figures import COLOURS, INK, STYLE, save
from experiments.reports.markdown import markdown_table
from experiments.requests import UsageError
from experiments.runs.jobs import Result, provenances

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ["table", "model", "rows", "seed", "score", "fit_seconds"]
CONFIDENCE = 0.95
SCORE = {"regression": "test RMSE (scaled label)", "classification": "test accuracy"}


def result_rows(results: list[Result]) -> pd.DataFrame:
    """One row per good result, with the parameters that the search chose."""
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
            "commit": r.provenance.code,
        }
        for r in results
        if r.scores is not None
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "refit_seconds", "chosen", "commit"])


def read_published(path: Path | None) -> pd.DataFrame:
    """The published runs under our names and columns; empty if there is no file."""
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
    """By size: the mean and the half width of its 95 % interval over seeds (0 for one seed)."""
    from scipy import stats

    groups = rows.groupby("rows")[value]
    count = groups.size()
    quantile = pd.Series(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1), index=count.index)
    half = quantile * groups.std(ddof=1) / count**0.5
    return pd.DataFrame({"mean": groups.mean(), "half": half.fillna(0.0)})


def markdown_report(
    rows: pd.DataFrame, published: pd.DataFrame, failures: list[Result], left_out: list[str]
) -> str:
    """Our means over seeds and the published ones, by table, and what failed or was left out."""
    parts = [
        "# Larger-scale experiments\n",
        "Accuracy (classification) or RMSE of the scaled label (regression), and seconds of search "
        "and refit; means over seeds.\nOurs: one CPU core per job. Published: a GPU.\n",
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


def draw_curves(
    table: LargeTable, results: list[Result], published: pd.DataFrame, out: Path
) -> None:
    """One figure of a table: the score on the left, the time on the right."""
    results = [result for result in results if result.job.dataset == table.id]
    ours = result_rows(results)
    if ours.empty:
        return
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    theirs = published[published["table"] == table.id]
    models = in_order(list(ours["model"].unique()))
    sizes = sorted({*ours["rows"], *theirs["rows"]})
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes, value in ((left, "score"), (right, "fit_seconds")):
            for model in models:
                draw_model(axes, model, value, ours, theirs)
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size / 1000:.0f}k" for size in sizes])
            axes.minorticks_off()
            axes.set_xlabel("training rows")
            axes.grid(True)
        left.set_ylabel(SCORE[table.task])
        right.set_ylabel("search and fit, seconds\n(ours: one CPU core; published: GPU)")
        right.set_yscale("log")
        handles = [Line2D([], [], color=COLOURS[look(m).family], label=label(m)) for m in models]
        handles += [
            Line2D([], [], color=INK, marker="o", label="ours, 95 % band over seeds"),
            Line2D([], [], color=INK, linestyle=":", label="published"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle(f"{table.name}: larger training sets")
        save(figure, out, f"large-scale-{table.id}", provenances(results))


def draw_model(
    axes: "Axes", model: str, value: str, ours: pd.DataFrame, published: pd.DataFrame
) -> None:
    """Our curve of a model with its 95 % band, and the published curve as a dotted line."""
    colour = COLOURS[look(model).family]
    points = curve(ours[ours["model"] == model], value)
    axes.plot(points.index, points["mean"], color=colour, marker="o", markersize=4)
    low, high = points["mean"] - points["half"], points["mean"] + points["half"]
    # The axis of seconds is logarithmic: the band must stay above zero.
    floor = points["mean"] / 10 if value == "fit_seconds" else low
    axes.fill_between(points.index, low.clip(lower=floor), high, color=colour, alpha=0.2)
    theirs = published[published["model"] == model]
    if not theirs.empty:
        dots = curve(theirs, value)
        axes.plot(dots.index, dots["mean"], color=colour, linestyle=":")
