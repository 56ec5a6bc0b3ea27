"""Streamed fits of the Parquet files in a folder: seconds and peak memory.

python -m benchmarks.scale_run FOLDER LAYERS FEATURES REPEATS
"""

import json
import sys
from time import perf_counter

import pandas  # noqa: F401 (counted with the interpreter, not with the fit)
import pyarrow.parquet  # noqa: F401

from benchmarks.memory import megabytes
from rfrboost import RFRBoostRegressor, RowBlocks


def main() -> None:
    """Fit REPEATS times, and print the figures of the shortest fit as JSON."""
    folder = sys.argv[1]
    layers, features, repeats = map(int, sys.argv[2:])
    bare = megabytes("VmRSS")
    fits = []
    for _ in range(repeats):
        began = perf_counter()
        model = RFRBoostRegressor(layers, n_features=(features, features), random_state=0)
        model.fit(RowBlocks.from_parquet(folder, target="y", disk_budget=100e9))
        seconds = perf_counter() - began
        fits.append((seconds, sum(record["seconds"] for record in model.history_)))
    seconds, in_layers = min(fits)
    peak = megabytes("VmHWM") - bare
    print(json.dumps({"seconds": seconds, "in_layers": in_layers, "megabytes": peak}))


if __name__ == "__main__":
    main()
