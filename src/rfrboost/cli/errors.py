"""Failures that a user can do something about."""


class CommandError(Exception):
    """Something went wrong that one sentence explains; the exit code is 1."""


class WrongUsageError(CommandError):
    """The command was called in a way that cannot be meant; the exit code is 2."""


def one_line(error: BaseException) -> str:
    """What an error says, as one line of printable text."""
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table."
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}."
    return printable(" ".join(str(error).split())) or type(error).__name__


def printable(text: str) -> str:
    """Text that does nothing to a terminal: control characters, which files may hold, replaced."""
    return "".join(c if c.isprintable() else "�" for c in text)


def listed(names: list[str], most: int = 8) -> str:
    """Names for a sentence; of many the first ones."""
    shown = ", ".join(printable(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
