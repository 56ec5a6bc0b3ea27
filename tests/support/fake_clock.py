"""A clock that goes on by itself, one tick for every reading, in place of the library's."""

import sys


class Clock:
    """Readings are 0, 1, 2, … ticks; ``readings`` counts them."""

    def __init__(self, tick=1.0):
        self.tick = tick
        self.readings = 0

    def __call__(self):
        self.readings += 1
        return (self.readings - 1) * self.tick


def install(monkeypatch, clock):
    """Let every module of the library read this clock."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "rfrboost" and getattr(module, "perf_counter", None) is not None:
            monkeypatch.setattr(module, "perf_counter", clock)
    return clock
