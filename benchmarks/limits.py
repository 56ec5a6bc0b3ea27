"""Whether ``max_seconds`` is kept: times, memory and scores of fits under time limits.

python -m benchmarks.limits [--only TEXT] [--again] [--out FILE]

Every case is fitted in a new process, on as many threads as BLAS has. A row is written as soon as
it is measured, and a row that the same code has measured before is not measured again, so that an
interrupted run goes on where it ended. All shapes are fitted within 10, 30 and 60 seconds; the
whole run takes about 40 minutes on an idle machine of two cores.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd

from benchmarks.limit_cases import TABLES, LimitCase
from experiments.runs.files import read_table, write_report, write_table
from experiments.runs.provenance import Provenance, current

# The share of a limit that a fit may take beyond it.
TOLERANCE = 0.1

TITLES = {
    "limits": (
        "Time limits",
        "`python -m benchmarks.limits`",
        "Fits with `max_seconds`, which must end within a tenth beyond it.",
    ),
    "extremes": (
        "Wide and tall tables",
        "`python -m benchmarks.extremes`",
        "Tables that are far wider, taller or odder than usual, all with `max_seconds=30`.",
    ),
}


def measure(table: str, number: int) -> dict[str, object]:
    """Fit a case in a new process."""
    words = [sys.executable, "-m", "benchmarks.limit_run", table, str(number)]
    run = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(run.stdout))


def known_rows(path: Path, code: str) -> pd.DataFrame:
    """The rows that this code has measured before; none if there is no such file."""
    if not path.exists():
        return pd.DataFrame()
    rows = read_table(path)
    return rows[rows["code"] == code]


def measure_all(table: str, path: Path, only: str, made_with: Provenance) -> pd.DataFrame:
    """Measure all cases whose name has a text in it, and write every row as it comes."""
    rows = known_rows(path, made_with.code).to_dict("records")
    done = {row["key"] for row in rows}
    for number, case in enumerate(TABLES[table]):
        if case.key in done or only not in case.key:
            continue
        rows.append({"key": case.key, **measure(table, number), "code": made_with.code})
        write_table(path, pd.DataFrame(rows), [made_with])
        print(as_row(rows[-1]), flush=True)
    return in_order(pd.DataFrame(rows), TABLES[table])


def in_order(rows: pd.DataFrame, cases: list[LimitCase]) -> pd.DataFrame:
    """The rows in the order of the cases."""
    places = {case.key: i for i, case in enumerate(cases)}
    return rows.sort_values("key", key=lambda keys: keys.map(places))


def as_row(row: dict) -> str:
    """A line of the page."""
    late = row["wall"] > (1 + TOLERANCE) * row["limit"]
    wall = f"**{row['wall']:.1f}**" if late else f"{row['wall']:.1f}"
    cells = [
        row["name"],
        f"{row['rows']:,}",
        f"{row['columns']:,}",
        row["task"],
        f"{row['limit']:g}",
        wall,
        f"{row['process']:.1f}",
        f"{row['peak_mb']:.0f}",
        f"{row['peak_mb'] / row['data_mb']:.1f}",
        row["score"],
        f"{row['model']:.3f}",
        f"{row['linear']:.3f}",
        f"{row['constant']:.3f}",
        f"{row['layers']}",
        "yes" if row["sample"] else "",
    ]
    return f"| {' | '.join(cells)} |"


def page(table: str, rows: pd.DataFrame) -> str:
    """The page of a table."""
    title, command, about = TITLES[table]
    late = (rows["wall"] > (1 + TOLERANCE) * rows["limit"]).sum()
    worse = (rows["model"] < rows["linear"] - 0.01).sum()
    heads = (
        "table|rows|columns|task|limit, s|wall, s|processor, s|peak, MB|times the data|score|model"
        "|linear|constant|layers|sample"
    )
    return "\n".join(
        [
            f"# {title}",
            "",
            f"Made by {command}. {about} Each fit is in a process of its own. *Wall* are the "
            "seconds of `fit` by the clock, *processor* those of its threads together: on an idle "
            "machine the first are at most the second, elsewhere they may be more. *Peak* is the "
            "memory that `fit` takes beyond the "
            "data, also as a multiple of them. Scores are those of 10,000 new rows (2,000 of 3,000 "
            "columns and more, 200,000 where a class is rare), beside a linear model whose penalty "
            "was chosen on held-out rows, and a constant. *Sample* says that the limit was too "
            "short for all rows.",
            "",
            f"| {heads.replace('|', ' | ')} |",
            "|---" * len(heads.split("|")) + "|",
            *(as_row(row) for row in rows.to_dict("records")),
            "",
            f"{late} of {len(rows)} fits took more than a tenth longer than their limit (bold), "
            f"and {worse} scored more than 0.01 below the linear model.",
        ]
    )


def run(table: str, usage: str) -> None:
    """Measure a table and write its files."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{table}", description=usage)
    parser.add_argument("--only", default="", help="cases with this text in their name")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--out", type=Path, default=Path(f"benchmarks/{table}.md"))
    arguments = parser.parse_args()
    path = arguments.out.with_suffix(".csv")
    if arguments.again:
        path.unlink(missing_ok=True)
    made_with = current()
    rows = measure_all(table, path, arguments.only, made_with)
    print(write_report(arguments.out, page(table, rows), [made_with]))


def main() -> None:
    """The table of time limits."""
    run("limits", __doc__ or "")


if __name__ == "__main__":
    main()
