"""The learning curve: the loss after every layer, as ``history_`` recorded it.

It shows the boosted families only: linear and kernel members have no layers. The score of the
whole ensemble is ``oof_score_``.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from rfrboost.inspection._models import is_automatic
from rfrboost.inspection._style import COLOURS, INK, MARKERS, heading, panels, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: the names of the boosted families in figures, in the order in which they are fitted
FAMILIES = {"trees": "trees", "swim": "dense features", "sparse": "sparse features"}
# The vertical axis spans at least this share of the largest loss, so that a nearly flat curve
# looks flat.
LEAST_RANGE = 0.1


@dataclass
class LearningCurveDisplay:
    """The loss after layers 1, 2, … of each family; a single network is one family.

    ``curves`` maps the name of a family to its losses, and ``measure`` names the loss. Squared
    error is shown as its root, in the units of y.
    """

    curves: dict[str, np.ndarray]
    measure: str
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, subtitle: str = "", ax: "Axes | None" = None) -> "LearningCurveDisplay":
        """Draw a line for every family; the legend has its last value."""
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
        low, high = ax.get_ylim()
        room = max(0.0, LEAST_RANGE * abs(high) - (high - low)) / 2
        ax.set_ylim(low - room, high + room)
        ax.locator_params(axis="x", integer=True)
        ax.legend(frameon=False, labelcolor=INK)
        heading(ax, "Learning curve", subtitle)
        plain(ax, "y")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def plot_learning_curve(model: Any, *, ax: "Axes | None" = None) -> LearningCurveDisplay:
    """Draw the loss after every layer.

    For an automatic fit it is the loss on held-out rows, one curve per family; for a single
    network the loss on training rows.

    Parameters
    ----------
    model : RFRBoostRegressor or RFRBoostClassifier
        A fitted model.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    LearningCurveDisplay
        ``curves``, ``measure``, ``ax_`` and ``figure_``.
    """
    check_is_fitted(model)
    history = getattr(model, "history_", None)
    if not history:
        raise ValueError(
            f"This {type(model).__name__} has no layers, so there is no learning curve. An "
            "automatic fit keeps none if no layer lowered the held-out loss."
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
    """The name of the loss; ``rooted`` if the square root of squared error is shown."""
    if rooted:
        return "root mean squared error, in units of y"
    if is_classifier(model):
        return "log loss, nats"
    loss = getattr(model, "loss", "loss")
    return f"mean loss ({loss if isinstance(loss, str) else type(loss).__name__})"


def family_names(model: Any) -> list[str]:
    """The names of the families that the model's parameters choose, in the order of fitting."""
    features = getattr(model, "features", "auto")
    if not is_automatic(model):
        return ["the network"]
    if isinstance(features, str) and features == "auto":
        return list(FAMILIES.values())
    if isinstance(features, tuple):
        return [name for key, name in FAMILIES.items() if key in features]
    return ["the boosted members"]


def by_family(history: list[dict[str, float]], names: list[str]) -> dict[str, np.ndarray]:
    """The losses of every family; in the history a new family begins at each layer 1."""
    begins = [i for i, record in enumerate(history) if record["layer"] == 1]
    ends = [*begins[1:], len(history)]
    if len(begins) != len(names):
        # A family that kept no layer is not in the history, which does not name families.
        names = [f"family {k}" for k in range(1, len(begins) + 1)]
    return {
        name: np.array([record["loss"] for record in history[begin:end]])
        for name, begin, end in zip(names, begins, ends, strict=True)
    }
