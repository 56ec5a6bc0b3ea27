"""A progress bar of one line, for ``verbose``."""

import sys
from time import perf_counter

from rfrboost._model.history import LayerRecord

# Characters of the bar.
BAR_WIDTH = 24


class Progress:
    """Shows layers as they are fitted: a moving bar on a terminal, else a line per layer."""

    def __init__(self, name: str, n_layers: int) -> None:
        self.name = name
        self.n_layers = n_layers
        self.began = perf_counter()

    def __call__(self, record: LayerRecord) -> None:
        done = round(BAR_WIDTH * record.layer / self.n_layers)
        elapsed = perf_counter() - self.began
        line = (
            f"{self.name} [{'█' * done}{'·' * (BAR_WIDTH - done)}] "
            f"layer {record.layer}/{self.n_layers}  loss {record.loss:.6g}  {elapsed:.1f} s"
        )
        if sys.stderr.isatty():
            last = "\n" if record.layer == self.n_layers else ""
            print(f"\r{line}\x1b[K", end=last, file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
