"""Peak memory of ``rfrboost predict`` on a large file.

python -m benchmarks.predict_memory [--rows N]

A table of 20 columns, two of them text and one with missing values, is written block by block as
CSV and as Parquet. A model fitted on its first rows predicts each file in a new process. The peak
memory must stay below the limit, whatever the number of rows.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from experiments.runs.provenance import current, markdown_footer

ROWS = 1_000_000
COLUMNS = 20
# Rows that are written at a time.
BLOCK = 50_000
TRAINING_ROWS = 500
# The largest acceptable peak, in MB.
LIMIT = 1500
COMMAND = [sys.executable, "-m", "rfrboost.cli"]


def block(rows: int, seed: int) -> pa.Table:
    """``rows`` rows of the table."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((rows, COLUMNS - 3))
    missing = pa.array(rng.standard_normal(rows), mask=rng.random(rows) < 0.1)
    towns = np.array([f"town {k}" for k in range(40)])[rng.integers(40, size=rows)]
    kinds = np.array(["plain", "fancy", "odd"])[rng.integers(3, size=rows)]
    columns = {f"x{j}": pa.array(numbers[:, j]) for j in range(COLUMNS - 3)}
    return pa.table(
        {**columns, "missing": missing, "town": pa.array(towns), "kind": pa.array(kinds)}
    )


def write_tables(folder: Path, rows: int) -> list[Path]:
    """Write the same rows as CSV and as Parquet."""
    paths = [folder / "table.csv", folder / "table.parquet"]
    schema = block(1, 0).schema
    with (
        pyarrow.csv.CSVWriter(paths[0], schema) as text,
        pq.ParquetWriter(paths[1], schema) as parquet,
    ):
        for begin in range(0, rows, BLOCK):
            part = block(min(BLOCK, rows - begin), begin)
            text.write_table(part)
            parquet.write_table(part)
    return paths


def fit_model(folder: Path) -> Path:
    """Fit a model on the first rows, and return its file."""
    part = block(TRAINING_ROWS, 0)
    y = part["x0"].to_numpy() * part["x1"].to_numpy() + (part["kind"].to_numpy() == "odd")
    pq.write_table(part.append_column("y", pa.array(y)), folder / "training.parquet")
    model = folder / "model.rfrboost"
    words = ["fit", str(folder / "training.parquet"), "--target", "y", "--out", str(model)]
    subprocess.run([*COMMAND, *words], check=True)
    return model


def measured(model: Path, table: Path) -> tuple[float, float]:
    """Seconds and peak memory in MB of a prediction.

    ``wait4`` waits for the process by its id, because it reports the peak of that process alone.
    """
    out = table.with_suffix(f"{table.suffix}.predictions.csv")
    began = time.perf_counter()
    command = subprocess.Popen([*COMMAND, "predict", str(model), str(table), "--out", str(out)])
    _, status, usage = os.wait4(command.pid, 0)
    seconds = time.perf_counter() - began
    command.returncode = os.waitstatus_to_exitcode(status)
    if command.returncode:
        raise SystemExit(f"The prediction of {table} failed.")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    """Print one row per format, and fail if a peak is above the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predict_memory")
    parser.add_argument(
        "--rows", type=int, default=ROWS, help="rows to predict (default: %(default)s)"
    )
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, tables = fit_model(folder), write_tables(folder, rows)
        print("| table | rows | size MB | seconds | peak MB | limit MB |", flush=True)
        print("|---|---|---|---|---|---|", flush=True)
        peaks = []
        for table in tables:
            seconds, peak = measured(model, table)
            peaks.append(peak)
            size = table.stat().st_size / 1e6
            cells = f"{rows:,} | {size:.0f} | {seconds:.1f} | **{peak:.0f}** | {LIMIT}"
            print(f"| {table.suffix[1:]}, {COLUMNS} columns | {cells} |", flush=True)
    print(markdown_footer([current()]))
    if max(peaks) > LIMIT:
        raise SystemExit(f"More than {LIMIT} MB.")


if __name__ == "__main__":
    main()
