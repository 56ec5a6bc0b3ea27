"""Running jobs in several processes, each with a fixed number of threads.

Workers end when the process that started them ends, however it ends: each holds the reading end of
a pipe whose writing end only that process has, and reads end-of-file when that process is gone.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments.requests import ExperimentError
from experiments.runs.jobs import Job, Result, Work, execute, provenances, read_result
from experiments.runs.locks import claim, lock_path, remove_left_over
from experiments.runs.progress import progress
from experiments.runs.provenance import check_one_code, current

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_jobs(
    jobs: list[Job],
    work: Work,
    out: Path,
    n_processes: int,
    threads: int = 1,
    mix_commits: bool = False,
    beside: Sequence[Result] = (),
) -> list[Result]:
    """The results of all jobs, in the order given: stored results are read, the others are run.

    Each process has ``threads`` threads: one, so that N processes use N cores, unless seconds are a
    result. The results belong to one table, together with those in ``beside``: results of different
    commits are refused, if possible before anything is run, unless ``mix_commits``.
    """
    results = {job: result for job in jobs if (result := read_result(job, out)) is not None}
    for job in results:
        # A process may have been killed after it wrote a result and before it removed the lock.
        remove_left_over(lock_path(job.result_path(out)))
    pending = [job for job in jobs if job not in results]
    together = provenances([*beside, *results.values()])
    check_one_code([*together, current(threads)] if pending else together, mix_commits)
    for result in _run_pending(pending, work, out, n_processes, threads, len(results)):
        results[result.job] = result
    # Another command may have finished some of the jobs meanwhile, with other code.
    check_one_code(provenances([*beside, *results.values()]), mix_commits)
    return [results[job] for job in jobs]


def by_dataset(jobs: list[Job]) -> list[Job]:
    """The jobs ordered by protocol and dataset.

    Workers take jobs from the front, so that all of them work on the same one or two tables at any
    time, and each loads a table once.
    """
    return sorted(jobs, key=lambda job: (job.protocol, job.dataset))


def _run_pending(
    jobs: list[Job], work: Work, out: Path, n_processes: int, threads: int, n_stored: int
) -> Iterator[Result]:
    """Run the jobs; those that another command holds come last, when it has finished them."""
    if not jobs:
        return
    with (
        progress(len(jobs), n_stored) as report,
        _workers(min(n_processes, len(jobs)), threads) as pool,
    ):
        held = []
        for wait in (False, True):
            run = functools.partial(run_claimed, work=work, out=out, wait=wait, threads=threads)
            futures = {pool.submit(run, job): job for job in held or by_dataset(jobs)}
            held = []
            for future in as_completed(futures):
                result = future.result()
                if result is None:
                    held.append(futures[future])
                    continue
                report(result)
                yield result
            if not held:
                return


def run_claimed(job: Job, work: Work, out: Path, wait: bool, threads: int = 1) -> Result | None:
    """Run one job in a worker; None if another command holds it and ``wait`` is False.

    The stored result is read again, because another command may just have finished the job.
    """
    with claim(lock_path(job.result_path(out)), wait) as ours:
        if not ours:
            return None
        with threadpool_limits(limits=threads):
            return read_result(job, out) or execute(job, work, out)


@contextlib.contextmanager
def _workers(n_processes: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes with ``threads`` threads each; an exception ends them at once."""
    # Spawned, because a forked process would inherit the parent's thread pools and their size.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with _thread_variables(threads), _terminate_as_interrupt():
        pool = ProcessPoolExecutor(n_processes, context, _start_worker, (reader,))
        try:
            yield pool
            pool.shutdown()
        except BrokenProcessPool as error:
            raise ExperimentError(
                "A worker process was killed, most often because memory ran out. Finished jobs are "
                "kept: run the same command again, with fewer --jobs."
            ) from error
        finally:
            writer.close()
            pool.shutdown(cancel_futures=True)
            reader.close()


def _start_worker(parent: Connection) -> None:
    # A terminal sends Ctrl-C to the workers too; only the parent acts on it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, which ends the workers and prints a message."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _thread_variables(threads: int) -> Iterator[None]:
    """Set the environment variables for the number of threads of libraries that workers load."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
