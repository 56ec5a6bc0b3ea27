"""python -m benchmarks.against COMMIT [--threads N] [--rounds N] [--only TEXT] [--out FILE]

Seconds of fits and predictions with the library of the working tree, beside those with the library
of COMMIT. Every measurement is a fresh process; the two take turns, so that a noisy spell of the
machine hits both alike, and of each the best round counts. Compare with HEAD, in a tree without
changes, to see how much of a ratio is noise: ratios closer to one than that say nothing.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.random import default_rng
from sklearn.base import clone

from benchmarks.sources import HERE, check_imported_from, description, sources_at, start
from rfrboost import RFRBoostClassifier, RFRBoostRegressor, RowBlocks

#: calls of a prediction of one row, which by itself is too short to time
ONE_ROW_CALLS = 200
#: a fit or prediction is repeated in its process until this many seconds have passed
LEAST_SECONDS = 1.0

Seconds = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A model, the shape of its rows, and how many rows to predict at a time."""

    name: str
    model: Any
    n: int
    columns: int
    predicted: tuple[int, ...] = ()
    blocks: bool = False

    def rows(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """A smooth target of a few columns with noise, or three classes cut out of it."""
        rng = default_rng(0)
        X = rng.standard_normal((n, self.columns))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
        return X, np.digitize(y, [-0.5, 0.5]) if is_classifier(self.model) else y


def is_classifier(model: Any) -> bool:
    """Whether a case's model takes labels."""
    return isinstance(model, RFRBoostClassifier)


CASES = [
    Case(
        "automatic regressor, 1,000×8",
        RFRBoostRegressor(random_state=0),
        1000,
        8,
        predicted=(1, 1000, 20_000),
    ),
    Case("automatic regressor, 4,000×12", RFRBoostRegressor(random_state=0), 4000, 12),
    Case(
        "automatic classifier, 1,000×8",
        RFRBoostClassifier(random_state=0),
        1000,
        8,
        predicted=(1, 1000, 20_000),
    ),
    Case("automatic classifier, 3,000×8", RFRBoostClassifier(random_state=0), 3000, 8),
    Case(
        "gradient, 5 layers, 4,000×16",
        RFRBoostRegressor(5, random_state=0),
        4000,
        16,
        predicted=(1, 1000, 20_000),
    ),
    Case(
        "greedy, 5 layers, 4,000×16",
        RFRBoostRegressor(5, strategy="greedy", random_state=0),
        4000,
        16,
    ),
    Case("logistic, 3 layers, 4,000×16", RFRBoostClassifier(3, random_state=0), 4000, 16),
    Case(
        "gradient, 4 layers, row blocks of 50,000×8",
        RFRBoostRegressor(4, n_features=(64, 64), random_state=0),
        50_000,
        8,
        blocks=True,
    ),
]


def best_of(call: Callable[[], Any], at_least: float) -> float:
    """The least seconds of a call that is repeated until ``at_least`` seconds have passed."""
    best = np.inf
    total = 0.0
    while total < at_least:
        began = perf_counter()
        call()
        took = perf_counter() - began
        best = min(best, took)
        total += took
    return best


def measure(case: Case) -> Seconds:
    """Seconds of a case's fit and predictions, in this process."""
    X, y = case.rows(case.n)

    def fit() -> Any:
        if case.blocks:
            return clone(case.model).fit(RowBlocks.from_arrays(X, y, block_rows=8192))
        return clone(case.model).fit(X, y)

    model = fit()
    seconds = {"fit": best_of(fit, LEAST_SECONDS)}
    for n in case.predicted:
        X_new, _ = case.rows(n)
        calls = ONE_ROW_CALLS if n == 1 else 1

        def predict(X_new: np.ndarray = X_new, calls: int = calls) -> None:
            for _ in range(calls):
                model.predict(X_new)

        rows = f"1 row, {calls} times" if n == 1 else f"{n:,} rows"
        seconds[f"predict {rows}"] = best_of(predict, LEAST_SECONDS / 2)
    return seconds


def measured(sources: Path, number: int, threads: int) -> Seconds:
    """Seconds of a case in a fresh process with these sources."""
    arguments = ["--measure", str(sources), str(number)]
    with start(sources, "benchmarks.against", arguments, threads) as process:
        out, _ = process.communicate()
    if process.returncode:
        sys.exit(f"{CASES[number].name} failed with the sources in {sources}.")
    found: Seconds = json.loads(out)
    return found


def best(rounds: list[Seconds]) -> Seconds:
    """Of every measurement the least over rounds."""
    return {what: min(seconds[what] for seconds in rounds) for what in rounds[0]}


def rows_of(name: str, old: Seconds, new: Seconds) -> list[str]:
    """The lines of a case in the table."""
    return [
        f"| {name} | {what} | {old[what]:.4f} | {new[what]:.4f} | {new[what] / old[what]:.3f} |"
        for what in old
    ]


def worst(pairs: list[tuple[str, Seconds, Seconds]]) -> str:
    """The sentence under the table."""
    ratios = [
        (new[what] / old[what], f"{name}, {what}") for name, old, new in pairs for what in old
    ]
    ratio, where = max(ratios)
    return f"Worst ratio: {ratio:.3f} ({where}). Over 1 the working tree is slower."


def compare(commit: str, threads: int, rounds: int, only: str) -> list[str]:
    """Measure both, in turn, and return the report; its lines are printed as they come."""
    lines = [
        f"{description(commit)}; threads: {threads}; best of {rounds} rounds",
        "",
        "| case | what | commit s | working tree s | ratio |",
        "|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    pairs = []
    with sources_at(commit) as there:
        for number, case in enumerate(CASES):
            if only.lower() not in case.name.lower():
                continue
            old: list[Seconds] = []
            new: list[Seconds] = []
            for _ in range(rounds):
                old.append(measured(there, number, threads))
                new.append(measured(HERE, number, threads))
            pairs.append((case.name, best(old), best(new)))
            rows = rows_of(*pairs[-1])
            print(*rows, sep="\n", flush=True)
            lines += rows
    if not pairs:
        sys.exit(f"No case has {only!r} in its name.")
    last = ["", worst(pairs)]
    print(*last, sep="\n")
    return lines + last


def main() -> None:
    """Compare, or be one of the processes that are measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit", nargs="?", default="HEAD", help="default: HEAD")
    parser.add_argument("--threads", type=int, default=1, help="threads of BLAS; default: 1")
    parser.add_argument("--rounds", type=int, default=5, help="processes of each; default: 5")
    parser.add_argument("--only", metavar="TEXT", default="", help="cases whose name contains it")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the report to a file too")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        sources, number = arguments.measure
        check_imported_from(Path(sources))
        print(json.dumps(measure(CASES[int(number)])))
        return
    lines = compare(arguments.commit, arguments.threads, arguments.rounds, arguments.only)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
