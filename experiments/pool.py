"""Running jobs on several processes, each with one thread."""

import contextlib
import functools
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments.errors import ExperimentError
from experiments.jobs import Job, Result, Work, execute, read_result
from experiments.progress import progress

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_jobs(jobs: list[Job], work: Work, out: Path, n_processes: int) -> list[Result]:
    """The result of every job, in the order given: stored ones as they are, the others run."""
    results = {job: result for job in jobs if (result := read_result(job, out)) is not None}
    pending = [job for job in jobs if job not in results]
    for result in _run_pending(pending, work, out, n_processes, len(results)):
        results[result.job] = result
    return [results[job] for job in jobs]


def by_dataset(jobs: list[Job]) -> list[Job]:
    """The jobs, those of one dataset next to each other.

    Workers take jobs from the front, so at any time they all work on the same one or two
    tables, and each loads a table once.
    """
    return sorted(jobs, key=lambda job: (job.protocol, job.dataset))


def _run_pending(
    jobs: list[Job], work: Work, out: Path, n_processes: int, n_stored: int
) -> Iterator[Result]:
    if not jobs:
        return
    run = functools.partial(run_with_one_thread, work=work, out=out)
    with (
        _one_thread_variables(),
        progress(len(jobs), n_stored) as report,
        # Not forked: a fork would inherit the parent's thread pools, already at full width.
        ProcessPoolExecutor(
            min(n_processes, len(jobs)), multiprocessing.get_context("spawn")
        ) as pool,
    ):
        try:
            futures = [pool.submit(run, job) for job in by_dataset(jobs)]
            for future in as_completed(futures):
                result = future.result()
                report(result)
                yield result
        except BrokenProcessPool as error:
            raise ExperimentError(
                "A worker process was killed, most often for want of memory; finished jobs are "
                "kept: run the same command again, with fewer --jobs."
            ) from error
        finally:
            # Stopped early (Ctrl-C, a killed worker): do not start what is still waiting.
            pool.shutdown(wait=False, cancel_futures=True)


def run_with_one_thread(job: Job, work: Work, out: Path) -> Result:
    """What a worker does: the job, on one thread, so that N processes use N cores."""
    with threadpool_limits(limits=1):
        return execute(job, work, out)


@contextlib.contextmanager
def _one_thread_variables() -> Iterator[None]:
    """Have libraries that a worker loads later start with one thread, too."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
