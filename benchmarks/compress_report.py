"""The table and the figure of ``benchmarks.compress``."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.predict_report import table
from experiments.runs.provenance import current, markdown_footer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.compress import Record

INTRODUCTION = """# Smaller models

Default models, compressed by several tolerances and sizes, and CatBoost with its default
parameters. Errors are those of test rows: RMSE, or log loss for classes. "cost" is the share by
which the error is larger than the default model's, "estimated" what `compress` expected from the
training rows. Processor time of one thread in batches of 1,000 rows. Made by
`python -m benchmarks.compress`.
"""
DEFAULT = "default"
PEER = "CatBoost"
OTHERS = ("tolerance 0.05", "size 1000", "size 100", "size 30")


def report(records: "list[Record]") -> str:
    """All tables of a run, as Markdown."""
    commits = sorted({record.commit for record in records})
    mixed = f"\nResults of several commits: {', '.join(commits)}.\n" if len(commits) > 1 else ""
    parts = [INTRODUCTION + mixed, "## Medians over tables\n", medians(records)]
    parts += ["## By table\n", by_table(records)]
    return "\n".join(parts) + markdown_footer([current()])


def of_model(records: "list[Record]", model: str) -> "dict[str, Record]":
    """The records of one model, by table."""
    return {record.table: record for record in records if record.model == model}


def medians(records: "list[Record]") -> str:
    """A row for each model: how much faster, smaller and worse it is than the default model."""
    default = of_model(records, DEFAULT)
    rows = []
    for model in dict.fromkeys(record.model for record in records):
        own = of_model(records, model)
        pairs = [(own[name], default[name]) for name in own]
        costs = [100 * (a.error / b.error - 1) for a, b in pairs]
        faster = [b.microseconds_a_row / a.microseconds_a_row for a, b in pairs]
        cells = [model, str(len(own)), f"{median(faster):.1f}"]
        cells.append(f"{median(a.microseconds_a_row for a, _ in pairs):.1f}")
        cells += [f"{median(costs):.2f}", f"{max(costs):.2f}"]
        cells.append(f"{100 * median(a.estimated for a, _ in pairs):.2f}")
        cells.append(f"{median(a.bytes for a, _ in pairs) / 1e3:.0f}")
        cells.append(f"{sum(a.centres > 0 for a, _ in pairs)}")
        rows.append(cells)
    header = ["model", "tables", "times faster", "µs a row", "cost, %", "largest cost, %"]
    return table([*header, "estimated, %", "kB", "tables with training rows in the file"], rows)


def by_table(records: "list[Record]") -> str:
    """A row for each model of each table."""
    default = of_model(records, DEFAULT)
    rows = [
        [
            record.table,
            record.model,
            f"{record.features:,}",
            f"{record.metric} {record.error:.4f}",
            f"{100 * (record.error / default[record.table].error - 1):.2f}",
            f"{100 * record.estimated:.2f}",
            f"{record.microseconds_a_row:.2f}",
            f"{record.bytes / 1e3:.0f}",
            f"{record.centres:,}",
            f"{record.seconds:.1f}",
        ]
        for record in records
    ]
    header = ["table", "model", "features or trees", "error", "cost, %", "estimated, %"]
    return table([*header, "µs a row", "kB", "training rows", "seconds to make"], rows)


def figure(records: "list[Record]", path: Path) -> None:
    """A panel for each table: errors against microseconds a row, the best model at the lower left.

    The line joins our models that no other one of ours beats in both.
    """
    from matplotlib.figure import Figure

    tables = list(dict.fromkeys(record.table for record in records))
    columns = min(3, len(tables))
    high = -(-len(tables) // columns)
    drawing = Figure(figsize=(3.4 * columns, 2.7 * high), layout="constrained", dpi=150)
    panels = drawing.subplots(high, columns, squeeze=False).ravel()
    for panel, name in zip(panels, tables, strict=False):
        own = [record for record in records if record.table == name]
        draw_panel(panel, name, own)
    for panel in panels[len(tables) :]:
        panel.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    drawing.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )
    drawing.savefig(path, metadata={"Software": None})


def draw_panel(panel: "Axes", name: str, records: "list[Record]") -> None:
    """The models of one table."""
    ours = [r for r in records if r.model != PEER]
    by_time = sorted(ours, key=lambda r: r.microseconds_a_row)
    best = float("inf")
    front = []
    for record in by_time:
        if record.error < best:
            best = record.error
            front.append(record)
    times, errors = ([getattr(r, f) for r in front] for f in ("microseconds_a_row", "error"))
    panel.plot(times, errors, color="tab:blue", linewidth=1)
    marks = [
        (lambda r: r.model == DEFAULT, "tab:blue", "s", "rfrboost, default"),
        (lambda r: r.model == "tolerance 0.01", "tab:green", "D", "compress(tolerance=0.01)"),
        (lambda r: "no training" in r.model, "tab:purple", "^", "the same without training rows"),
        (lambda r: r.model in OTHERS, "tab:blue", ".", "other tolerances and sizes"),
        (lambda r: r.model == PEER, "tab:orange", "o", "CatBoost, default"),
    ]
    for wanted, colour, marker, label in marks:
        some = [r for r in records if wanted(r)]
        x, y = ([getattr(r, f) for r in some] for f in ("microseconds_a_row", "error"))
        panel.plot(x, y, linestyle="none", marker=marker, color=colour, label=label, markersize=6)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_title(f"{name.replace('_', ' ')}, {records[0].rows:,} rows", fontsize=9)
    panel.set_xlabel("µs a row", fontsize=8)
    panel.set_ylabel(records[0].metric, fontsize=8)
    panel.tick_params(labelsize=7)
