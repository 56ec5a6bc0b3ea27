"""Real processes that are killed, stopped or doubled: no job is lost, none is done twice."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sleeping_jobs
from experiment_runs import ENERGY

from experiments.__main__ import main
from experiments.runs import pool
from experiments.runs.locks import claim, lock_path

pytestmark = pytest.mark.usefixtures("worker_processes")

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
PLACES = [str(ROOT / "src"), str(ROOT), str(SUPPORT)]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(PLACES)}

N_JOBS = 20  # many more than are done before a busy machine notices that a few are


def start(*words: str | Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        env=ENVIRONMENT,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def start_sleeping_jobs(out: Path, seconds: float = sleeping_jobs.SECONDS) -> subprocess.Popen:
    return start(SUPPORT / "sleeping_jobs.py", out, str(N_JOBS), "1", str(seconds))


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def log(out: Path, what: str) -> list[list[int]]:
    """[job, process] of every line of one kind."""
    path = out / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [[int(word) for word in line.split()[1:]] for line in lines if line.startswith(what)]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def ended(out: Path) -> list[int]:
    return [number for number, _ in log(out, "end")]


def written(out: Path) -> dict[Path, int]:
    """When each result was written."""
    return {path: path.stat().st_mtime_ns for path in out.rglob("fold*.json")}


on_linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@on_linux
def test_however_a_run_ends_its_workers_do_too_and_the_next_one_continues(tmp_path):
    kept: dict[Path, int] = {}
    for target, sent, code in [
        ("run", signal.SIGKILL, -signal.SIGKILL),
        ("worker", signal.SIGKILL, 1),
        ("run", signal.SIGTERM, 130),
    ]:
        run = start_sleeping_jobs(tmp_path)
        wait_until(lambda: len(written(tmp_path)) >= len(kept) + 2)  # noqa: B023
        workers = {process for _, process in log(tmp_path, "start")}
        os.kill(run.pid if target == "run" else log(tmp_path, "start")[-1][1], sent)
        _, errors = run.communicate(timeout=600)
        assert run.returncode == code
        assert ("run the same command again" in errors) == (target == "worker")
        wait_until(lambda: not any(map(is_running, workers)))  # noqa: B023
        assert kept.items() <= written(tmp_path).items(), "no finished job is run again"
        kept = written(tmp_path)
        assert len(kept) < N_JOBS, "stopped in the middle"

    assert sleeping_jobs.run(tmp_path, N_JOBS, 1, seconds=0.0) == 0
    assert kept.items() <= written(tmp_path).items()
    assert len(written(tmp_path)) == N_JOBS
    assert not list(tmp_path.rglob("*.lock")), "claims are cleared away"


def test_the_lock_of_a_process_killed_after_its_result_was_written_is_removed(tmp_path):
    assert sleeping_jobs.run(tmp_path, 2, 1, seconds=0.0) == 0
    killed, held = (lock_path(job.result_path(tmp_path)) for job in sleeping_jobs.jobs(2))
    killed.touch()
    with claim(held, wait=False):
        assert sleeping_jobs.run(tmp_path, 2, 1, seconds=0.0) == 0
        assert not killed.exists()
        assert held.exists(), "another process is at work"


@on_linux
@pytest.mark.parametrize(("send", "sent"), [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)])
def test_a_run_that_is_stopped_does_not_wait_for_long_jobs(tmp_path, send, sent):
    run = start_sleeping_jobs(tmp_path, seconds=60)
    wait_until(lambda: bool(log(tmp_path, "start")))
    send(run.pid, sent)  # a terminal's Ctrl-C goes to the workers as well
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 130
    assert "Traceback" not in errors
    wait_until(lambda: not is_running(log(tmp_path, "start")[0][1]))
    assert not written(tmp_path)


def test_two_runs_on_one_folder_share_the_jobs(tmp_path, capsys):
    other = start_sleeping_jobs(tmp_path)
    assert sleeping_jobs.run(tmp_path, N_JOBS, 1) == 0
    shown, _ = other.communicate(timeout=600)
    assert other.returncode == 0
    assert shown == capsys.readouterr().out == str([float(k) for k in range(N_JOBS)]) + "\n"
    starts = log(tmp_path, "start")
    assert sorted(number for number, _ in starts) == list(range(N_JOBS)), "once each"


def test_a_job_that_another_run_holds_is_left_to_it_and_waited_for(tmp_path):
    (job,) = sleeping_jobs.jobs(1)
    with ThreadPoolExecutor(1) as thread:
        with claim(lock_path(job.result_path(tmp_path)), wait=False) as ours:
            assert ours
            run = thread.submit(sleeping_jobs.run, tmp_path, 2, 1)
            wait_until(lambda: ended(tmp_path) == [1])
            time.sleep(0.5)
            assert not run.done(), "it waits for the job"
            assert ended(tmp_path) == [1]
        assert run.result(timeout=600) == 0
    assert ended(tmp_path) == [1, 0]


def test_who_waited_for_a_claim_holds_the_file_that_others_see(tmp_path):
    path = tmp_path / "claim"

    def hold_next() -> bool:
        with claim(path, wait=True), claim(path, wait=False) as second:
            return second

    with ThreadPoolExecutor(1) as thread:
        with claim(path, wait=False):
            waiting = thread.submit(hold_next)
            time.sleep(0.2)  # it waits for a file that is removed when we let go
            assert not waiting.done()
        assert waiting.result(timeout=600) is False
    assert not path.exists()


@on_linux
def test_a_search_that_is_killed_ends_with_the_same_table(made_up, capsys, monkeypatch):
    def words(out: str) -> list[str]:
        places = ["--data", str(made_up / "data"), "--out", str(made_up / out)]
        return ["run", *places, "--models", "ridge", "--trials", "30", "--jobs", "1"]

    killed = start("-m", "experiments", *words("killed"))
    wait_until(lambda: len(written(made_up / "killed")) >= 1)
    killed.kill()
    killed.communicate(timeout=600)
    before = written(made_up / "killed")
    assert len(before) < 5, "stopped in the middle"
    monkeypatch.setattr(pool, "_workers", lambda n, threads: ThreadPoolExecutor(1))
    assert main(words("killed")) == 0
    shown = capsys.readouterr()
    assert f"{5 - len(before)} jobs to run, {len(before)} already done" in shown.err
    assert before.items() <= written(made_up / "killed").items()

    assert main(words("undisturbed")) == 0
    assert capsys.readouterr().out == shown.out
    assert f"| {ENERGY} |" in shown.out
