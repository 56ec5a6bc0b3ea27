"""CoverType, 464,808 training rows: from memory, from Parquet files and from Dask workers.

python -m benchmarks.large [--only "KIND;KIND"] [--rows N] [--data DIR] [--out FILE]

Every fit is in a new process of two threads, beside XGBoost and LightGBM on the same rows. A row is
written as soon as it is measured, and what the same code has measured before is kept, so that an
interrupted run goes on where it ended. All of it takes about half an hour.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.large_run import KINDS, PART_ROWS, TARGET
from benchmarks.limits import known_rows
from experiments.data.large_tables import prepared, subsample
from experiments.data.tables import find_data_folder
from experiments.reports.markdown import markdown_table
from experiments.runs.files import write_report, write_table
from experiments.runs.provenance import current

TABLE = "covtype"
ROWS = 464_808
# The kinds that must give one model.
SAME = ("arrays", "Parquet row blocks", "Dask, two workers")
HEADER = """\
# One large table from three sources

Made by `python -m benchmarks.large`: CoverType, {rows:,} training rows of 54 columns, {test:,} test
rows, two threads. Every fit is in a process of its own; *memory* is the most that this process held
in all (for Dask, which keeps the rows in two other processes, without these). *Same as arrays* is
the largest difference of a probability from that of the model of rows in memory.
"""


def write_rows(rows: int, data: Path, folder: Path) -> int:
    """Write training rows as Parquet files and test rows; gives the number of test rows."""
    fold = subsample(prepared(TABLE, data), rows, 0)
    (folder / "train").mkdir()
    for i in range(0, len(fold.y_train), PART_ROWS):
        part = pd.DataFrame(fold.X_train[i : i + PART_ROWS]).add_prefix("x")
        part[TARGET] = fold.y_train[i : i + PART_ROWS]
        part.to_parquet(folder / "train" / f"part-{i:09}.parquet", index=False)
    np.savez(folder / "test.npz", X=fold.X_test, y=fold.y_test)
    return len(fold.y_test)


def measured(kind: str, folder: Path) -> dict[str, object]:
    """Fit a kind in a new process; its difference from rows in memory, if these were fitted."""
    words = [sys.executable, "-m", "benchmarks.large_run", kind, str(folder)]
    row = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)
    reference = folder / f"{SAME[0]}.npy"
    if kind in SAME and reference.exists():
        difference = np.load(folder / f"{kind}.npy") - np.load(reference)
        row["difference"] = float(np.abs(difference).max())
    return dict(row)


def page(rows: pd.DataFrame, n_rows: int, n_test: int) -> str:
    """The page of all figures."""
    shown = pd.DataFrame(
        {
            "fit": rows["kind"],
            "accuracy": rows["accuracy"].map("{:.4f}".format),
            "log loss": rows["log_loss"].map("{:.4f}".format),
            "fit, s": rows["fit_seconds"].map("{:.0f}".format),
            "predict, s": rows["predict_seconds"].map("{:.1f}".format),
            "memory, MB": rows["megabytes"].map("{:.0f}".format),
            "same as arrays": [
                "–" if np.isnan(d) else f"{d:.0e}"
                for d in rows.get("difference", np.nan * rows["megabytes"])
            ],
        }
    )
    return HEADER.format(rows=n_rows, test=n_test) + "\n" + markdown_table(shown)


def main() -> None:
    """Measure all kinds and write the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--only", default=";".join(KINDS), help="kinds, separated by ;")
    parser.add_argument("--rows", type=int, default=ROWS, help="training rows")
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/large.md"))
    arguments = parser.parse_args()
    wanted = arguments.only.split(";")
    made_with = current()
    path = arguments.out.with_suffix(".csv")
    rows = known_rows(path, made_with.code).to_dict("records")
    done = {row["kind"] for row in rows}
    with tempfile.TemporaryDirectory() as name:
        n_test = write_rows(arguments.rows, find_data_folder(arguments.data), Path(name))
        for kind in [kind for kind in wanted if kind not in done]:
            rows.append({**measured(kind, Path(name)), "code": made_with.code})
            write_table(path, pd.DataFrame(rows), [made_with])
            print(rows[-1], flush=True)
    print(
        write_report(arguments.out, page(pd.DataFrame(rows), arguments.rows, n_test), [made_with])
    )


if __name__ == "__main__":
    main()
