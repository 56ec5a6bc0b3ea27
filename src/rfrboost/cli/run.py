"""Run one command, from its arguments to its exit code, whatever happens in between.

A failure is one sentence on standard error and never a traceback. No temporary file is left, also
after Ctrl-C or SIGTERM.
"""

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
from rfrboost.cli.console import CommandError, WrongUsageError, one_line

FAILED = 1
USAGE = 2
#: the exit code that shells report for a program ended by Ctrl-C
INTERRUPTED = 130
#: shells report 128 plus the number of the signal that ended a program
SIGNALLED = 128


def run(words: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    with warnings.catch_warnings(), exit_on_sigterm():
        warnings.simplefilter("ignore")
        try:
            code = get_command(app)(words, prog_name="rfrboost", standalone_mode=False)
            sys.stdout.flush()
        except BrokenPipeError:
            discard_output()
            return FAILED
        except KeyboardInterrupt:
            return INTERRUPTED
        except TyperException as error:
            return usage(error)
        except WrongUsageError as error:
            return failed(error, USAGE)
        except (CommandError, ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            return failed(error, FAILED)
        except Exception as error:
            # A bug; at a shell, one sentence is still more useful than a traceback.
            kind = type(error).__name__
            return failed(RuntimeError(f"Unexpected {kind}: {one_line(error)}"), FAILED)
    return code if isinstance(code, int) else 0


def failed(error: BaseException, code: int) -> int:
    """Print what went wrong and return the exit code."""
    print(one_line(error), file=sys.stderr)
    if isinstance(error, OSError):
        # Bytes that standard output refused must not be tried again at exit.
        discard_output()
    return code


def usage(error: TyperException) -> int:
    """Print what is wrong with the arguments and which help to read; return the exit code."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "rfrboost"
    sentence = one_line(CommandError(error.format_message())).rstrip(".")
    print(f"{sentence}. See {path} --help.", file=sys.stderr)
    return error.exit_code


def discard_output() -> None:
    """Send standard output to nowhere if it cannot be written, so that exit does not fail."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, sys.stdout.fileno())
        finally:
            os.close(null)


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into SystemExit, so that open files are cleaned up."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise SystemExit(SIGNALLED + number)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:
        # Python sets signal handlers in the main thread only.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
