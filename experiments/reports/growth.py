"""Results of the ``growth`` command as rows, as Markdown and as a figure."""

from pathlib import Path

import pandas as pd

from experiments.data.large_tables import LARGE_TABLES, LargeTable
from experiments.models.naming import in_order, label, look
from experiments.reports.figures import COLOURS, INK, STYLE, save
from experiments.reports.large_scale import curve
from experiments.reports.markdown import failure_list, markdown_table
from experiments.runs.jobs import Result, provenances

COLUMNS = [
    "table",
    "model",
    "rows",
    "score",
    "log_loss",
    "fit_seconds",
    "predict_seconds",
    "threads",
    "processor",
    "commit",
]
SCORE = {"regression": "test RMSE (scaled label)", "classification": "test accuracy"}
OURS = {"rfrboost": "RFRBoost, default", "xgboost": "XGBoost, 500 trees"}
HEADER = """\
# As the training set grows

Our estimator with default parameters and a time limit, and XGBoost with 500 trees (`hist`), fitted
one after another on the same threads and scored on the same test rows. The published models were
tuned at every size.
"""


def result_rows(results: list[Result]) -> pd.DataFrame:
    """One row per good result."""
    rows = [
        {
            "table": r.job.dataset,
            "model": r.job.model,
            "rows": r.scores.details["train_rows"],
            "score": r.scores.test_score,
            "log_loss": r.scores.details.get("log_loss"),
            "fit_seconds": r.scores.fit_seconds,
            "predict_seconds": r.scores.predict_seconds,
            "threads": r.job.recipe.threads,
            "processor": r.provenance.processor,
            "commit": r.provenance.code,
        }
        for r in results
        if r.scores is not None
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def markdown_report(results: list[Result], rows: pd.DataFrame, published: pd.DataFrame) -> str:
    """For each table our scores and the published ones."""
    parts = [HEADER]
    failures = [result for result in results if result.error is not None]
    if failures:
        parts.append(f"## Failed: {len(failures)}\n\n{failure_list(failures)}")
    for name, part in rows.groupby("table", sort=False):
        theirs = published[published["table"] == name]
        table = LARGE_TABLES[name]
        parts.append(
            f"## {table.name}: {SCORE[table.task]}\n\n{markdown_table(size_rows(part, theirs))}"
        )
    return "\n".join(parts)


def size_rows(rows: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """One row per size: score, log loss and seconds of our model and XGBoost, published scores."""
    table = pd.DataFrame(index=sorted(rows["rows"].unique()))
    for model, name in OURS.items():
        own = rows[rows["model"] == model].set_index("rows")
        table[name] = own["score"].map("{:.4f}".format)
        if own["log_loss"].notna().all() and len(own):
            table[f"{name}: log loss"] = own["log_loss"].map("{:.4f}".format)
        table[f"{name}: fit seconds"] = own["fit_seconds"].map("{:.1f}".format)
        table[f"{name}: predict seconds"] = own["predict_seconds"].map("{:.1f}".format)
    for model in in_order(list(published["model"].unique())):
        own = curve(published[published["model"] == model], "score")["mean"]
        # At the largest size we have one row less than the published runs.
        near = own.reindex(table.index, method="nearest", tolerance=1)
        table[f"{label(model)}, published"] = near.map("{:.4f}".format)
    return table.replace("nan", "–").fillna("–").rename_axis("rows").reset_index()


def draw_growth(
    table: LargeTable, results: list[Result], published: pd.DataFrame, out: Path
) -> None:
    """One figure of a table: the score on the left, seconds on the right."""
    results = [result for result in results if result.job.dataset == table.id]
    ours = result_rows(results)
    if ours.empty:
        return
    import matplotlib
    from matplotlib.figure import Figure

    theirs = published[published["table"] == table.id]
    sizes = sorted(ours["rows"].unique())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 4.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        for model in in_order(list(theirs["model"].unique())):
            points = curve(theirs[theirs["model"] == model], "score")["mean"]
            colour = COLOURS[look(model).family]
            left.plot(
                points.index,
                points,
                color=colour,
                linestyle=":",
                label=f"{label(model)}, published",
            )
        for model, name in OURS.items():
            own = ours[ours["model"] == model].sort_values("rows")
            colour = INK if model == "rfrboost" else COLOURS[look(model).family]
            marks = {"color": colour, "marker": "o", "markersize": 4}
            left.plot(own["rows"], own["score"], label=name, **marks)
            right.plot(own["rows"], own["fit_seconds"], **marks)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size / 1000:.0f}k" for size in sizes])
            axes.minorticks_off()
            axes.set_xlabel("training rows")
            axes.grid(True)
        left.set_ylabel(SCORE[table.task])
        right.set_ylabel(f"fit, seconds ({ours['threads'].iloc[0]} threads)")
        right.set_yscale("log")
        figure.legend(loc="outside lower center", ncols=4)
        figure.suptitle(f"{table.name}: untuned, as the training set grows")
        save(figure, out, f"growth-{table.id}", provenances(results))
