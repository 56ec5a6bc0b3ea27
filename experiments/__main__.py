"""The command line: one module per subcommand, each with NAME, SUMMARY, add_arguments and run."""

import argparse
import sys

from experiments import (
    ablation,
    circles,
    coverage,
    defaults,
    exports,
    figures,
    fine_tune,
    growth,
    large_scale,
    raw_tables,
    regret,
    replay,
    report,
    run,
    tables,
)
from experiments.errors import ExperimentError

COMMANDS = (
    run,
    replay,
    defaults,
    coverage,
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
INTERRUPTED = 130  # what a shell reports for a program ended by Ctrl-C


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    main_parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Run the paper's experiments again, and compare."
    )
    commands = main_parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        description = command.__doc__.partition("\n\n")[2]
        subparser = commands.add_parser(command.NAME, help=command.SUMMARY, description=description)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return main_parser


def main(words: list[str] | None = None) -> int:
    """Run one command; an expected failure is one sentence on standard error."""
    try:
        arguments = parser().parse_args(words)
        return arguments.run(arguments)
    except ExperimentError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Stopped; the same command goes on where it was.", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
