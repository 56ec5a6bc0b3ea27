"""The ``raw-tables`` command: ``rfrboost evaluate`` on raw tables, as a user would call it.

Run ``rfrboost evaluate TABLE --target target`` without further options on every table, missing
values and categories included, each in its own process. Then, on the ten tables with most
categories or missing values, evaluate the same model on the same folds behind the usual manual
encoding: the median or the most frequent level for missing values, and one column for each level.
Stored results are not computed again. A table that fails is listed, and the exit code is 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from experiments.commands.arguments import add_data, add_out, add_tables, at_least
from experiments.data.tables import LABEL, Table, find_data_folder, load_table, select_tables
from experiments.reports.markdown import markdown_table
from experiments.runs.files import read_table, write_atomically, write_report, write_table
from experiments.runs.provenance import NOT_RECORDED, Provenance, check_one_code, current

if TYPE_CHECKING:
    from rfrboost.cli.request import Task

NAME = "raw-tables"
SUMMARY = "rfrboost evaluate on every raw table, and on tables encoded by hand"
# The seed that draws the rows of --rows.
ROWS_SEED = 0
# The defaults of `rfrboost evaluate`.
FOLDS = 5
SEED = 0
OURS = "rfrboost"
BY_HAND = "by hand"
# Five of the ten tables are those with most levels, five the others with most missing values.
HALF = 5
HEADER = """\
# `rfrboost evaluate` on raw tables

Five folds, no option but the target, missing values and categories included. The error is √(1 − R²)
for regression, which is the RMSE in standard deviations of the label, and the share of wrong labels
for classification; it is averaged over folds. Seconds are those of fitting and predicting one fold.
"""

Stored = tuple[pd.DataFrame, Provenance]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_tables(parser)
    add_out(parser, "experiments-output/raw-tables")
    add_data(parser)
    parser.add_argument(
        "--format",
        choices=["parquet", "csv"],
        default="parquet",
        help="format of the files to evaluate; CSV has no types (default: %(default)s)",
    )
    parser.add_argument(
        "--rows",
        type=at_least(100, "--rows"),
        metavar="N",
        help="draw N random rows of longer tables, for a quick look (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Evaluate every table, then write the report; 1 if a table failed."""
    data = find_data_folder(arguments.data)
    tables = select_tables(data, arguments.tables)
    part = "all-rows" if arguments.rows is None else f"rows-{arguments.rows}"
    folder = arguments.out / arguments.format / part
    irregular = most_irregular(tables, data)
    files = [raw_file(folder, table.id) for table in tables]
    files += [hand_file(folder, table.id) for table in tables if table.id in irregular]
    stored = [read_stored(path)[1] for path in files if path.is_file()]
    together = stored if len(stored) == len(files) else [*stored, current()]
    check_one_code(together, arguments.mix_commits)

    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for table in tables:
            file = Path(temporary) / f"{table.id}.{arguments.format}"
            failure = evaluate(table, data, file, arguments.rows, raw_file(folder, table.id))
            if failure is not None:
                failures[table.name] = failure
            elif table.id in irregular and not hand_file(folder, table.id).is_file():
                write_file(table, data, file, arguments.rows)
                store(hand_file(folder, table.id), hand_made(file).to_csv(index=False))
            file.unlink(missing_ok=True)
    stored_raw = read_all(raw_file(folder, table.id) for table in tables)
    stored_hand = read_all(hand_file(folder, table.id) for table in tables)
    origin = [made for _, made in (*stored_raw.values(), *stored_hand.values())]
    write_table(folder / "folds.csv", fold_rows(tables, stored_raw, stored_hand), origin)
    scores = {id: frame for id, (frame, _) in stored_raw.items()}
    by_hand = {id: frame for id, (frame, _) in stored_hand.items() if id in scores}
    text = report(tables, scores, by_hand, failures)
    print(write_report(folder / "raw-tables.md", text, origin))
    return 1 if failures else 0


def raw_file(folder: Path, id: int) -> Path:
    """The stored scores of a table."""
    return folder / f"{id}.csv"


def hand_file(folder: Path, id: int) -> Path:
    """The stored scores of a table that was encoded by hand."""
    return folder / "by-hand" / f"{id}.csv"


def store(path: Path, csv: str) -> None:
    """Write scores with their provenance as a last line that begins with ``#``."""
    write_atomically(path, f"{csv.rstrip()}\n# {json.dumps(asdict(current()))}\n")


def read_stored(path: Path) -> Stored:
    """Stored scores and their provenance; older files have none."""
    last = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n")[2]
    made_with = Provenance(**json.loads(last[2:])) if last.startswith("# ") else NOT_RECORDED
    return read_table(path), made_with


def read_all(paths: Iterable[Path]) -> dict[int, Stored]:
    """The stored scores that exist, by the id of their table."""
    return {int(path.stem): read_stored(path) for path in paths if path.is_file()}


def fold_rows(
    tables: list[Table], raw: dict[int, Stored], by_hand: dict[int, Stored]
) -> pd.DataFrame:
    """All scores, one row per table, model and fold."""
    frames = [
        stored[table.id][0].assign(
            dataset=table.id, name=table.name, commit=stored[table.id][1].code
        )
        for table in tables
        for stored in (raw, by_hand)
        if table.id in stored
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["dataset"])


def write_file(table: Table, data: Path, file: Path, rows: int | None) -> None:
    """Write the table, or ``rows`` random rows of it, as the file to evaluate."""
    frame = load_table(table, data)
    if rows is not None and rows < len(frame):
        frame = frame.sample(rows, random_state=ROWS_SEED)
    if file.suffix == ".csv":
        frame.to_csv(file, index=False)
    else:
        frame.to_parquet(file, index=False)


def evaluate(table: Table, data: Path, file: Path, rows: int | None, stored: Path) -> str | None:
    """Run ``rfrboost evaluate`` on a table and store its scores; its last message if it failed."""
    if stored.is_file():
        return None
    print(f"Evaluating {table.id} ({table.name}).", file=sys.stderr, flush=True)
    write_file(table, data, file, rows)
    command = [sys.executable, "-m", "rfrboost.cli", "evaluate", str(file), "--target", LABEL]
    ran = subprocess.run([*command, "--out", "-"], capture_output=True, text=True, check=False)
    if ran.returncode:
        return (ran.stderr.splitlines() or [f"exit code {ran.returncode}"])[-1]
    store(stored, ran.stdout)
    return None


def most_irregular(tables: list[Table], data: Path) -> set[int]:
    """Five tables with most levels, and five of the others with the largest share missing.

    A table without any level or missing value is not among them.
    """
    facts = {table.id: irregularity(table, data) for table in tables}
    by_levels = sorted(facts, key=lambda id: -facts[id][0])[:HALF]
    others = [id for id in facts if id not in by_levels]
    by_missing = sorted(others, key=lambda id: -facts[id][1])[:HALF]
    return {id for id in by_levels if facts[id][0]} | {id for id in by_missing if facts[id][1]}


def irregularity(table: Table, data: Path) -> tuple[int, float]:
    """The number of levels of all categorical columns, and the share of missing values."""
    inputs = load_table(table, data).drop(columns=LABEL)
    levels = sum(inputs[name].nunique() for name in inputs.select_dtypes("category"))
    return levels, float(inputs.isna().to_numpy().mean())


def hand_made(file: Path) -> pd.DataFrame:
    """Scores of the manual encoding on the folds of ``rfrboost evaluate``, with its seeds."""
    from rfrboost.cli.evaluate import cross_validated
    from rfrboost.cli.request import Roles, Source
    from rfrboost.cli.training import read_training

    training = read_training(Source(str(file)), Roles(LABEL))
    results = cross_validated(training, {BY_HAND: encoded_by_hand}, FOLDS, SEED)
    return pd.DataFrame(list(results))


def encoded_by_hand(frame: pd.DataFrame, y: np.ndarray, task: "Task", seed: int) -> Any:
    """Medians, most frequent levels, one column per level, then our model."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from rfrboost.cli.request import Settings
    from rfrboost.cli.training import estimator_for

    numeric = list(frame.select_dtypes("number"))
    nominal = [name for name in frame if name not in numeric]
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    )
    encoder = make_column_transformer(
        (SimpleImputer(strategy="median", keep_empty_features=True), numeric), (levels, nominal)
    )
    return make_pipeline(encoder, estimator_for(task, Settings(seed), False))


def errors(scores: pd.DataFrame) -> pd.Series:
    """The error of each fold."""
    if "accuracy" in scores:
        return 1 - scores["accuracy"]
    return np.sqrt(np.maximum(1 - scores["R²"], 0))


def means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean error and seconds over folds, by model."""
    frame = scores.assign(error=errors(scores))
    return frame.groupby("model", sort=False)[["error", "seconds"]].mean()


def report(
    tables: list[Table],
    scores: dict[int, pd.DataFrame],
    by_hand: dict[int, pd.DataFrame],
    failures: dict[str, str],
) -> str:
    """The report as Markdown, without its provenance."""
    known = [table for table in tables if table.id in scores]
    parts = [HEADER, f"{len(known)} of {len(tables)} tables were evaluated.\n"]
    parts += [f"{name} failed: {said}\n" for name, said in failures.items()]
    if known:
        rows = [table_row(table, scores[table.id]) for table in known]
        parts += [
            "## Means over tables\n",
            markdown_table(summary(known, scores)),
            "## Table by table\n",
            markdown_table(pd.DataFrame(rows)),
        ]
    if by_hand:
        frame = pd.DataFrame(
            [hand_row(t, scores[t.id], by_hand[t.id]) for t in known if t.id in by_hand]
        )
        parts += [
            "## Compared with an encoding by hand\n",
            markdown_table(frame),
            hand_sentence(frame),
        ]
    return "\n".join(parts)


def kind_of(scores: pd.DataFrame) -> str:
    """The task that ``rfrboost evaluate`` detected."""
    return "classification" if "accuracy" in scores else "regression"


def linear_as_one(name: str) -> str:
    """The name of a model; ridge and logistic regression share the name "linear model"."""
    return "linear model" if name.endswith(" regression") else name


def table_row(table: Table, scores: pd.DataFrame) -> dict[str, object]:
    """One table: its task and the error of each model."""
    of = means(scores)
    found = {"table": f"{table.id} {table.name}", "task": kind_of(scores)}
    found |= {f"{linear_as_one(name)}, error": of.loc[name, "error"] for name in of.index}
    return {**found, "our seconds": of.loc[OURS, "seconds"]}


def summary(tables: list[Table], scores: dict[int, pd.DataFrame]) -> pd.DataFrame:
    """Mean error and seconds of each model, by task."""
    rows = []
    for kind in ("regression", "classification"):
        chosen = [means(scores[t.id]) for t in tables if kind_of(scores[t.id]) == kind]
        for name in chosen[0].index if chosen else []:
            rows.append(
                {
                    "task": kind,
                    "tables": len(chosen),
                    "model": linear_as_one(name),
                    "mean error": float(np.mean([of.loc[name, "error"] for of in chosen])),
                    "best on": sum(of["error"].idxmin() == name for of in chosen),
                    "seconds per fold": float(np.mean([of.loc[name, "seconds"] for of in chosen])),
                }
            )
    return pd.DataFrame(rows)


def hand_row(table: Table, scores: pd.DataFrame, by_hand: pd.DataFrame) -> dict[str, object]:
    """One table: the error of our model on the raw table and behind the manual encoding."""
    raw = means(scores).loc[OURS, "error"]
    hand = float(errors(by_hand).mean())
    ratio = raw / hand if hand > 0 else 1.0
    name = f"{table.id} {table.name}"
    return {"table": name, "raw, error": raw, "by hand, error": hand, "raw ÷ by hand": ratio}


def hand_sentence(frame: pd.DataFrame) -> str:
    """The mean errors in one sentence."""
    raw = frame["raw, error"]
    hand = frame["by hand, error"]
    ratio = np.exp(np.log(frame["raw ÷ by hand"]).mean())
    return (
        f"Mean error {raw.mean():.4f} raw, {hand.mean():.4f} by hand; raw is better on "
        f"{int((raw < hand).sum())} of {len(frame)}; geometric mean of the ratios {ratio:.4f}.\n"
    )
