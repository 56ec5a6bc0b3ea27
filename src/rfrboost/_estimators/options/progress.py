"""Progress of a fit, for ``verbose``: the phase, the share that is done, the seconds that are left.

A fit is a sequence of phases, each of which is expected to take a share of its time. The bar fills
once, from left to right: it never goes back, and if a phase ends early it jumps to where the next
phase begins. The seconds left are estimated from the speed so far; they are not shown in the first
twentieth of a fit.

On a terminal it is a line that changes in place, in a notebook an element below the cell, elsewhere
a line every ten seconds. A separate thread prints it, because a phase may take minutes.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Protocol, Self

from rfrboost._auto.fit import TREES
from rfrboost._model.history import LayerRecord

# Characters of the bar.
BAR_WIDTH = 24
# Seconds between two lines where there is neither a terminal nor a notebook.
LINE_SECONDS = 10.0
# The share that must be done before the seconds left are guessed.
LEAST_SHARE = 0.05
# Where held-out rows end a family, it has had half of its time after about this many layers; trees
# have more layers than others.
HALF_WAY = 8
HALF_WAY_OF_TREES = 30

READING = "reading the table"
LAYERS = "layers"


class Progress:
    """How far a fit is, shown on standard error or in a notebook.

    ``deadline`` is when the fit has to end, a reading of ``time.perf_counter``.
    """

    def __init__(self, name: str, deadline: float) -> None:
        self.name = name
        self.deadline = deadline
        self.began = perf_counter()
        self.share = 0.0
        self.phase = READING
        self.detail = ""
        # The phases of a single network, unless others are set: reading takes too little to count.
        self._phases: dict[str, float] = {READING: 0.0, LAYERS: 1.0}
        self._display: Display | None = None

    def plan(self, phases: Mapping[str, float]) -> None:
        """Say which phases there are, in their order, and what share of the time each may take."""
        self._phases = dict(phases)

    def begin(self, phase: str) -> None:
        """Begin a phase; those before it are over."""
        self.phase = phase
        self.detail = ""
        self._reach(self._before(phase))

    def layer(self, record: LayerRecord, n_layers: int | None) -> None:
        """Note a layer of the present phase, of ``n_layers`` if their number is fixed."""
        if self.phase == READING:
            self.phase = LAYERS
        half_way = HALF_WAY_OF_TREES if self.phase == TREES else HALF_WAY
        part = record.layer / (n_layers or record.layer + half_way)
        known = f"/{n_layers}" if n_layers else ""
        self.detail = f", layer {record.layer}{known}, loss {record.loss:.6g}"
        self._reach(self._before(self.phase) + part * self._phases[self.phase] / self._total())

    def _total(self) -> float:
        return sum(self._phases.values())

    def _before(self, phase: str) -> float:
        """The share of the phases before this one."""
        names = list(self._phases)
        earlier = names[: names.index(phase)]
        return sum(self._phases[name] for name in earlier) / self._total()

    def _reach(self, share: float) -> None:
        self.share = max(self.share, min(share, 1.0))
        if self._display is not None:
            self._display.show()

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the seconds that are left; None if it is too early."""
        now = perf_counter()
        if self.share < LEAST_SHARE:
            return None
        guess = (now - self.began) * (1 - self.share) / self.share
        return max(min(guess, self.deadline - now), 0.0)

    def words(self) -> str:
        """The phase, the seconds so far, and those that are left."""
        left = self.seconds_left
        guess = "" if left is None or self.share == 1 else f", about {seconds_text(left)} left"
        elapsed = seconds_text(perf_counter() - self.began)
        return f"{self.share:4.0%}  {self.phase}{self.detail}, {elapsed}{guess}"

    def line(self) -> str:
        """A bar, and the words."""
        done = int(BAR_WIDTH * self.share)
        return f"{self.name} [{'█' * done}{'·' * (BAR_WIDTH - done)}] {self.words()}"

    def __enter__(self) -> Self:
        kind: Callable[[Progress], Display] = Terminal if sys.stderr.isatty() else Lines
        self._display = Notebook(self) if in_notebook() else kind(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *details: object) -> None:
        if kind is None:
            self.share = 1.0
            self.phase = "fitted"
        if self._display is not None:
            self._display.finish()
        self._display = None


class Display(Protocol):
    """Where progress is shown."""

    def show(self) -> None:
        """Show how far the fit is now."""

    def finish(self) -> None:
        """Show it for the last time."""


class Terminal:
    """A line that changes in place; the last one stays."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.show()

    def show(self) -> None:
        print(f"\r{self.progress.line()}\x1b[K", end="", file=sys.stderr, flush=True)

    def finish(self) -> None:
        self.show()
        print(file=sys.stderr, flush=True)


class Lines:
    """A line every LINE_SECONDS, and one at the end."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._tell, daemon=True)
        self.thread.start()

    def _tell(self) -> None:
        while not self.ended.wait(LINE_SECONDS):
            print(self.progress.line(), file=sys.stderr, flush=True)

    def show(self) -> None:
        """Nothing: the thread prints."""

    def finish(self) -> None:
        self.ended.set()
        self.thread.join()
        print(self.progress.line(), file=sys.stderr, flush=True)


class Notebook:
    """A bar below the cell, which is updated in place."""

    def __init__(self, progress: Progress) -> None:
        from IPython.display import display

        self.progress = progress
        self.shown: Any = display(self._bar(), raw=True, display_id=True)

    def show(self) -> None:
        self.shown.update(self._bar(), raw=True)

    def finish(self) -> None:
        self.show()

    def _bar(self) -> dict[str, str]:
        """The bar as HTML, and as text where that is not shown."""
        bar = f'<progress value="{self.progress.share:.3f}" max="1"></progress>'
        words = f"{self.progress.name} {bar} {self.progress.words()}"
        return {"text/html": words, "text/plain": self.progress.line()}


def seconds_text(seconds: float) -> str:
    """Seconds for a line, in minutes from 100 on."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
