"""Jobs that measure something on each table: run them, then write their rows and a report."""

import argparse
from collections.abc import Callable

import pandas as pd

from experiments.data.tables import Table, known_table
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, Result, Work, provenances
from experiments.runs.pool import run_jobs


def measure(
    name: str,
    jobs: list[Job],
    work: Work,
    arguments: argparse.Namespace,
    rows_of: Callable[[list[Result]], pd.DataFrame],
    report: Callable[[pd.DataFrame, list[Result]], str],
) -> int:
    """Do the work of all jobs, write ``name.csv`` and ``name.md``, and print the report.

    The arguments are ``out``, ``jobs`` and ``mix_commits``. ``rows_of`` makes a frame of all
    results, and ``report`` a text of both. Returns 1 if a job failed.
    """
    results = run_jobs(jobs, work, arguments.out, arguments.jobs, mix_commits=arguments.mix_commits)
    rows = rows_of(results)
    made_with = provenances(results)
    write_table(arguments.out / f"{name}.csv", rows, made_with)
    print(write_report(arguments.out / f"{name}.md", report(rows, results), made_with))
    return 1 if any(result.error is not None for result in results) else 0


def good_rows(
    results: list[Result], measured: Callable[[Table, Result], dict[str, object]]
) -> pd.DataFrame:
    """A row for each job that did not fail: its table, what was ``measured``, and its commit."""
    rows = []
    for result in results:
        if result.scores is not None:
            table = known_table(int(result.job.dataset))
            identity = {"dataset": table.id, "name": table.name}
            rows.append(identity | measured(table, result) | {"commit": result.provenance.code})
    return pd.DataFrame(rows)
