"""Requests that cannot be met: the errors of a command, and the two checks that raise them.

An error of this module ends a command. Its text is one sentence on standard error that says what
is wrong and what to do; no traceback is shown.
"""

import importlib.util


class ExperimentError(Exception):
    """A command that started and could not finish; ``exit_code`` is the exit code of the shell."""

    exit_code = 1


class UsageError(ExperimentError):
    """A request that is wrong as it stands; nothing has been run or written."""

    exit_code = 2


def require(library: str, extra: str, purpose: str) -> None:
    """Raise UsageError unless ``library`` is installed.

    ``extra`` is the extra of pyproject.toml that installs it. ``purpose`` begins the sentence:
    what the library is needed for.
    """
    if not _is_installed(library):
        raise UsageError(
            f"{purpose} needs the library {library}, which is not installed: "
            f"pip install -e '.[{extra}]'."
        )


def _is_installed(library: str) -> bool:
    # Looked up, not imported, because some of these libraries take seconds to import.
    try:
        return importlib.util.find_spec(library) is not None
    except ImportError:
        return False


def select(kind: str, names: list[str] | None, known: list[str]) -> list[str]:
    """The chosen names in the order of ``known``; all known names when ``names`` is None.

    ``kind`` is the word for such a name in the error message, for example "model".
    """
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise UsageError(
            f"Unknown {kind} {', '.join(unknown)}: the {kind}s are {', '.join(known)}."
        )
    return [name for name in known if names is None or name in names]
