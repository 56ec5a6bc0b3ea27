"""Settings of all tests."""

from hypothesis import settings

# An example has no time limit: how long it takes depends on what else the machine does.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
