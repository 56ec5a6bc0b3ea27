"""The Markdown table of ``benchmarks.predict``: medians over tables, and a row for each table."""

from collections.abc import Iterable
from statistics import fmean, median
from typing import TYPE_CHECKING

from experiments.runs.provenance import current, markdown_footer

if TYPE_CHECKING:
    from benchmarks.predict import Record

OURS = "rfrboost"
COMPILED = "rfrboost, compiled"
PEER = "CatBoost"

#: what was called
PREDICT = "predict"
FRAME = "predict, data frame"
INTERVAL = "interval or set"

# Rows of folds and of whole tables, for each of which there is a goal.
FOLD_ROWS = 4_000
WHOLE_ROWS = 50_000

INTRODUCTION = """# Predictions: microseconds a row

Models with default parameters; of several calls the best counts. "÷ CatBoost" is the median over
tables of the ratio to CatBoost's time on the same table. Folds are the first of the paper's
protocol, "whole" tables have up to 50,000 training rows. Made by `make bench-predict`.
"""


def report(records: "list[Record]") -> str:
    """All tables of a run, as Markdown."""
    commits = sorted({record.commit for record in records})
    mixed = f"\nResults of several commits: {', '.join(commits)}.\n" if len(commits) > 1 else ""
    plain = [record for record in records if record.call == PREDICT]
    whole = [record for record in plain if record.table.endswith(", whole")]
    folds = [record for record in plain if not record.table.endswith(", whole")]
    parts = [INTRODUCTION + mixed, "## Goals\n", goals(records), "## Scores\n", scores(folds)]
    for title, some in (("First folds", folds), ("Whole tables", whole)):
        if some:
            parts += [f"## {title}\n", medians(some), f"### {title}, by table\n", by_table(some)]
    return "\n".join(parts) + markdown_footer([current()])


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def goals(records: "list[Record]") -> str:
    """A row for each goal, with what was measured."""
    rows = []
    for model in (OURS, COMPILED):
        own = [r for r in records if r.model == model]
        if own:
            rows += [[model, *cells] for cells in goals_of(own, records)]
    return table(["model", "what", "threads", "tables", "measured", "goal"], rows)


def goals_of(own: "list[Record]", records: "list[Record]") -> "list[list[str]]":
    """The rows of one of our models: name, threads, tables, what was measured, the goal."""
    folds = [r for r in own if not r.table.endswith(", whole")]
    plain = [r for r in folds if r.call == PREDICT]
    whole = [r for r in own if r.call == PREDICT and r.table.endswith(", whole")]
    peers = {
        (r.table, r.threads, r.batch): r.microseconds_a_row for r in records if r.model == PEER
    }
    rows: list[list[str]] = []

    def row(name: str, threads: int, values: list[float], summary: str, goal: str) -> None:
        number = (max if summary == "largest" else median)(values) if values else None
        found = "" if number is None else f"{number:.2f}"
        rows.append([f"{summary} {name}", str(threads), str(len(values)), found, goal])

    for threads in sorted({r.threads for r in own}):
        for batch, goal in ((1000, "8"), (1, "2")):
            ratios = [
                r.microseconds_a_row / peers[r.table, threads, batch]
                for r in plain
                if r.threads == threads and r.batch == batch and (r.table, threads, batch) in peers
            ]
            row(f"ours ÷ {PEER}, batches of {batch:,}", threads, ratios, "median", goal)
        for some, limit, goal in ((plain, FOLD_ROWS, "100"), (whole, WHOLE_ROWS, "200")):
            large = [r.microseconds_a_row for r in some if r.threads == threads and r.batch == 1000]
            row(f"µs a row, at most {limit:,} training rows", threads, large, "largest", goal)
        one = [r for r in folds if r.threads == threads and r.batch == 1]
        for call, goal in ((PREDICT, "0.5"), (FRAME, "1.5")):
            times = [r.microseconds_a_row / 1e3 for r in one if r.call == call]
            row(f"ms of one row, {call}", threads, times, "median", goal)
        thousand = {
            r.table: r.microseconds_a_row for r in plain if r.threads == threads and r.batch == 1000
        }
        intervals = [r for r in folds if r.call == INTERVAL and r.threads == threads]
        for task in ("regression", "classification"):
            ratios = [r.microseconds_a_row / thousand[r.table] for r in intervals if r.task == task]
            row(f"{INTERVAL} ÷ prediction, {task}", threads, ratios, "median", "2")
            row(f"{INTERVAL} ÷ prediction, {task}", threads, ratios, "largest", "2")
    rows += fit_goals(own, records)
    return rows


def fit_goals(own: "list[Record]", records: "list[Record]") -> "list[list[str]]":
    """Our seconds of a fit beside CatBoost's, both with two threads."""
    peers = {r.table: r.fit_seconds for r in records if r.model == PEER}
    ratios = {r.table: r.fit_seconds / peers[r.table] for r in own if r.table in peers}
    tasks = {r.table: r.task for r in own}
    rows = []
    for task, goal in (("regression", "1.0"), ("classification", "0.7")):
        some = [v for name, v in ratios.items() if tasks[name] == task and ", whole" not in name]
        if some:
            name = f"median fit ÷ {PEER}'s fit, {task}"
            rows.append([name, "2", str(len(some)), f"{median(some):.2f}", goal])
    for name, ratio in ratios.items():
        if ", whole" in name:
            rows.append([f"fit ÷ {PEER}'s fit, {name}", "2", "1", f"{ratio:.2f}", "3"])
    return rows


def scores(records: "list[Record]") -> str:
    """A row for each model: mean scores over the tables of each task."""
    rows = []
    for model in dict.fromkeys(record.model for record in records):
        own = {r.table: r for r in records if r.model == model}.values()
        numbers = [r for r in own if r.task == "regression"]
        classes = [r for r in own if r.task == "classification"]
        cells = [model, str(len(numbers)), mean_of([r.error for r in numbers])]
        cells += [str(len(classes)), mean_of([r.accuracy for r in classes])]
        rows.append([*cells, mean_of([r.error for r in classes])])
    return table(["model", "tables", "RMSE", "tables", "accuracy", "log loss"], rows)


def mean_of(values: list[float]) -> str:
    """The mean, or nothing if there are no values."""
    return f"{fmean(values):.4f}" if values else ""


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
    header += [f"{what}, {model}" for model in (OURS, PEER) for what in ("fit s", "error")]
    last = {(r.table, r.model): r for r in records}
    times = {(r.table, r.model, r.batch): r.microseconds_a_row for r in records if r.threads == 1}
    shapes = {r.table: (r.rows, r.columns) for r in records}
    rows = []
    for name, (n, columns) in shapes.items():
        cells = [name, f"{n:,}", str(columns)]
        for batch in batches:
            for model in (OURS, PEER):
                known = times.get((name, model, batch))
                cells.append("" if known is None else f"{known:.2f}")
        for model in (OURS, PEER):
            own = last.get((name, model))
            cells += ["", ""] if own is None else [f"{own.fit_seconds:.1f}", f"{own.error:.4f}"]
        rows.append(cells)
    return table(header, rows)
