"""The command ``rfrboost``: from a table in a file to predictions in a file.

Modules here use the public names of rfrboost only. What they need beyond the core is in the extra
``cli``, and is imported when a command runs.
"""

import sys
from importlib.util import find_spec

PACKAGES = ("typer", "rich", "pandas", "pyarrow", "safetensors")


def main(words: list[str] | None = None) -> int:
    """Run one command; 0 if it worked, 1 if it failed, 2 if it was called in a wrong way.

    Parameters
    ----------
    words : list of str, optional
        The command line without the program's name; by default the one that this process has.
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
