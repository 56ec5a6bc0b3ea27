"""Speed and memory of the cases in ``benchmarks.cases``, written as one Markdown page.

python -m benchmarks [--reference PATH] [--out FILE]
"""

import argparse
import os
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks import memory
from benchmarks.cases import CASES
from benchmarks.speed import Measured, beside_reference, measure, peer_seconds
from experiments.runs.files import write_report
from experiments.runs.provenance import current

# The largest ratio of a prediction to its floor that is acceptable.
PREDICT_LIMIT = 1.3
# The largest acceptable memory of the large fit beyond its data, in MB.
MEMORY_LIMIT = 1500


def speed_rows(measured: list[Measured]) -> list[str]:
    """One row per case: seconds of fit and prediction, and their floors."""
    rows = [
        "| case | threads | fit s | floor | ratio | limit | predict s | floor | ratio | limit |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for m in measured:
        rows.append(
            f"| {m.case.name} | {m.threads} | {m.fit:.3f} | {m.fit_floor:.3f} | "
            f"**{m.fit_ratio:.2f}** | {m.case.limit} | {m.predict:.3f} | {m.predict_floor:.3f} | "
            f"**{m.predict_ratio:.2f}** | {PREDICT_LIMIT} |"
        )
    return rows


def greedy_row(measured: list[Measured]) -> str:
    """The ratio of a greedy dense fit to a gradient fit of the same shape, with one output."""
    gradient, greedy = (
        [m for m in measured if m.case.name.startswith(s)] for s in ("gradient, 4", "greedy")
    )
    pairs = zip(greedy, gradient, strict=True)
    ratios = ", ".join(
        f"{a.fit / b.fit:.2f} ({a.threads} thread{'s' * (a.threads > 1)})" for a, b in pairs
    )
    return f"Greedy dense ÷ gradient, one output: **{ratios}** (limit 1.1)."


def peer_rows(measured: list[Measured]) -> list[str]:
    """Fit seconds of other libraries with default parameters on the same rows."""
    rows = [
        "| case | threads | rfrboost s | XGBoost s | LightGBM s | CatBoost s |",
        "|---|---|---|---|---|---|",
    ]
    for m in measured:
        peers = peer_seconds(m.case, m.threads)
        cells = " | ".join(f"{seconds:.2f}" for seconds in peers.values())
        rows.append(f"| {m.case.name} | {m.threads} | {m.fit:.2f} | {cells} |")
    return rows


def reference_rows(path: str) -> list[str]:
    """Fit seconds of our code and of the authors' code, on one thread, in turn."""
    aims = {"gradient, 4": 2.2, "greedy": 3.0, "3 classes": 1.8, "10 classes": 1.8}
    rows = [
        "| case | rfrboost s | authors' code s | times as fast | aim |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        aim = next((v for k, v in aims.items() if case.name.startswith(k)), None)
        if aim is not None:
            ours, theirs = beside_reference(case, path)
            ratio = theirs / ours
            rows.append(f"| {case.name} | {ours:.3f} | {theirs:.3f} | **{ratio:.2f}** | {aim} |")
    return rows


def main() -> None:
    """Measure everything and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--reference", help="a local checkout of the authors' PyTorch code, to time as well"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results.md"),
        help="file to write (default: %(default)s)",
    )
    arguments = parser.parse_args()

    threads = [k for k in (1, 2) if k <= (os.cpu_count() or 1)]
    measured = []
    for k in threads:
        for case in CASES:
            measured.append(measure(case, k))
            m = measured[-1]
            print(
                f"{case.name}, {k} thread(s): fit {m.fit:.3f} s, {m.fit_ratio:.2f} × floor; "
                f"predict {m.predict_ratio:.2f} × floor",
                flush=True,
            )
    fit_peak, both_peak = memory.measured()
    blas = sorted(
        {
            f"{i['internal_api']} {i['version']} ({i.get('architecture')})"
            for i in threadpool_info()
            if i["user_api"] == "blas"
        }
    )
    lines = [
        "# Benchmarks",
        "",
        f"Made by `make bench`; BLAS: {', '.join(blas)}.",
        "",
        "Floor: the matrix products, Grams, Cholesky factorisations and activations of the same",
        "fit or prediction and nothing else, at the same shapes and in the same precision,",
        "measured in turn with it (for a logistic head: the products and exponentials of the",
        "evaluations that its solver made). λ = 1e-3, (512, 512) features per layer.",
        "",
        *speed_rows(measured),
        "",
        greedy_row(measured),
        "",
        f"Memory of a fit of {memory.ROWS:,}×{memory.COLUMNS} with 1,024 features per layer, "
        f"beyond X and y: **{fit_peak:.0f} MB** (limit {MEMORY_LIMIT}); with a prediction of all "
        f"rows {both_peak:.0f} MB.",
        "",
        "## Other libraries with default parameters, same rows",
        "",
        *peer_rows(measured),
    ]
    if arguments.reference:
        lines += [
            "",
            "## The authors' PyTorch code, one thread, same settings",
            "",
            *reference_rows(arguments.reference),
        ]
    made_with = current(max(threads))
    print(write_report(arguments.out, "\n".join(lines), [made_with]))


if __name__ == "__main__":
    main()
