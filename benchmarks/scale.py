"""Seconds and memory of streamed fits against the number of rows, with a cost model.

python -m benchmarks.scale [--rows N …] [--folder DIR] [--out FILE]

Rows are written to Parquet block by block, and fitted from there, each number of rows in a new
process.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from benchmarks.scale_cost import Rates, RowCost, measured_rates, row_cost
from experiments.runs.files import write_report
from experiments.runs.provenance import current

COLUMNS, FEATURES, LAYERS = 20, 256, 5
ROWS = (10**4, 10**5, 10**6, 10**7)
# Rows that are written at a time, and rows of a file.
BLOCK = 65_536
FILE_ROWS = 10 * BLOCK
# Fits of at most REPEATED rows are timed REPEATS times, and the shortest time counts.
REPEATED = 10**6
REPEATS = 3
# From FROM rows on, the cost per row should not vary by more than the share WITHIN.
FROM = 10**5
WITHIN = 0.15
# The largest acceptable peak beyond the interpreter, in MB.
MEMORY_LIMIT = 1000
# The extrapolation: rows, workers, and network speed in bytes per second.
FAR = 10**9
WORKERS = 64
NETWORK = 1e9


@dataclass(frozen=True)
class Measured:
    """A fit: rows, seconds, seconds in layers, and peak MB beyond the bare interpreter."""

    rows: int
    seconds: float
    in_layers: float
    megabytes: float

    @property
    def per_row(self) -> float:
        """Seconds per row and layer of the whole fit."""
        return self.seconds / self.rows / LAYERS


def block_of(first: int, size: int) -> pa.Table:
    """A block of rows with a nonlinear target and noise; ``first`` and ``size`` determine it."""
    rng = np.random.default_rng([0, first])
    X = rng.standard_normal((size, COLUMNS))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.tanh(X[:, 3] + X[:, 4]) * X[:, 5]
    columns = {f"x{j}": X[:, j] for j in range(COLUMNS)}
    return pa.table({**columns, "y": smooth + 0.1 * rng.standard_normal(size)})


def write_rows(
    folder: Path, n_rows: int, file_rows: int = FILE_ROWS, block_rows: int = BLOCK
) -> None:
    """Write ``n_rows`` rows as Parquet files, with one block in memory at a time."""
    for number, begin in enumerate(range(0, n_rows, file_rows)):
        path = folder / f"part-{number:05d}.parquet"
        stop = min(begin + file_rows, n_rows)
        with pq.ParquetWriter(path, block_of(0, 1).schema) as writer:
            for first in range(begin, stop, block_rows):
                writer.write_table(block_of(first, min(block_rows, stop - first)))


def measure(n_rows: int, folder: str | None) -> Measured:
    """Write the rows, fit them in a new process, and delete them."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        write_rows(Path(place), n_rows)
        repeats = REPEATS if n_rows <= REPEATED else 1
        words = ["-m", "benchmarks.scale_run", place, *map(str, (LAYERS, FEATURES, repeats))]
        run = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, check=True)
    return Measured(n_rows, **json.loads(run.stdout))


def table(measured: list[Measured], predicted: float) -> list[str]:
    """One row per fit."""
    lines = [
        "| rows | fit, s | µs per row and layer | in layers alone | cost model | measured ÷ model "
        "| peak memory, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for m in measured:
        alone = m.in_layers / m.rows / LAYERS
        lines.append(
            f"| {m.rows:,} | {m.seconds:.1f} | **{1e6 * m.per_row:.2f}** | {1e6 * alone:.2f} | "
            f"{1e6 * predicted:.2f} | {m.per_row / predicted:.2f} | **{m.megabytes:.0f}** |"
        )
    return lines


def verdict(measured: list[Measured]) -> str:
    """How much the cost per row varies, and the largest peak of memory."""
    large = [m for m in measured if m.rows >= FROM]
    if not large:
        return ""
    costs = [m.per_row for m in large]
    spread = max(costs) / min(costs) - 1
    return (
        f"From {FROM:,} rows on, the largest cost per row is {spread:.1%} above the smallest (aim: "
        f"{WITHIN:.0%}); the largest peak is {max(m.megabytes for m in large):.0f} MB beyond the "
        f"interpreter with its imports (aim: {MEMORY_LIMIT})."
    )


def cost_rows(cost: RowCost, rates: Rates) -> list[str]:
    """The cost model: amounts, measured rates, and the resulting microseconds."""
    moved = cost.bytes_read + cost.bytes_written
    parts = [
        ("products for features", cost.feature_flops, "flop", rates.feature_flops),
        ("Gram matrix", cost.gram_flops, "flop", rates.gram_flops),
        ("activations", cost.activations, "tanh", rates.activations),
        (f"spill: {cost.bytes_written:.0f} bytes written", moved, "byte", rates.bytes),
        ("rows centred", cost.centered, "row", rates.centered),
    ]
    lines = ["| per row and layer | amount | measured rate | µs |", "|---|---|---|---|"]
    for name, amount, unit, rate in parts:
        lines.append(
            f"| {name} | {amount:,.0f} {unit}s | {rate / 1e9:.3g} G{unit}s/s | "
            f"{1e6 * amount / rate:.2f} |"
        )
    return [*lines, f"| together | | | **{1e6 * rates.seconds(cost):.2f}** |"]


def extrapolation(largest: Measured, cost: RowCost) -> list[str]:
    """The estimated time for 10⁹ rows on 64 workers of this speed."""
    share = FAR // WORKERS
    p = 2 * FEATURES
    gram_bytes, levels = 8.0 * p * (p + 1), math.ceil(math.log2(WORKERS))
    compute = share * LAYERS * largest.per_row
    reduce = LAYERS * levels * gram_bytes / NETWORK
    disk = share * (8 * (2 * COLUMNS + 2) + 20) / 1e9
    return [
        f"Estimate for {FAR:,} rows on {WORKERS} workers of this speed: {share:,} rows each, "
        f"{compute:,.0f} s at the cost per row measured with {largest.rows:,} rows. The sums of a "
        f"layer are {gram_bytes / 1e6:.1f} MB per worker; added in a tree of {levels} levels over "
        f"a network of {NETWORK / 1e9:.0f} GB/s they take {reduce:.2f} s in all {LAYERS} layers. "
        f"Together about **{(compute + reduce) / 60:.0f} minutes**, {disk:.1f} GB of disk and "
        f"{largest.megabytes:.0f} MB of memory per worker; "
        f"{cost.flops * FAR * LAYERS / 1e15:.2f} Pflop in all."
    ]


def draw(measured: list[Measured], predicted: float, path: Path) -> None:
    """Draw the cost per row and the peak memory against the number of rows."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    cost, memory = figure.subplots(1, 2)
    rows = [m.rows for m in measured]
    cost.plot(rows, [1e6 * m.per_row for m in measured], "o-", label="measured")
    cost.axhline(1e6 * predicted, color="grey", linestyle="--", label="cost model")
    cost.set(xscale="log", xlabel="rows", ylabel="µs per row and layer", ylim=(0, None))
    cost.legend()
    memory.plot(rows, [m.megabytes for m in measured], "o-")
    memory.axhline(MEMORY_LIMIT, color="grey", linestyle="--")
    memory.set(xscale="log", xlabel="rows", ylabel="peak memory beyond imports, MB", ylim=(0, None))
    figure.savefig(path)


def main() -> None:
    """Measure every number of rows, smallest first, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=ROWS, help="numbers of rows")
    parser.add_argument("--folder", help="where rows are written (6 GB for 10^7 rows)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/scale.md"))
    arguments = parser.parse_args()
    cost = row_cost(COLUMNS, 2 * FEATURES)
    rates = measured_rates(COLUMNS, 2 * FEATURES)
    predicted = rates.seconds(cost)
    measured = []
    for n_rows in sorted(map(int, arguments.rows)):
        measured.append(measure(n_rows, arguments.folder))
        print(measured[-1], flush=True)
    picture = arguments.out.with_suffix(".svg")
    draw(measured, predicted, picture)
    lines = [
        "# Streamed fits",
        "",
        f"Made by `make bench-scale`. Rows of {COLUMNS} numbers and a nonlinear target are written "
        f"to Parquet and fitted from there: {LAYERS} layers of ({FEATURES}, {FEATURES}) features, "
        "squared error, each fit in a new process. The time includes reading Parquet, sampling "
        f"the rows, spilling to disk, and the layers. Up to {REPEATED:,} rows it is the shortest "
        f"of {REPEATS} fits, since the first fit of a process waits for fresh memory.",
        "",
        *table(measured, predicted),
        "",
        verdict(measured),
        "",
        f"![Cost per row and peak memory by number of rows]({picture.name})",
        "",
        "## The cost model",
        "",
        "A layer of squared error takes three passes over the rows, and features are computed in "
        "two of them. The rates are those of each kind of work by itself, just before the fits.",
        "",
        *cost_rows(cost, rates),
        "",
        *extrapolation(measured[-1], cost),
    ]
    print(write_report(arguments.out, "\n".join(lines), [current()]))


if __name__ == "__main__":
    main()
