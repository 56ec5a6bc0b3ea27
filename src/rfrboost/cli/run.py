"""One command from its words to its exit code, whatever happens on the way."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from typer import TyperException
from typer.main import get_command

from rfrboost.cli.app import app
from rfrboost.cli.errors import CommandError, WrongUsageError, one_line

FAILED, USAGE = 1, 2
#: what shells report for a program that Ctrl-C ended
INTERRUPTED = 130


def run(words: list[str]) -> int:
    """Run a command; a failure is one sentence on standard error, and never a traceback."""
    with warnings.catch_warnings(), stopped_politely():
        warnings.simplefilter("ignore")
        try:
            code = get_command(app)(words, prog_name="rfrboost", standalone_mode=False)
            sys.stdout.flush()
        except BrokenPipeError:
            return quiet()
        except KeyboardInterrupt:
            return INTERRUPTED
        except TyperException as error:
            return usage(error)
        except WrongUsageError as error:
            return failed(error, USAGE)
        except (CommandError, ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            return failed(error, FAILED)
        except Exception as error:
            # A mistake of ours; a user at a shell is still better off with a sentence.
            kind = type(error).__name__
            return failed(RuntimeError(f"Unexpected {kind}: {one_line(error)}"), FAILED)
    return code if isinstance(code, int) else 0


def failed(error: BaseException, code: int) -> int:
    """Say what went wrong."""
    print(one_line(error), file=sys.stderr)
    if isinstance(error, OSError):
        # What standard output could not take must not be tried again at exit.
        quiet()
    return code


def usage(error: TyperException) -> int:
    """Say how a command was called wrongly, and where to read how it is called."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "rfrboost"
    sentence = one_line(CommandError(error.format_message())).rstrip(".")
    print(f"{sentence}. See {path} --help.", file=sys.stderr)
    return error.exit_code


def quiet() -> int:
    """Let nothing be written to standard output any more, not even at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, sys.stdout.fileno())
        finally:
            os.close(null)
    return FAILED


@contextmanager
def stopped_politely() -> Iterator[None]:
    """Let a request to terminate unwind the command, so that no temporary file is left."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:
        # Not the main thread: signals are somebody else's there.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
