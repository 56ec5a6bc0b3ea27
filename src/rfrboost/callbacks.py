"""Callbacks: what a fit calls after every layer (``callbacks`` of the estimators).

A callback is anything that can be called with the record of a layer, a dict with ``layer``,
``loss``, ``step_length``, ``gradient_norm`` and ``seconds`` as in ``history_``. It is called in the
thread that called ``fit``. If it returns True the fit ends with what has been fitted. If it returns
``END_FAMILY`` the present family gets no more layers, and an ensemble continues with the next one.
Anything else changes nothing. If it raises, the fit ends with that error, and the estimator stays
as it was.

An ensemble fits one boosted family after the other (trees, dense features, sparse features), each
from layer 1 on; a loss is then that of held-out rows. A single network has one family and its loss
is that of the training rows. Linear and kernel members have no layers.
"""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from rfrboost._estimators.options.progress import in_notebook
from rfrboost._estimators.routes import END_FAMILY

__all__ = ["END_FAMILY", "EarlyStopping", "LiveCurve", "LogRecords"]

#: the record of a layer
Record = Mapping[str, float]


class EarlyStopping:
    """Ends the layers of a family once its loss has reached a plateau.

    Automatic fits stop by themselves, after four layers in a row that gained less than a
    thousandth of the held-out loss. This ends them earlier. In a single network the loss is that of
    the training rows: the plateau is then where more layers hardly matter.

    Parameters
    ----------
    patience : int, default=2
        How many layers in a row may gain too little before the family ends.
    min_gain : float, default=0.01
        The share of the lowest loss so far that a layer must gain, at least.
    """

    def __init__(self, patience: int = 2, min_gain: float = 0.01) -> None:
        if patience < 1 or not 0 <= min_gain < 1:
            raise ValueError(
                "patience must be a whole number from 1 on and min_gain a share from 0 to below 1; "
                f"got {patience!r} and {min_gain!r}."
            )
        self.patience = patience
        self.min_gain = min_gain
        self._best = float("inf")
        self._waited = 0

    def __call__(self, record: Record) -> str | None:
        first = record["layer"] == 1
        if first or record["loss"] < self._best - self.min_gain * abs(self._best):
            self._best = record["loss"]
            self._waited = 0
            return None
        self._waited += 1
        return END_FAMILY if self._waited >= self.patience else None


class LogRecords:
    """Logs every layer's numbers with a function ``log_metric(name, value, step=…)``.

    ``LogRecords(mlflow.log_metric)`` logs to MLflow; any function with these arguments will do.
    Steps count the layers of all families, from 1 on.

    Parameters
    ----------
    log_metric : callable
        Called with the name, the value, and ``step`` as a keyword.
    names : tuple of str, default=("loss", "gradient_norm")
        Which numbers of a record are logged.
    """

    def __init__(
        self, log_metric: Callable[..., Any], names: tuple[str, ...] = ("loss", "gradient_norm")
    ) -> None:
        self.log_metric = log_metric
        self.names = names
        self._step = 0

    def __call__(self, record: Record) -> None:
        self._step += 1
        for name in self.names:
            self.log_metric(name, record[name], step=self._step)


# After a curve was drawn, it is not drawn again for this many times as long as drawing took: a fit
# with a live curve takes a quarter longer at most.
REST = 4.0


class LiveCurve:
    """Draws the loss of every layer during a fit, a line for each family.

    In a notebook the figure is shown below the cell and updated in place; elsewhere it is a window
    of Matplotlib, if its backend has any. Drawing takes time, so that not every layer is drawn at
    once; :meth:`draw` draws all layers so far. Needs Matplotlib (``pip install 'rfrboost[plot]'``).

    Attributes
    ----------
    curves : list of list of float
        The losses of each family, one after the other.
    figure_ : matplotlib.figure.Figure
        The figure, once something was drawn.
    """

    def __init__(self) -> None:
        self.curves: list[list[float]] = []
        self.figure_: Any = None
        self._shown: Any = None
        self._rests_until = 0.0

    def __call__(self, record: Record) -> None:
        if record["layer"] == 1 or not self.curves:
            self.curves.append([])
        self.curves[-1].append(record["loss"])
        if perf_counter() >= self._rests_until:
            began = perf_counter()
            self.draw()
            ended = perf_counter()
            self._rests_until = ended + REST * (ended - began)

    def __getstate__(self) -> dict[str, Any]:
        # Figures belong to the process, and are drawn anew in another.
        return {**self.__dict__, "figure_": None, "_shown": None, "_rests_until": 0.0}

    def draw(self) -> None:
        """Draw all losses so far, and show the figure where figures are shown."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError(
                "LiveCurve needs the package matplotlib: pip install 'rfrboost[plot]'."
            ) from error
        if self.figure_ is None:
            self.figure_, _ = pyplot.subplots(figsize=(7, 3.5), layout="constrained")
            if in_notebook():
                pyplot.close(self.figure_)  # or the cell would show it once more at its end
        (ax,) = self.figure_.axes
        ax.clear()
        for k, losses in enumerate(self.curves, start=1):
            label = f"family {k}: {losses[-1]:.4g} at layer {len(losses)}"
            ax.plot(range(1, len(losses) + 1), losses, marker="o", markersize=3, label=label)
        ax.set(xlabel="layer", ylabel="loss")
        ax.locator_params(axis="x", integer=True)
        ax.legend(frameon=False)
        self._show()

    def _show(self) -> None:
        """Update the figure below the cell, or in its window."""
        if not in_notebook():
            self.figure_.canvas.draw_idle()
            self.figure_.canvas.flush_events()
            return
        from IPython.display import display

        if self._shown is None:
            self._shown = display(self.figure_, display_id=True)
        else:
            self._shown.update(self.figure_)
