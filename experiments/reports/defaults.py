"""The Markdown report of the ``defaults`` command."""

from collections.abc import Callable

import pandas as pd

from experiments.reports.defaults_tables import (
    SMALL_AND_NOISY,
    by_table,
    comparison_rows,
    halves,
    linear_rows,
    part_of,
    summary_rows,
    time_rows,
)
from experiments.reports.markdown import failure_list, markdown_table
from experiments.reports.significance import p_value_text
from experiments.reports.summaries import SCORE, Complete, dataset_name, left_out_text
from experiments.runs.jobs import Result

HEADER = """\
# Default parameters, protocol '{protocol}'

`default`: fitted with the library's default parameters; only seed, threads and log output are set.
{tuned}A score is a mean over the test folds of a table: RMSE (lower is better) or accuracy (higher
is better); means and ranks are over tables. Rank 1 is the best; equal scores share their rank. Log
loss is ranked among the models that have one. Seconds are sums over tables and folds; `our time ÷
its` is the median over tables. Fits ran one at a time, the models of a fold one after another; of
fits that took less than two seconds the shortest of three counts, for every model. Only tables
where every model has every fold are averaged; the others are listed.
"""
TUNED = "`tuned`: the paper's published runs, each tuned by 100 trials, on the same folds.\n"
TESTS = """\
### Ours against each of the others

Wilcoxon's signed-rank test over tables, two-sided; `p Holm` is corrected for the number of
comparisons. `difference` is the mean of our score − its score.
"""
TIMES = """\
## Time, both tasks together

Sums over the tables above and their folds, and the median over tables of our time ÷ its time.
"""
SMALL_TABLES = """\
## Small and noisy tables

Ours against the tuned linear model (ridge or logistic regression). `worse by` is negative where
ours is better.
"""


def markdown_report(
    results: list[Result], parts: list[Complete], sentences: list[str], beside_tuned: bool
) -> str:
    """The whole report: failures and incomplete tables first, then the tasks."""
    protocol = results[0].job.protocol
    sections = [HEADER.format(protocol=protocol, tuned=TUNED if beside_tuned else "")]
    failures = [result for result in results if result.error is not None]
    if failures:
        sections.append(f"## Failed: {len(failures)} fits, in no mean\n\n{failure_list(failures)}")
    sections += [f"{sentence}\n" for sentence in sentences]
    for part in parts:
        sections += task_sections(part)
    if len(parts) > 1:
        sections.append(time_section(parts))
    if beside_tuned:
        sections.append(small_section(parts))
    return "\n".join(sections)


def time_section(parts: list[Complete]) -> str:
    """Fit times over the tables of both tasks."""
    return f"{TIMES}\n{markdown_table(time_text(parts))}"


def time_text(parts: list[Complete]) -> pd.DataFrame:
    """The times as they are printed."""
    rows = time_rows(parts)
    return pd.DataFrame(
        {
            "model": rows["model"],
            "tables": rows["tables"],
            "fit seconds": rows["fit_seconds"].map(shown(1)),
            "our time ÷ its": rows["time_ratio"].map(shown(2)),
        }
    )


def task_sections(part: Complete) -> list[str]:
    """The sections of one task: summary, tests, halves, and scores by table."""
    folds = ", ".join(map(str, part.folds))
    title = f"## {part.task.capitalize()} (tables: {len(part.datasets)}; folds: {folds})"
    sections = [f"{title}\n\n{markdown_table(summary_text(part))}"]
    if part.left_out:
        sections.append(left_out_text(part))
    comparisons = comparison_rows(part)
    if len(comparisons):
        sections.append(f"{TESTS}\n{markdown_table(comparison_text(comparisons))}")
    sections += [half_section(part, half) for half in halves(part.task)]
    sections.append(f"### By table: {SCORE[part.task]}\n\n{table_text(part, 'test_score', 4)}")
    if part.task == "classification":
        sections.append(f"### By table: log loss\n\n{table_text(part, 'log_loss', 4)}")
    sections.append(f"### By table: seconds of one fit\n\n{table_text(part, 'fit_seconds', 2)}")
    return sections


def half_section(part: Complete, half: str) -> str:
    """The summary over one half of the tables, and their names."""
    chosen = part_of(part, halves(part.task)[half])
    if not chosen.datasets:
        return f"### Half {half}\n\nNo table of this half is complete.\n"
    names = ", ".join(dataset_name(id) for id in chosen.datasets)
    title = f"### Half {half} (tables: {len(chosen.datasets)})"
    return f"{title}\n\n{markdown_table(summary_text(chosen))}\nThese are {names}.\n"


def summary_text(part: Complete) -> pd.DataFrame:
    """The summary as it is printed."""
    rows = summary_rows(part)
    columns = {f"mean {SCORE[part.task]}": ("mean_score", 4)}
    if part.task == "regression":
        columns["geometric mean"] = ("geometric_mean", 4)
    columns["mean rank"] = ("mean_rank", 2)
    if part.task == "classification":
        columns["mean log loss"] = ("mean_log_loss", 4)
        columns["rank by log loss"] = ("log_loss_rank", 2)
    columns["fit seconds"] = ("fit_seconds", 1)
    columns["predict seconds"] = ("predict_seconds", 2)
    columns["our time ÷ its"] = ("time_ratio", 2)
    numbers = {name: rows[column].map(shown(n)) for name, (column, n) in columns.items()}
    return pd.DataFrame({"model": rows["model"], **numbers})


def comparison_text(rows: pd.DataFrame) -> pd.DataFrame:
    """The tests as they are printed."""
    return pd.DataFrame(
        {
            "model": rows["model"],
            "tables": rows["tables"],
            "better": rows["better"],
            "worse": rows["worse"],
            "difference": rows["mean_difference"].map(shown(4)),
            "p": rows["p"].map(p_value_text),
            "p Holm": rows["p_holm"].map(p_value_text),
        }
    )


def table_text(part: Complete, value: str, decimals: int) -> str:
    """One row per table, one column per model."""
    cells = by_table(part, value).map(shown(decimals)).rename_axis(columns=None).reset_index()
    cells.insert(1, "name", [dataset_name(id) for id in cells["dataset"]])
    return markdown_table(cells)


def small_section(parts: list[Complete]) -> str:
    """Ours against the tuned linear model, and the tables that are not complete."""
    rows = pd.concat([linear_rows(part) for part in parts]) if parts else pd.DataFrame()
    there = list(rows["dataset"]) if len(rows) else []
    text = SMALL_TABLES
    if there:
        rows = rows.assign(worse_by=rows["worse_by"].map("{:+.1%}".format))
        text += "\n" + markdown_table(rows.rename(columns={"worse_by": "worse by"}))
    missing = ", ".join(f"{id} {dataset_name(id)}" for id in SMALL_AND_NOISY if id not in there)
    return text + (f"\nNot complete, or not run: {missing}.\n" if missing else "")


def shown(decimals: int) -> Callable[[float], str]:
    """A function that prints a number with ``decimals`` decimals, and NaN as a dash."""

    def show(value: float) -> str:
        return "–" if pd.isna(value) else f"{value:.{decimals}f}"

    return show
