"""The command line, ``python -m experiments COMMAND``.

A command is a module with ``NAME``, ``SUMMARY`` (its line in the help), ``add_arguments`` and
``run``, which returns the exit code. Its docstring, without the first paragraph, is its description
in the help. A new command is entered in ``COMMANDS``.
"""

import argparse
import sys

from experiments.commands import (
    calibration,
    circles,
    coverage,
    defaults,
    exports,
    fine_tune,
    growth,
    importances,
    large_scale,
    raw_tables,
    regret,
    replay,
    run,
)
from experiments.commands.stored import ablation, figures, report, tables
from experiments.requests import ExperimentError

COMMANDS = (
    run,
    replay,
    defaults,
    coverage,
    calibration,
    importances,
    tables,
    figures,
    ablation,
    report,
    circles,
    large_scale,
    growth,
    regret,
    fine_tune,
    raw_tables,
    exports,
)
# The exit code that shells report for a program ended by Ctrl-C.
INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    main_parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Run the paper's experiments again, and compare."
    )
    commands = main_parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        description = command.__doc__.partition("\n\n")[2]
        # argparse formats help texts with %, descriptions are printed as they are.
        summary = command.SUMMARY.replace("%", "%%")
        subparser = commands.add_parser(command.NAME, help=summary, description=description)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return main_parser


def main(words: list[str] | None = None) -> int:
    """Run one command and return its exit code; an ExperimentError is printed without traceback."""
    try:
        arguments = parser().parse_args(words)
        return arguments.run(arguments)
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(
            "Stopped. Run the same command again to continue from the finished jobs.",
            file=sys.stderr,
        )
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
