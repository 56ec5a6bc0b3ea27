"""Results appear whole or not at all, whatever stops a command."""

import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from command_line import failed, mixed_table, rfrboost, text_of, worked

from rfrboost.cli import predict

SHELL = [sys.executable, "-m", "rfrboost.cli"]
ROWS = mixed_table(24)
TABLE = text_of(ROWS)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.rfrboost"
    worked(rfrboost("fit", "-", "--target", "y", "-o", path, stdin=TABLE))
    return path


@contextmanager
def no_room(bytes_a_file):
    """The system refuses files that are longer, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_a_file, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", ["p.csv", "p.tsv.gz", "p.parquet"])
def test_a_disk_without_room_leaves_what_was_there(name, model, tmp_path):
    (tmp_path / name).write_text("earlier")
    with no_room(50):
        ran = rfrboost("predict", model, "-", "--out", tmp_path / name, stdin=TABLE)
    failed(ran, "Cannot write", name)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "earlier"


def test_a_model_without_room_leaves_nothing(tmp_path):
    with no_room(1000):
        ran = rfrboost("fit", "-", "--target", "y", "-o", tmp_path / "m", stdin=TABLE)
    failed(ran, "Cannot write")
    assert list(tmp_path.iterdir()) == []


def test_devices_are_written_to_and_not_replaced(model):
    worked(rfrboost("predict", model, "-", "--out", "/dev/null", stdin=TABLE))
    failed(rfrboost("predict", model, "-", "--out", "/dev/full", stdin=TABLE), "no space left")
    failed(rfrboost("fit", "-", "--target", "y", "-o", "/dev/null", stdin=TABLE), "file", code=2)
    with open("/dev/null", "rb") as null:
        assert null.read() == b""


def test_a_folder_that_is_not_there(model, tmp_path):
    out = tmp_path / "none" / "p.csv"
    failed(rfrboost("predict", model, "-", "--out", out, stdin=TABLE), "Cannot write", "none")
    failed(rfrboost("predict", model, "-", "--out", tmp_path, stdin=TABLE), "folder")


def test_what_fails_half_way_leaves_nothing(model, tmp_path, monkeypatch):
    """The second block fails, after the first was written."""
    monkeypatch.setattr("rfrboost.cli.reading.tables.BLOCK_ROWS", 10)
    before, blocks = predict.prediction_frame, []

    def broken(block, kinds, rows):
        blocks.append(rows)
        if rows:
            raise MemoryError
        return before(block, kinds, rows)

    monkeypatch.setattr(predict, "prediction_frame", broken)
    ran = rfrboost("predict", model, "-", "--out", tmp_path / "p.csv", stdin=TABLE)
    failed(ran, "not enough memory")
    assert blocks == [0, 10]
    assert list(tmp_path.iterdir()) == []


def started(*words, folder, **streams):
    return subprocess.Popen([*SHELL, *map(str, words)], cwd=folder, **streams)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGINT, 130),
        (signal.SIGKILL, -9),
    ],
)
def test_stopped_in_the_middle_there_is_no_result(number, code, model, tmp_path):
    """Standard input stays open, so that the command is still reading when it is stopped."""
    if number != signal.SIGKILL and signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("these tests were started with this signal ignored, as nohup does")
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = started("predict", model, "-", "--out", "p.csv", folder=tmp_path, **pipes)
    # More lines than are looked at to detect the separator.
    command.stdin.write(text_of([ROWS[0], *ROWS[1:] * 50]))
    command.stdin.flush()
    wait_for(lambda: list(tmp_path.iterdir()))
    command.send_signal(number)
    _, said = command.communicate(timeout=600)
    assert command.returncode == code
    assert said == b"Ignored columns: y\n"
    assert not (tmp_path / "p.csv").exists()
    if number != signal.SIGKILL:  # which nobody can clean up after
        assert list(tmp_path.iterdir()) == []


def wait_for(condition):
    end = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_reader_that_has_enough_is_no_failure_to_talk_about(model, tmp_path):
    """As ``rfrboost predict … | head -1``: more is written than a pipe holds."""
    (tmp_path / "t.csv").write_bytes(text_of([ROWS[0], *ROWS[1:] * 400]))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = started("predict", model, "t.csv", folder=tmp_path, **pipes)
    assert command.stdout.readline() == b"prediction\n"
    command.stdout.close()
    assert command.stderr.read() == b"Ignored columns: y\n"
    command.stderr.close()
    assert command.wait(30) == 1
