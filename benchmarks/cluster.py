"""What an automatic fit of a billion rows on a cluster would take, from constants measured here.

python -m benchmarks.cluster [--rows N] [--columns D] [--workers W] [--sample N] [--leaf N]

Measured are the time to encode a row, to fit a leaf, to fit all families but the kernel members to
their sample, and to predict a row by these. The rest is arithmetic: what goes over the network, and
what each machine holds. Nothing of the size of the extrapolation is run.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from numpy.random import default_rng

from experiments.reports.markdown import markdown_table
from experiments.runs.files import write_report
from experiments.runs.provenance import current
from rfrboost import RFRBoostRegressor
from rfrboost._auto.bags import bag
from rfrboost._auto.local_kernels import LeafRows, fit_leaf
from rfrboost._numerics.sizes import SIZES
from rfrboost._numerics.threads import team
from rfrboost._tables.fit import fit_encoder

ROWS = 10**9
COLUMNS = 50
WORKERS = 64
N_BAGS = 5
THREADS = 2
# Bytes of a number in double and in single precision.
DOUBLE, SINGLE = 8, 4
# Bytes per second of the network, and of random reads from the client's disk.
NETWORK = 1e9
DISK = 1e9
# Numbers of each row, besides its columns, that the client holds: targets, predictions, orders.
HELD_PER_ROW = 10
# Kernel matrices that a worker holds at a time: the kernel, and two factors of it.
MATRICES = 3

HEADER = """\
# A billion rows on a cluster: what it would take

Made by `python -m benchmarks.cluster`. The constants in the first table were measured with rows of
{columns} numbers, one worker with one thread; the fit of the sample had {threads} threads. The
second table is arithmetic with them: **nothing of that size was run**. It assumes {workers}
workers of one thread each, a network of {network:.0f} GB/s, and a disk that the client reads at
{disk:.0f} GB/s.
"""


@dataclass(frozen=True)
class Constants:
    """Seconds: to encode a row, fit a leaf, fit the sample, and predict a row on one thread.

    A leaf has ``leaf_rows`` rows.
    """

    encode_row: float
    fit_leaf: float
    fit_sample: float
    predict_row: float
    leaf_rows: int


def made_rows(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns and a target of some of them, with noise."""
    rng = default_rng(0)
    X = rng.standard_normal((n, columns))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + (X[:, 3] > 0)
    return X, smooth + 0.3 * rng.standard_normal(n)


def seconds_to_encode(n: int, columns: int) -> float:
    """Seconds for each row that a worker encodes."""
    X, y = made_rows(n, columns)
    frame = pd.DataFrame(X).add_prefix("x")
    encoder, _ = fit_encoder(frame, y, None, "regression", default_rng(0))
    began = perf_counter()
    encoder(frame)
    return (perf_counter() - began) / n


def seconds_of_a_leaf(n: int, columns: int) -> float:
    """Seconds to fit a leaf of n rows on one thread."""
    X, y = made_rows(n, columns)
    x = np.column_stack([X, np.ones(n)])
    bags = bag(x, y[:, None], None, N_BAGS, False, default_rng(0))
    one_group = bags.restricted(np.arange(n))
    leaf = LeafRows(one_group, np.eye(columns), default_rng(0), math.inf)
    with team(most=1):
        began = perf_counter()
        fit_leaf(leaf)
        return perf_counter() - began


def measured(sample: int, leaf: int, columns: int) -> Constants:
    """All constants, with this many rows in the sample and in a leaf."""
    X, y = made_rows(sample + SIZES.batch_rows, columns)
    model = RFRBoostRegressor(features=("swim", "sparse", "trees"), n_jobs=THREADS, random_state=0)
    began = perf_counter()
    model.fit(X[:sample], y[:sample])
    fitted = perf_counter()
    with team(most=1):
        begun = perf_counter()
        model.predict(X[sample:])
        predicted = perf_counter() - begun
    return Constants(
        encode_row=seconds_to_encode(SIZES.chunk_rows, columns),
        fit_leaf=seconds_of_a_leaf(leaf, columns),
        fit_sample=fitted - began,
        predict_row=predicted / SIZES.batch_rows,
        leaf_rows=leaf,
    )


def amounts(known: Constants, rows: int, columns: int, workers: int) -> pd.DataFrame:
    """Every step of a fit: who does it, its seconds, and bytes over the network."""
    leaves = 2 ** math.ceil(math.log2(rows / known.leaf_rows))
    # Time of a leaf grows with its rows to a power between two and three; leaves have fewer rows
    # than was measured, so that the square is on the safe side.
    per_leaf = known.fit_leaf * (rows / leaves / known.leaf_rows) ** 2
    encoded = DOUBLE * (columns + 2)
    returned = SINGLE * (columns + N_BAGS) + DOUBLE
    steps = [
        ("encode rows", "workers", rows * known.encode_row / workers, rows * encoded),
        ("fit the sample", "client", known.fit_sample, 0),
        ("read rows of leaves", "client", rows * encoded / DISK, 0),
        (f"fit {leaves:,} leaves", "workers", leaves * per_leaf / workers, rows * encoded),
        ("return leaves", "workers", 0.0, rows * returned),
        ("out-of-fold predictions", "client", rows * known.predict_row / THREADS, 0),
    ]
    table = pd.DataFrame(steps, columns=["step", "by", "computing, s", "network, GB"])
    table["network, s"] = table["network, GB"] / NETWORK
    table["network, GB"] /= 1e9
    return table


def holdings(known: Constants, rows: int, columns: int) -> str:
    """What each machine holds, in words."""
    worker = MATRICES * SINGLE * known.leaf_rows**2 / 1e6
    disk = rows * DOUBLE * (columns + 1) / 1e9
    client = rows * (DOUBLE * HELD_PER_ROW + SINGLE * columns) / 1e9
    return (
        f"A worker holds {worker:,.0f} MB for a leaf of {known.leaf_rows:,} rows, and its "
        f"partitions. The client has a table of {disk:,.0f} GB on its disk, and in memory "
        f"{client:,.0f} GB: "
        f"{HELD_PER_ROW} numbers for each row, and the model, whose centres are all rows in single "
        f"precision, {rows * SINGLE * columns / 1e9:,.0f} GB."
    )


def page(known: Constants, rows: int, columns: int, workers: int) -> str:
    """The page: constants, steps, and what they mean."""
    constants = pd.DataFrame(
        [
            ("encoding a row", f"{1e6 * known.encode_row:.2f} µs"),
            (f"fitting a leaf of {known.leaf_rows:,} rows", f"{known.fit_leaf:.1f} s"),
            ("fitting the sample", f"{known.fit_sample:.0f} s"),
            ("predicting a row without kernel members", f"{1e6 * known.predict_row:.1f} µs"),
        ],
        columns=["what", "time"],
    )
    steps = amounts(known, rows, columns, workers)
    total = steps["computing, s"].sum() + steps["network, s"].sum()
    shown = steps.assign(**{name: steps[name].map("{:,.0f}".format) for name in steps.columns[2:]})
    words = {"columns": columns, "threads": THREADS, "workers": workers}
    return "\n".join(
        [
            HEADER.format(**words, network=NETWORK / 1e9, disk=DISK / 1e9),
            markdown_table(constants),
            f"## {rows:,} rows, {workers} workers\n",
            markdown_table(shown),
            f"Together {total / 3600:,.1f} hours, one step after the other. "
            + holdings(known, rows, columns),
            "",
            "The client is the limit: rows pass through it, and it holds the model. With "
            "`max_seconds`, leaves are made smaller and fewer rows have out-of-fold predictions. "
            "A single network (`n_layers` a number) leaves all rows with the workers: see "
            "[streamed fits](scale.md).",
            "",
        ]
    )


def main() -> None:
    """Measure the constants and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--sample", type=int, default=SIZES.boosted_rows, help="rows of the sample")
    parser.add_argument("--leaf", type=int, default=SIZES.most_centres, help="rows of a leaf")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/cluster.md"))
    asked = parser.parse_args()
    made_with = current()
    known = measured(asked.sample, asked.leaf, asked.columns)
    text = page(known, asked.rows, asked.columns, asked.workers)
    print(write_report(asked.out, text, [made_with]))


if __name__ == "__main__":
    main()
