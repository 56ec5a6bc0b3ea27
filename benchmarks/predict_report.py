"""The Markdown table of ``benchmarks.predict``: medians over tables, and a row for each table."""

from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING

from experiments.runs.provenance import current, markdown_footer

if TYPE_CHECKING:
    from benchmarks.predict import Record

OURS = "rfrboost"
PEER = "CatBoost"

INTRODUCTION = """# Predictions: microseconds a row

Models with default parameters; of several calls the best counts. "÷ CatBoost" is the median over
tables of the ratio to CatBoost's time on the same table. Folds are the first of the paper's
protocol, "whole" tables have up to 50,000 training rows. Made by `make bench-predict`.
"""


def report(records: "list[Record]") -> str:
    """All tables of a run, as Markdown."""
    commits = sorted({record.commit for record in records})
    mixed = f"\nResults of several commits: {', '.join(commits)}.\n" if len(commits) > 1 else ""
    whole = [record for record in records if record.table.endswith(", whole")]
    folds = [record for record in records if not record.table.endswith(", whole")]
    parts = [INTRODUCTION + mixed]
    for title, some in (("First folds", folds), ("Whole tables", whole)):
        if some:
            parts += [f"## {title}\n", medians(some), f"### {title}, by table\n", by_table(some)]
    return "\n".join(parts) + markdown_footer([current()])


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def medians(records: "list[Record]") -> str:
    """A row for each model and number of threads: medians over tables."""
    batches = sorted({record.batch for record in records})
    header = ["model", "threads", "tables"]
    for batch in batches:
        header += [f"batch {batch:,}", f"÷ {PEER}"]
    header += ["kB", "load ms"]
    times = {(r.table, r.model, r.threads, r.batch): r.microseconds_a_row for r in records}
    rows = []
    for model in dict.fromkeys(record.model for record in records):
        for threads in sorted({record.threads for record in records}):
            own = [r for r in records if r.model == model and r.threads == threads]
            if not own:
                continue
            cells = [model, str(threads), str(len({r.table for r in own}))]
            for batch in batches:
                mine = {r.table: r.microseconds_a_row for r in own if r.batch == batch}
                ratios = [
                    time / times[name, PEER, threads, batch]
                    for name, time in mine.items()
                    if (name, PEER, threads, batch) in times
                ]
                cells += [f"{median(mine.values()):.2f}" if mine else ""]
                cells += [f"{median(ratios):.1f}" if ratios else ""]
            files = {r.table: (r.bytes, r.load_milliseconds) for r in own}
            cells.append(f"{median(size for size, _ in files.values()) / 1e3:.0f}")
            cells.append(f"{median(load for _, load in files.values()):.1f}")
            rows.append(cells)
    return table(header, rows)


def by_table(records: "list[Record]") -> str:
    """A row for each table: our microseconds and CatBoost's, with one thread."""
    batches = sorted({record.batch for record in records})
    header = ["table", "rows", "columns"]
    for batch in batches:
        header += [f"{OURS}, {batch:,}", f"{PEER}, {batch:,}"]
    times = {(r.table, r.model, r.batch): r.microseconds_a_row for r in records if r.threads == 1}
    shapes = {r.table: (r.rows, r.columns) for r in records}
    rows = []
    for name, (n, columns) in shapes.items():
        cells = [name, f"{n:,}", str(columns)]
        for batch in batches:
            for model in (OURS, PEER):
                known = times.get((name, model, batch))
                cells.append("" if known is None else f"{known:.2f}")
        rows.append(cells)
    return table(header, rows)
