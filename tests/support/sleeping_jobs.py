"""A run of jobs that only sleep and keep a log, as a program that a test can kill.

    python sleeping_jobs.py OUT N_JOBS N_PROCESSES [SECONDS]

Every job appends a line to OUT/log when it starts and when it ends.
"""

import functools
import os
import sys
import time
from pathlib import Path

from experiments.models.recipes import Recipe
from experiments.models.scoring import Scores
from experiments.requests import ExperimentError
from experiments.runs.jobs import Job
from experiments.runs.pool import run_jobs

SECONDS = 0.25  # of one job, unless said


def jobs(n: int) -> list[Job]:
    return [Job("paper", 44960, "sleep", k, Recipe("none", {})) for k in range(n)]


def sleep(job: Job, log: Path, seconds: float) -> Scores:
    note(log, "start", job.fold)
    time.sleep(seconds)
    note(log, "end", job.fold)
    return Scores(0.0, float(job.fold), 0.0, 0.0)


def note(log: Path, what: str, number: int) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{what} {number} {os.getpid()}\n".encode())
    os.close(handle)


def run(out: Path, n_jobs: int, n_processes: int, seconds: float = SECONDS) -> int:
    work = functools.partial(sleep, log=out / "log", seconds=seconds)
    try:
        results = run_jobs(jobs(n_jobs), work, out, n_processes)
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print([result.scores.test_score for result in results])
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *map(float, sys.argv[4:])))
