"""Results of the ``growth`` command as rows, as Markdown and as figures."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.data.whole_tables import whole_table
from experiments.models.untuned import FIELD, OURS, untuned_label
from experiments.reports.figures import INK, STYLE, save
from experiments.reports.markdown import failed_section, markdown_table
from experiments.runs.jobs import Result
from experiments.runs.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = [
    "table",
    "task",
    "model",
    "rows",
    "score",
    "log_loss",
    "fit_seconds",
    "predict_microseconds",
    "megabytes",
    "threads",
    "processor",
    "commit",
]
SCORE = {"regression": "RMSE", "classification": "accuracy"}
COLOURS = dict(zip(FIELD, (INK, "#D55E00", "#009E73", "#0072B2"), strict=True))
# Panels of a figure that stand side by side.
ACROSS = 4
HEADER = """\
# Whole tables, as the training set grows

Models with default parameters on data frames as they are, fitted one after another on the same
threads and scored on the same fifth of the rows (of the generated table, on 100,000 rows). RMSE is
in standard deviations of the training labels. *µs a row* is the time to predict a test row, *MB*
the memory that a fit took beyond the data. A rank is among all models, by score and, among
classifiers, by log loss; equal scores share their rank.
"""
GROWTH = """\
Our fit takes so many microseconds for each training row. From 100,000 rows on, the time per row
should not rise by more than a quarter.
"""


def result_rows(results: list[Result]) -> pd.DataFrame:
    """One row per good result."""
    rows = [
        {
            "table": r.job.dataset,
            "task": whole_table(str(r.job.dataset)).task,
            "model": r.job.model,
            "rows": r.scores.details["train_rows"],
            "score": r.scores.test_score,
            "log_loss": r.scores.details.get("log_loss", np.nan),
            "fit_seconds": r.scores.fit_seconds,
            "predict_microseconds": 1e6 * r.scores.predict_seconds / r.scores.details["test_rows"],
            "megabytes": r.scores.details["megabytes"],
            "threads": r.job.recipe.threads,
            "processor": r.provenance.processor,
            "commit": r.provenance.code,
        }
        for r in results
        if r.scores is not None
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def markdown_report(results: list[Result], rows: pd.DataFrame) -> str:
    """A summary of the largest sizes, the time per row, then every table."""
    parts = [HEADER, *failed_section(results)]
    if rows.empty:
        return "\n".join(parts)
    largest = rows[rows["rows"] == rows.groupby("table")["rows"].transform("max")]
    parts.append(f"## All training rows\n\n{markdown_table(summary_rows(largest))}")
    parts += [
        f"## All training rows: {name}\n\n{markdown_table(wide(largest, column, digits))}"
        for name, column, digits in (
            ("RMSE or accuracy", "score", 4),
            ("log loss", "log_loss", 4),
            ("seconds of the fit", "fit_seconds", 1),
            ("µs a row", "predict_microseconds", 1),
        )
    ]
    if rows.groupby("table")["rows"].nunique().max() > 1:
        parts.append(f"## Time per training row\n\n{GROWTH}\n{markdown_table(time_rows(rows))}")
        parts += [
            f"## {name}: {SCORE[part['task'].iloc[0]]} by rows\n\n{markdown_table(size_rows(part))}"
            for name, part in rows.groupby("table", sort=False)
        ]
    return "\n".join(parts)


def errors(rows: pd.DataFrame) -> pd.Series:
    """What is to be small: RMSE, or the share of wrong labels."""
    return rows["score"].where(rows["task"] == "regression", 1 - rows["score"])


def present(rows: pd.DataFrame) -> list[str]:
    """The models of these rows, ours first."""
    return [model for model in FIELD if model in set(rows["model"])]


def summary_rows(largest: pd.DataFrame) -> pd.DataFrame:
    """One row per model: ranks over the tables that all models have, and times beside ours."""
    by_error = largest.assign(error=errors(largest)).pivot(
        index="table", columns="model", values=["error", "log_loss", "fit_seconds"]
    )
    error = by_error["error"].dropna()
    losses = by_error["log_loss"].dropna()
    seconds = by_error["fit_seconds"].dropna()
    summary = []
    for model in present(largest):
        ahead = error[OURS] < error[model] if OURS in error else pd.Series(dtype=bool)
        summary.append(
            {
                "model": untuned_label(model),
                "tables": len(error),
                "mean rank": f"{error.rank(axis=1)[model].mean():.2f}",
                "mean rank by log loss": f"{losses.rank(axis=1)[model].mean():.2f}",
                "tables where ours is ahead": str(int(ahead.sum())) if model != OURS else "–",
                "our fit time ÷ its, median": f"{(seconds[OURS] / seconds[model]).median():.2f}"
                if OURS in seconds
                else "–",
            }
        )
    return pd.DataFrame(summary)


def wide(largest: pd.DataFrame, column: str, digits: int) -> pd.DataFrame:
    """One row per table and one column per model."""
    models = present(largest)
    rows = []
    for name, part in largest.groupby("table", sort=False):
        values = part.set_index("model")[column]
        if values.notna().any():
            cells = {untuned_label(m): shown(values.get(m, np.nan), digits) for m in models}
            rows.append({"table": name, "rows": f"{part['rows'].iloc[0]:,}", **cells})
    return pd.DataFrame(rows, columns=["table", "rows", *map(untuned_label, models)])


def shown(value: float, digits: int) -> str:
    """A number with this many decimals; a dash if there is none."""
    return "–" if np.isnan(value) else f"{value:.{digits}f}"


def time_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Microseconds of our fit for each training row, by table and number of rows."""
    own = rows[rows["model"] == OURS]
    per_row = (1e6 * own["fit_seconds"] / own["rows"]).map("{:.0f}".format)
    table = own.assign(per_row=per_row).groupby("table", sort=False)
    return pd.DataFrame(
        [
            {
                "table": name,
                "µs by rows": ", ".join(
                    f"{n:,}: {value}"
                    for n, value in zip(part["rows"], part["per_row"], strict=True)
                ),
            }
            for name, part in table
        ]
    )


def size_rows(part: pd.DataFrame) -> pd.DataFrame:
    """One row per size: score, seconds, and MB of every model."""
    table = pd.DataFrame(index=sorted(part["rows"].unique()))
    for model in present(part):
        own = part[part["model"] == model].set_index("rows")
        name = untuned_label(model).removesuffix(", default")
        table[name] = own["score"].map("{:.4f}".format)
        table[f"{name}: s"] = own["fit_seconds"].map("{:.1f}".format)
        table[f"{name}: MB"] = own["megabytes"].map("{:.0f}".format)
    return table.fillna("–").rename_axis("rows").reset_index()


def draw_growth(rows: pd.DataFrame, out: Path, made_with: Iterable[Provenance]) -> None:
    """Two figures, a panel for each table of several sizes: errors, and times per row."""
    sizes = rows.groupby("table")["rows"].nunique()
    grown = rows[rows["table"].map(sizes) > 1]
    if grown.empty:
        return
    made_with = list(made_with)
    per_row = 1e6 * grown["fit_seconds"] / grown["rows"]
    drawn = {
        "growth-error": ("test error", errors(grown)),
        "growth-seconds": ("µs of the fit per training row", per_row),
    }
    for name, (axis_label, values) in drawn.items():
        draw_panels(grown.assign(value=values), axis_label, out, name, made_with)


def draw_panels(
    rows: pd.DataFrame, axis_label: str, out: Path, name: str, made_with: list[Provenance]
) -> None:
    """``value`` against rows, both axes logarithmic, a panel per table and a line per model."""
    import matplotlib
    from matplotlib.figure import Figure

    tables = list(rows["table"].unique())
    lines = -(-len(tables) // ACROSS)
    across = min(ACROSS, len(tables))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.2 * across + 0.6, 2.9 * lines + 0.8), layout="constrained")
        panels = np.ravel(figure.subplots(lines, across, squeeze=False))
        for axes in panels[len(tables) :]:
            axes.set_visible(False)
        for axes, table in zip(panels, tables, strict=False):
            draw_lines(axes, rows[rows["table"] == table])
            kind = "RMSE" if whole_table(table).task == "regression" else "1 − accuracy"
            axes.set_title(f"{table} ({kind})" if axis_label == "test error" else table)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        figure.supylabel(axis_label)
        save(figure, out, name, made_with)


def draw_lines(axes: "Axes", rows: pd.DataFrame) -> None:
    """One line per model; ours is the thickest."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    for model in present(rows):
        own = rows[rows["model"] == model].sort_values("rows")
        width = 2.2 if model == OURS else 1.3
        axes.plot(
            own["rows"],
            own["value"],
            color=COLOURS[model],
            marker="o",
            markersize=3.5,
            linewidth=width,
            label=untuned_label(model),
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("training rows")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.grid(True)
    low, high = rows["value"].min(), rows["value"].max()
    if high < 10 * low:
        # Within one power of ten a logarithmic axis would have a label or none.
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
