"""The command ``rfrboost``: from a table in a file to predictions in a file.

The modules here use the public names of rfrboost, and the writer of files that it shares with
them. The packages that they need beyond the core are in the extra ``cli`` and are imported when a
command runs, so that help appears quickly.
"""

import sys
from importlib.util import find_spec

PACKAGES = ("typer", "rich", "pandas", "pyarrow", "safetensors")


def main(words: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    words : list of str, optional
        The arguments of the command line without the program's name; by default those of this
        process.

    Returns
    -------
    int
        0 for success, 1 for a failure, 2 for wrong usage, 130 after Ctrl-C.
    """
    lacking = [package for package in PACKAGES if find_spec(package) is None]
    if lacking:
        print(
            f"The command line needs {', '.join(lacking)}: pip install 'rfrboost[cli]'.",
            file=sys.stderr,
        )
        return 1
    try:
        from rfrboost.cli.run import run
    except KeyboardInterrupt:
        return 130
    return run(sys.argv[1:] if words is None else words)
