"""The shared options for commands whose tables have names and no OpenML ids."""

import argparse
import os
from pathlib import Path

from experiments.arguments import folder, positive, words
from experiments.errors import UsageError


def add_named_selection(
    parser: argparse.ArgumentParser, tables: list[str], models: list[str], out: str
) -> None:
    """What to work on and where to keep it: ``--tables --models --out --jobs``."""
    parser.add_argument(
        "--tables",
        type=words,
        metavar="NAME,NAME",
        help=f"which tables (default: all there are), of {', '.join(tables)}",
    )
    parser.add_argument(
        "--models",
        type=words,
        metavar="NAME,NAME",
        help=f"which models (default: all), of {', '.join(models)}",
    )
    parser.add_argument(
        "--out",
        type=folder,
        metavar="DIR",
        default=Path(out),
        help="where results are kept; what is there is not computed again (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        default=os.cpu_count() or 1,
        help="processes, each with one thread (default: the number of cores)",
    )


def select(kind: str, names: list[str] | None, known: list[str]) -> list[str]:
    """These names in the order of the known ones; all of them when none are given."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise UsageError(
            f"Unknown {kind} {', '.join(unknown)}: the {kind}s are {', '.join(known)}."
        )
    return [name for name in known if names is None or name in names]
