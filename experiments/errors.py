"""The two ways a command can end early; each is shown to the user as one sentence."""


class ExperimentError(Exception):
    """An expected end of a command; ``exit_code`` is what the shell sees."""

    exit_code = 1


class UsageError(ExperimentError):
    """What was asked for cannot be done as asked: the request or the data must change."""

    exit_code = 2
