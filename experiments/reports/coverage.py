"""Results of the ``coverage`` command as rows and as Markdown."""

import numpy as np
import pandas as pd

from experiments.data.shifted import WHOLE
from experiments.data.tables import Table, known_table
from experiments.reports.markdown import failed_section, markdown_table
from experiments.runs.jobs import Result
from experiments.runs.measured import good_rows

HEADER = """\
# Coverage

Protocol `strict`, our estimators with default parameters, nominal coverage {percent} %. Coverage is
the share of test rows whose label is in the interval or set; on n rows its standard deviation is
about √({product:.2f}/n). The figures of a table are means over its folds ({folds}). Widths are in
standard deviations of the training labels.
"""
KINDS = {
    "intervals": """\
## `predict_interval` and `return_std`

`z²` is the mean of ((y − prediction) / std)²; it is 1 for a correct standard deviation.
""",
    "quantiles": """\
## `loss="quantile"`, levels {levels}

Coverage and width are those between the outer levels; `below` are the shares of labels at or below
each level. Levels have no conformal guarantee; held-out rows shift them.
""",
    "sets": """\
## `predict_set`

No set is empty, so that coverage is at least the accuracy of the most probable class, whatever the
nominal coverage. `single` is the share of sets with one class.
""",
}
COLUMNS = {
    "intervals": ["width", "z_square", "rmse"],
    "quantiles": ["width", "below", "crossings"],
    "sets": ["size", "classes", "single", "accuracy"],
}
IDENTITY = ["kind", "dataset", "name"]


def table_rows(results: list[Result]) -> pd.DataFrame:
    """One row per good fit: its kind, table and fold, and everything that was measured."""
    rows = []
    for result in results:
        if result.scores is None:
            continue
        # Results that were stored before provenance existed have versions among the details.
        counts = {k: v for k, v in result.scores.details.items() if k != "versions"}
        table = known_table(int(result.job.dataset))
        identity = {"kind": result.job.model, "dataset": table.id, "name": table.name}
        score = {"rmse" if table.task == "regression" else "accuracy": result.scores.test_score}
        made = {"fit_seconds": result.scores.fit_seconds, "commit": result.provenance.code}
        rows.append({**identity, "fold": result.job.fold, **counts, **score, **made})
    return pd.DataFrame(rows, columns=None if rows else ["kind"])


def markdown_report(
    rows: pd.DataFrame, results: list[Result], coverage: float, levels: tuple[float, ...]
) -> str:
    """A summary, then each kind of prediction by table."""
    folds = ", ".join(map(str, sorted({result.job.fold for result in results})))
    product = coverage * (1 - coverage)
    sections = [HEADER.format(percent=round(100 * coverage), product=product, folds=folds)]
    sections += failed_section(results)
    tables = by_table(rows) if len(rows) else rows
    if len(rows):
        sections.append(markdown_table(summary_rows(tables, coverage)))
    for kind, text in KINDS.items():
        part = tables[tables["kind"] == kind]
        if len(part):
            table = markdown_table(text_rows(part, COLUMNS[kind]))
            sections.append(f"{text.format(levels=levels)}\n{table}")
    return "\n".join(sections)


SHIFTED_HEADER = """\
# Coverage on later rows and other groups

Intervals of nominal coverage {percent} % on test rows that are later than the training rows, or of
other groups (`experiments/data/shifted.py`). Folds are drawn at random, or `own`: by time
(`cv=TimeSeriesSplit(5)`) or by group (`groups=`). Widths are in standard deviations of the training
targets. `oof_score` is the model's own score on held-out rows, `r2` the score on test rows, which
`oof_score` should not be far above, and `LightGBM r2` that of LightGBM's default model. The first
table has means over splits.
"""
WHOLE_HEADER = """\
## Miami housing, the first 8,000 rows against all others

The file goes from north to south. One row per seed, then the mean; folds are drawn at random.
"""
SHIFTED_MEASURES = ["coverage", "width", "oof_score", "r2", "LightGBM r2"]


def shifted_rows(results: list[Result]) -> pd.DataFrame:
    """One row per good fit: its split, its kind of folds, and what was measured."""

    def measured(table: Table, result: Result) -> dict[str, object]:
        kind, folds = result.job.model.split("-")
        details = result.scores.details
        return {
            "split": kind,
            "folds": folds,
            "seed": result.job.fold,
            **{name: details[name] for name in ("rows", *SHIFTED_MEASURES)},
            "fit_seconds": result.scores.fit_seconds,
        }

    return good_rows(results, measured)


def shifted_report(rows: pd.DataFrame, results: list[Result], coverage: float) -> str:
    """Means over splits by the kind of folds, then every split."""
    sections = [SHIFTED_HEADER.format(percent=round(100 * coverage)), *failed_section(results)]
    whole = rows[rows["split"] == WHOLE] if len(rows) else rows
    parts = rows.drop(whole.index)
    if len(parts):
        shown = ["dataset", "name", "split", "folds", "rows", *SHIFTED_MEASURES]
        sections += [markdown_table(shifted_summary(parts)), markdown_table(parts[shown])]
    if len(whole):
        by_seed = whole[["seed", "rows", *SHIFTED_MEASURES]]
        mean = by_seed.mean().to_frame().T.assign(seed="mean", rows=by_seed["rows"].iloc[0])
        sections += [WHOLE_HEADER, markdown_table(pd.concat([by_seed, mean]))]
    return "\n".join(sections)


def shifted_summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per kind of folds: how many splits, means over them, and the least coverage."""
    by_folds = rows.groupby("folds", sort=False)
    means = by_folds[SHIFTED_MEASURES].mean()
    means.insert(0, "splits", by_folds.size())
    means.insert(2, "least coverage", by_folds["coverage"].min())
    return means.reset_index()


def by_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per kind and table: means over folds, and sums of test rows and crossings."""
    kinds = {"rows": "sum", "crossings": "sum", "fold": "nunique", "below": mean_list}
    means = {name: "mean" for name in rows if name not in (*kinds, *IDENTITY, "commit")}
    how = {name: step for name, step in (kinds | means).items() if name in rows}
    least = rows.groupby(IDENTITY, sort=False)["coverage"].min().rename("least_fold")
    return rows.groupby(IDENTITY, sort=False).agg(how).join(least).reset_index()


def mean_list(lists: pd.Series) -> list[float]:
    """The element-wise mean of lists; empty if no value is a list."""
    known = [values for values in lists if isinstance(values, list)]
    return [float(v) for v in np.mean(known, axis=0)] if known else []


def summary_rows(tables: pd.DataFrame, coverage: float) -> pd.DataFrame:
    """One row per kind: mean and extremes of coverage over tables, and the sum of crossings.

    Sets have a second row, over the tables whose accuracy is below the nominal coverage.
    """
    parts = {kind: tables[tables["kind"] == kind] for kind in KINDS}
    if len(parts["sets"]):
        needed = parts["sets"]["accuracy"] < coverage
        parts[f"sets, accuracy below {coverage:g}"] = parts["sets"][needed]
    return pd.DataFrame([summary(name, part) for name, part in parts.items() if len(part)])


def summary(name: str, part: pd.DataFrame) -> dict[str, object]:
    """One row of the summary, over the tables of ``part``."""
    least = part.loc[part["coverage"].idxmin()]
    return {
        "prediction": name,
        "tables": len(part),
        "test rows": int(part["rows"].sum()),
        "mean coverage": f"{part['coverage'].mean():.3f}",
        "least": f"{least['coverage']:.3f} ({least['name']}, {int(least['rows'])} rows)",
        "most": f"{part['coverage'].max():.3f}",
        "crossings": int(part["crossings"].sum()) if name == "quantiles" else "–",
    }


def text_rows(part: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The rows of one kind as they are printed; the worst fold only if there are several."""
    columns = ["coverage", *(["least_fold"] if part["fold"].max() > 1 else []), *columns]
    shown = part[["dataset", "name", "rows", *columns]].astype({"rows": int})
    for column in columns:
        shown[column] = shown[column].map(as_text)
    return shown.rename(columns={"z_square": "z²", "least_fold": "least fold"})


def as_text(value: object) -> str:
    """Shares with three decimals, whole numbers above 1 without, lists with commas."""
    if isinstance(value, list):
        return ", ".join(f"{v:.3f}" for v in value)
    number = float(str(value))
    return f"{number:.0f}" if number > 1 and number.is_integer() else f"{number:.3f}"
