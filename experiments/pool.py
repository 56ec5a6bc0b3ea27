"""Running jobs on several processes, each with a fixed number of threads.

Workers end with the process that started them, however it ends: each holds the reading end of
a pipe whose writing end only that process has, and reads end-of-file when it is gone.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments.errors import ExperimentError
from experiments.jobs import Job, Result, Work, execute, read_result
from experiments.locks import claim, lock_path
from experiments.progress import progress

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def run_jobs(
    jobs: list[Job], work: Work, out: Path, n_processes: int, threads: int = 1
) -> list[Result]:
    """The result of every job, in the order given: stored ones as they are, the others run.

    Each process has ``threads``: one, so that N processes use N cores, unless time is a result.
    """
    results = {job: result for job in jobs if (result := read_result(job, out)) is not None}
    pending = [job for job in jobs if job not in results]
    for result in _run_pending(pending, work, out, n_processes, threads, len(results)):
        results[result.job] = result
    return [results[job] for job in jobs]


def by_dataset(jobs: list[Job]) -> list[Job]:
    """The jobs, those of one dataset next to each other.

    Workers take jobs from the front, so at any time they all work on the same one or two
    tables, and each loads a table once.
    """
    return sorted(jobs, key=lambda job: (job.protocol, job.dataset))


def _run_pending(
    jobs: list[Job], work: Work, out: Path, n_processes: int, threads: int, n_stored: int
) -> Iterator[Result]:
    """Run the jobs; those that another run holds come last, when it is done with them."""
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
    """What a worker does: the job, unless another run holds it and we do not wait for that.

    The stored result is looked up again, because another run may just have finished it.
    """
    with claim(lock_path(job.result_path(out)), wait) as ours:
        if not ours:
            return None
        with threadpool_limits(limits=threads):
            return read_result(job, out) or execute(job, work, out)


@contextlib.contextmanager
def _workers(n_processes: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes with so many threads each; leaving early ends them at once."""
    # Not forked: a fork would inherit the parent's thread pools, already at full width.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    with _thread_variables(threads), _terminate_as_interrupt():
        pool = ProcessPoolExecutor(n_processes, context, _start_worker, (reader,))
        try:
            yield pool
            pool.shutdown()
        except BrokenProcessPool as error:
            raise ExperimentError(
                "A worker process was killed, most often for want of memory; finished jobs are "
                "kept: run the same command again, with fewer --jobs."
            ) from error
        finally:
            writer.close()
            pool.shutdown(cancel_futures=True)
            reader.close()


def _start_worker(parent: Connection) -> None:
    # The parent decides what Ctrl-C means; a terminal sends it to the workers as well.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        parent.recv_bytes()
    os._exit(1)


@contextlib.contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM stop a run as Ctrl-C does, with workers and messages in order."""
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
    """Have libraries that a worker loads later start with as many threads, too."""
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
