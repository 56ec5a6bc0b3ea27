"""Fits by two Dask workers compared with fits in one process.

python -m benchmarks.dask [--rows N] [--repeats K] [--out FILE]

The same rows on the same two cores, in turn: one process with two threads, and two Dask worker
processes with one thread each. Each fit is in a fresh process; the shortest of each kind counts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.scale import COLUMNS, FEATURES, LAYERS
from experiments.runs.files import write_report
from experiments.runs.provenance import current

ROWS = 2 * 10**6
REPEATS = 2
# The largest acceptable ratio of seconds, Dask ÷ one process.
LIMIT = 1.25
# BLAS threads of the process that is started; Dask workers inherit the setting.
THREADS = {"local": "2", "dask": "1"}


@dataclass(frozen=True)
class Fitted:
    """A fit: seconds, seconds in layers, peak memory of the calling process in MB, predictions."""

    seconds: float
    in_layers: float
    megabytes: float
    predictions: np.ndarray


def measure(kind: str, n_rows: int) -> Fitted:
    """One fit in a new process, with the BLAS threads of its kind."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        numbers = map(str, (n_rows, LAYERS, FEATURES))
        words = ["-m", "benchmarks.dask_run", kind, *numbers, file.name]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), THREADS[kind])
        run = subprocess.run(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, **threads},
        )
        return Fitted(**json.loads(run.stdout), predictions=np.load(file.name))


def table(best: dict[str, Fitted]) -> list[str]:
    """One row per kind of fit."""
    names = {
        "local": "one process, two threads of BLAS",
        "dask": "Dask, two workers of one thread",
    }
    lines = [
        "| | fit, s | in layers alone, s | peak memory of the process that calls fit, MB |",
        "|---|---|---|---|",
    ]
    for kind, m in best.items():
        lines.append(
            f"| {names[kind]} | **{m.seconds:.1f}** | {m.in_layers:.1f} | {m.megabytes:.0f} |"
        )
    return lines


def main() -> None:
    """Measure both kinds in turn, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dask", description=__doc__)
    parser.add_argument("--rows", type=float, default=ROWS, help="number of rows")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="fits of each kind")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/dask.md"))
    arguments = parser.parse_args()
    fits: dict[str, list[Fitted]] = {kind: [] for kind in THREADS}
    for _ in range(arguments.repeats):
        for kind in THREADS:
            fits[kind].append(measure(kind, int(arguments.rows)))
            print(f"{kind}: {fits[kind][-1].seconds:.1f} s", flush=True)
    best = {kind: min(found, key=lambda m: m.seconds) for kind, found in fits.items()}
    local = best["local"]
    dask = best["dask"]
    difference = np.abs(local.predictions - dask.predictions).max()
    lines = [
        "# Dask compared with one process",
        "",
        f"Made by `python -m benchmarks.dask --rows {int(arguments.rows)}`, as `make bench-scale` "
        f"does with {ROWS}, on two cores: {int(arguments.rows):,} rows of {COLUMNS} numbers and a "
        f"nonlinear target, {LAYERS} layers of ({FEATURES}, {FEATURES}) features, squared error. "
        "Before the clock starts, the rows are in the memory of the process or of the workers. "
        f"The shortest of {arguments.repeats} fits of each kind, in turn.",
        "",
        *table(best),
        "",
        f"Dask ÷ one process: **{dask.seconds / local.seconds:.2f}** (aim: at most {LIMIT}). "
        f"The largest difference between their predictions of {len(local.predictions):,} rows is "
        f"{difference:.1e}; BLAS sums in another order on two threads.",
    ]
    print(write_report(arguments.out, "\n".join(lines), [current(threads=2)]))


if __name__ == "__main__":
    main()
