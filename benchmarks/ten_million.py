"""Ten million rows of 20 numbers, streamed from Parquet files, beside LightGBM in memory.

python -m benchmarks.ten_million [--rows N] [--max-seconds S] [--out FILE]

The rows are those of the table ``generated`` (experiments/data/synthetic.py). Our default model is
fitted to row blocks under a time limit, LightGBM's default model to the same rows in memory, each
in a process of its own on two threads. Both predict 100,000 other rows.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from experiments.data.synthetic import MIXED_BLOCK, MIXED_NOISE, mixed_block
from experiments.reports.markdown import markdown_table
from experiments.runs.files import write_report, write_table
from experiments.runs.peak_memory import megabytes
from experiments.runs.provenance import current

ROWS = 10_000_000
TEST_ROWS = 100_000
SEED = 0
TARGET = "target"
THREADS = 2
HEADER = """\
# Ten million rows

Made by `python -m benchmarks.ten_million --rows {rows} --max-seconds {seconds:g}`: {rows:,} rows of
20 numbers in Parquet files, two threads. `RFRBoostRegressor(max_seconds={seconds:g})` reads them as
row blocks; LightGBM's default model has them in memory, in single precision. *MB* is all memory
that the process held at most, the interpreter included. The noise alone has an RMSE of {noise:g}.
"""


def write_rows(n_rows: int, folder: Path) -> None:
    """Write the training rows as Parquet files of a million rows, and the test rows."""
    (folder / "train").mkdir()
    for number, begin in enumerate(range(0, n_rows, MIXED_BLOCK)):
        block = mixed_block(number, min(MIXED_BLOCK, n_rows - begin), SEED)
        block.to_parquet(folder / "train" / f"part-{number:03}.parquet", index=False)
    mixed_block(10**6, TEST_ROWS, SEED).to_parquet(folder / "test.parquet", index=False)


def fitted_ours(folder: Path, max_seconds: float) -> Any:
    """Our model of the row blocks."""
    from rfrboost import RFRBoostRegressor, RowBlocks

    blocks = RowBlocks.from_parquet(folder / "train", target=TARGET)
    return RFRBoostRegressor(max_seconds=max_seconds, n_jobs=THREADS, random_state=0).fit(blocks)


def fitted_lightgbm(folder: Path, max_seconds: float) -> Any:
    """LightGBM's model of the rows in memory."""
    from lightgbm import LGBMRegressor

    frame = pd.read_parquet(folder / "train")
    y = frame.pop(TARGET)
    return LGBMRegressor(n_jobs=THREADS, verbose=-1, random_state=0).fit(frame, y)


MODELS: dict[str, Callable[[Path, float], Any]] = {
    "rfrboost, row blocks": fitted_ours,
    "LightGBM, in memory": fitted_lightgbm,
}


def measure(name: str, folder: Path, max_seconds: float) -> dict[str, object]:
    """Fit and score one model in this process."""
    began = perf_counter()
    model = MODELS[name](folder, max_seconds)
    seconds = perf_counter() - began
    peak = megabytes("VmHWM")
    test = pd.read_parquet(folder / "test.parquet")
    y = test.pop(TARGET)
    began = perf_counter()
    predicted = model.predict(test)
    microseconds = 1e6 * (perf_counter() - began) / len(y)
    rmse = float(np.sqrt(np.mean((predicted - y) ** 2)))
    return {
        "model": name,
        "RMSE": rmse,
        "fit, s": round(seconds),
        "predict, µs a row": f"{microseconds:.1f}",
        "MB": round(peak),
    }


def measured_apart(name: str, folder: Path, max_seconds: float) -> dict[str, object]:
    """The figures of :func:`measure` from a new process."""
    words = [sys.executable, "-m", "benchmarks.ten_million", "--measure", name]
    words += ["--folder", str(folder), "--max-seconds", str(max_seconds)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Write the rows, fit both models, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ten_million", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--max-seconds", type=float, default=3000.0, help="of our fit")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/ten_million.md"))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(json.dumps(measure(asked.measure, asked.folder, asked.max_seconds)))
        return
    made_with = current()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write_rows(asked.rows, Path(name))
        for model in MODELS:
            rows.append(measured_apart(model, Path(name), asked.max_seconds))
            print(rows[-1], flush=True)
    write_table(asked.out.with_suffix(".csv"), pd.DataFrame(rows), [made_with])
    header = HEADER.format(rows=asked.rows, seconds=asked.max_seconds, noise=MIXED_NOISE)
    text = header + "\n" + markdown_table(pd.DataFrame(rows))
    print(write_report(asked.out, text, [made_with]))


if __name__ == "__main__":
    main()
