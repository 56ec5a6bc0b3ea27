"""The record of a fit: a dict per layer in the units of y, and a progress bar for ``verbose``."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

from rfrboost._model.history import LayerRecord, in_units

# Characters of the progress bar.
BAR_WIDTH = 24


class Progress:
    """Shows layers as they are fitted: a moving bar on a terminal, else a line per layer."""

    def __init__(self, name: str, n_layers: int, verbose: int) -> None:
        self.name = name
        self.n_layers = n_layers
        self.verbose = verbose
        self.began = perf_counter()

    def __call__(self, record: LayerRecord) -> None:
        if not self.verbose:
            return
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


def recorder(
    history: list[dict[str, float]], progress: Progress, scale: float, degree: int
) -> Callable[[LayerRecord], None]:
    """A function that takes every layer's record, keeps it in the units of y, and shows it.

    ``scale`` is what one unit of the fit is in units of y; the loss is of this ``degree`` in it.
    """

    def record_layer(record: LayerRecord) -> None:
        record = in_units(record, scale, degree)
        history.append(asdict(record))
        progress(record)

    return record_layer
