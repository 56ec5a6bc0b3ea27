"""The learning curve: the loss after every layer, as the fit recorded it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._style import COLOURS, INK, MARKERS, heading, panels, plain
from rfrboost.inspection._models import is_automatic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: the families of boosted members, in the order in which they are fitted
FAMILIES = {"swim": "dense features", "sparse": "sparse features"}
# The axis of losses spans at least this share of them.
LEAST_RANGE = 0.1


@dataclass
class LearningCurveDisplay:
    """The loss by family after layers 1, 2, …; a single network is one family.

    ``measure`` says what is measured: squared error as its root, in the units of y.
    """

    curves: dict[str, np.ndarray]
    measure: str
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, subtitle: str = "", ax: "Axes | None" = None) -> "LearningCurveDisplay":
        """Draw a line for every family, with the value that it ends at."""
        (ax,) = panels(ax, (8, 4.5))
        for k, (family, losses) in enumerate(self.curves.items()):
            layers = np.arange(1, len(losses) + 1)
            ax.plot(
                layers,
                losses,
                color=COLOURS[k % len(COLOURS)],
                marker=MARKERS[k % len(MARKERS)],
                linewidth=2,
                label=f"{family}: {losses[-1]:.4g} at layer {len(losses)}",
            )
        ax.set(xlabel="layer", ylabel=self.measure)
        # A curve that is nearly flat should look flat.
        low, high = ax.get_ylim()
        room = max(0.0, LEAST_RANGE * abs(high) - (high - low)) / 2
        ax.set_ylim(low - room, high + room)
        ax.locator_params(axis="x", integer=True)
        ax.legend(frameon=False, labelcolor=INK)
        heading(ax, "Learning curve", subtitle)
        plain(ax, "y")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def plot_learning_curve(model: Any, *, ax: "Axes | None" = None) -> LearningCurveDisplay:
    """The loss after every layer: held-out by family for automatic fits, else on training rows.

    Parameters
    ----------
    model : RFRBoostRegressor or RFRBoostClassifier
        A fitted model.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    LearningCurveDisplay
        With ``curves``, ``measure``, ``ax_`` and ``figure_``.
    """
    check_is_fitted(model)
    history = getattr(model, "history_", None)
    if not history:
        raise ValueError(
            f"This {type(model).__name__} has no layers to draw a learning curve of; an automatic "
            "fit keeps none where none lowered the held-out loss of its linear start."
        )
    rows = "held-out rows" if is_automatic(model) else "training rows"
    rooted = not is_classifier(model) and getattr(model, "loss", None) == "squared_error"
    curves = {
        family: np.sqrt(2 * losses) if rooted else losses
        for family, losses in by_family(history, family_names(model)).items()
    }
    end = "; each family ends where more layers no longer helped" if is_automatic(model) else ""
    return LearningCurveDisplay(curves, measure_of(model, rooted)).plot(f"on {rows}{end}", ax)


def measure_of(model: Any, rooted: bool) -> str:
    """What the losses are, in words."""
    if rooted:
        return "root mean squared error, in units of y"
    if is_classifier(model):
        return "log loss, nats"
    loss = getattr(model, "loss", "loss")
    return f"mean loss ({loss if isinstance(loss, str) else type(loss).__name__})"


def family_names(model: Any) -> list[str]:
    """The families that the model's parameters ask for, in the order of their fits."""
    features = getattr(model, "features", "auto")
    if not is_automatic(model):
        return ["the network"]
    if isinstance(features, str) and features == "auto":
        return list(FAMILIES.values())
    if isinstance(features, tuple):
        return [name for key, name in FAMILIES.items() if key in features]
    return ["the boosted members"]


def by_family(history: list[dict[str, float]], names: list[str]) -> dict[str, np.ndarray]:
    """The losses of every family; a new one begins where layers are counted from 1 again."""
    begins = [i for i, record in enumerate(history) if record["layer"] == 1]
    ends = [*begins[1:], len(history)]
    if len(begins) != len(names):
        # A family whose layers never helped leaves no record, and none says whose it is.
        names = [f"family {k}" for k in range(1, len(begins) + 1)]
    return {
        name: np.array([record["loss"] for record in history[begin:end]])
        for name, begin, end in zip(names, begins, ends, strict=True)
    }
