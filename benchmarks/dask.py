"""python -m benchmarks.dask [--rows N] [--repeats K] [--out FILE]: Dask beside one process.

The same rows on the same two cores, in turn: by one process of two threads, and by two Dask worker
processes of one thread each. Fits are in fresh processes; the shortest of each kind counts.
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
from experiments.runs.provenance import processor

ROWS, REPEATS = 2 * 10**6, 2
LIMIT = 1.25
# Workers have as many as the process that starts them is told.
THREADS = {"local": "2", "dask": "1"}


@dataclass(frozen=True)
class Fitted:
    """A fit: seconds, those spent in layers, the process's memory in MB, and predictions."""

    seconds: float
    in_layers: float
    megabytes: float
    predictions: np.ndarray


def measure(kind: str, n_rows: int) -> Fitted:
    """One fit in a process of its own, with as many threads of BLAS as its kind has."""
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
    """A row for each kind of fit."""
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
    """Measure both kinds in turn, and write down what came out."""
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
    local, dask = best["local"], best["dask"]
    difference = np.abs(local.predictions - dask.predictions).max()
    lines = [
        "# Dask beside one process",
        "",
        f"Made by `python -m benchmarks.dask --rows {int(arguments.rows)}`, as `make bench-scale` "
        f"does with {ROWS}, on {processor()}, two cores: {int(arguments.rows):,} rows of "
        f"{COLUMNS} numbers and a nonlinear target, {LAYERS} layers of ({FEATURES}, {FEATURES}) "
        "features, squared error. Rows are in memory, that of the process or of the workers, "
        f"before the clock starts. The shortest of {arguments.repeats} fits each, in turn.",
        "",
        *table(best),
        "",
        f"Dask ÷ one process: **{dask.seconds / local.seconds:.2f}** (aim: {LIMIT} at the most). "
        f"The largest difference between their predictions of {len(local.predictions):,} rows is "
        f"{difference:.1e}, that of products which BLAS shares out among two threads.",
    ]
    text = "\n".join(lines) + "\n"
    arguments.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
