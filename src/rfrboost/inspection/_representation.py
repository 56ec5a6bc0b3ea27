"""The representation Φ_t layer by layer, in the plane."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from rfrboost.inspection._style import (
    COLOURS,
    INK,
    MARKERS,
    MOST_POINTS,
    RULE,
    SCALE,
    heading,
    panels,
    text,
)
from rfrboost.inspection._models import is_automatic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A panel for each layer up to so many; of more, so many evenly spread ones.
MOST_PANELS = 4
# What lies beyond these quantiles, and a margin, must not shrink the rest.
VIEW = (0.003, 0.997)


@dataclass
class RepresentationDisplay:
    """The rows in the plane after some layers, their labels, and the score that each layer has.

    ``clouds`` (layer → array (n, 2)) are Φ_t itself if it has two columns, else the plane of it
    that the head reads most from, turned so that rows move as little as possible from panel to
    panel. ``axis`` says what the first coordinate is, if it means anything by itself.
    """

    clouds: dict[int, np.ndarray]
    scores: dict[int, float]
    labels: np.ndarray
    classes: np.ndarray | None
    axis: str = ""
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    def plot(self, ax: "Axes | None" = None) -> "RepresentationDisplay":
        """Draw a panel for each layer, coloured by label."""
        n_panels = len(self.clouds)
        drawn = panels(ax, (1.0 + 2.2 * n_panels, 3.1), widths=(1.0,) * n_panels)
        measure = "R²" if self.classes is None else "accuracy"
        for panel, t in zip(drawn, self.clouds, strict=True):
            points = self._draw(panel, self.clouds[t])
            heading(panel, layer_name(t), f"{measure} {self.scores[t]:.3f}")
            panel.set_xlabel(self.axis)
        last, figure = drawn[-1], drawn[0].figure
        if self.classes is None:
            figure.colorbar(points, ax=drawn, label="y", shrink=0.8, pad=0.02)
        else:
            last.legend(
                loc="upper left",
                bbox_to_anchor=(1.0, 1.04),
                frameon=False,
                labelcolor=INK,
                markerscale=1.8,
                handletextpad=0.2,
            )
        self.ax_, self.figure_ = np.array(drawn), figure
        return self

    def _draw(self, panel: "Axes", cloud: np.ndarray) -> Any:
        """The points of one layer; returns what a colour bar can be made of."""
        x, y = cloud.T
        look: dict[str, Any] = {"s": 14, "linewidths": 0, "alpha": 0.75, "rasterized": True}
        points = None
        if self.classes is None:
            points = panel.scatter(x, y, c=self.labels, cmap=SCALE, **look)
        for k, label in enumerate(() if self.classes is None else self.classes):
            look["marker"] = MARKERS[k // len(COLOURS) % len(MARKERS)]
            own = self.labels == label
            colour = COLOURS[k % len(COLOURS)]
            panel.scatter(x[own], y[own], color=colour, label=text(label), **look)
        low, high = np.quantile(cloud, VIEW, axis=0)
        middle, half = (low + high) / 2, 0.58 * np.maximum(high - low, 1e-12)
        if not self.axis:
            # Both axes alike, so that distances are those of the representation.
            half[:] = half.max()
        panel.set(xlim=(middle[0] - half[0], middle[0] + half[0]), xticks=[])
        panel.set(ylim=(middle[1] - half[1], middle[1] + half[1]), yticks=[], box_aspect=1)
        panel.spines[:].set_color(RULE)
        return points


def layer_name(t: int) -> str:
    """A panel's title."""
    return "$\\Phi_0$: the start" if t == 0 else f"$\\Phi_{{{t}}}$: layer {t}"


def plot_representation(
    model: Any, X: Any, y: Any, *, ax: "Axes | None" = None
) -> RepresentationDisplay:
    """Φ_t of some rows after each layer of a single network, coloured by label.

    Parameters
    ----------
    model : RFRBoostRegressor or RFRBoostClassifier with n_layers a number, or an RFNN
        A fitted single network; an automatic fit's Φ are its members' predictions.
    X, y : array-like of shapes (n_samples, n_features_in) and (n_samples,)
        Rows, at most 4,000 of which are drawn, and their labels or targets.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    RepresentationDisplay
        With ``clouds``, ``scores``, ``labels``, ``ax_`` and ``figure_``.
    """
    check_is_fitted(model)
    if is_automatic(model):
        raise ValueError(
            "The representation of an automatic fit is its members' predictions, not a chain of "
            "layers: set n_layers to a number for a network whose layers can be drawn."
        )
    check_consistent_length(X, y)
    # The model's own check says what is wrong with X; names of columns matter no more after it.
    scores = staged_scores(model, X, y)
    X, y = check_array(X), np.asarray(y)
    if y.ndim > 1:
        raise ValueError("y has several columns, and points have one colour.")
    if len(y) > MOST_POINTS:
        shown = np.random.default_rng(0).choice(len(y), MOST_POINTS, replace=False)
        X, y = X[shown], y[shown]
    chosen = set(spread(len(scores)))
    # Rows are (φ, 1) in one array that the next layer overwrites, hence the copies.
    staged = enumerate(zip(model.network_.staged(X), model.network_.heads, strict=True))
    phis = {t: (phi[:, :-1].copy(), head.W) for t, (phi, head) in staged if t in chosen}
    clouds = flattened(phis)
    scores = {t: scores[t] for t in clouds}
    classes = np.unique(y) if is_classifier(model) else None
    D, outputs = model.network_.heads[-1].W.shape
    axis = "raw prediction →" if D > 2 and outputs == 1 else ""
    return RepresentationDisplay(clouds, scores, y, classes, axis).plot(ax)


def staged_scores(model: Any, X: Any, y: Any) -> dict[int, float]:
    """Accuracy or R² after 0, 1, …, T layers."""
    from sklearn.metrics import accuracy_score, r2_score

    measure = accuracy_score if is_classifier(model) else r2_score
    return {t: float(measure(y, stage)) for t, stage in enumerate(model.staged_predict(X))}


def spread(n_stages: int) -> list[int]:
    """The stages to draw: all, or some from the first to the last."""
    places = np.linspace(0, n_stages - 1, min(n_stages, MOST_PANELS))
    return [int(t) for t in places.round()]


def flattened(phis: dict[int, tuple[np.ndarray, np.ndarray]]) -> dict[int, np.ndarray]:
    """Every Φ_t, given with its head's W_t, in the plane."""
    clouds: dict[int, np.ndarray] = {}
    before: np.ndarray | None = None
    for t, (phi, W) in phis.items():
        centred = phi - phi.mean(axis=0)
        if phi.shape[1] <= 2:
            clouds[t] = np.pad(centred, ((0, 0), (0, 2 - phi.shape[1])))
            continue
        plane = centred @ head_plane(centred, W)
        if before is not None:
            plane = plane @ turn(plane, before, W.shape[1] == 1)
        clouds[t] = before = plane
    return clouds


def head_plane(phi: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Two orthonormal directions (D, 2) of centred rows of Φ: those that move the outputs most.

    A head of one output has one direction, in which its prediction rises; the second is then
    where Φ varies most beside it.
    """
    if W.shape[1] > 1:
        W = W @ np.linalg.svd(phi @ W, full_matrices=False)[2][:2].T
    first, R = np.linalg.qr(W)
    first = first * np.where(np.diag(R) < 0, -1.0, 1.0)
    rest = phi - (phi @ first) @ first.T
    beside = np.linalg.svd(rest, full_matrices=False)[2][:2].T
    return np.column_stack([first, beside])[:, :2]


def turn(plane: np.ndarray, before: np.ndarray, fixed: bool) -> np.ndarray:
    """The rotation or reflection that brings a cloud closest to the one before.

    With ``fixed`` the first axis has a meaning, and only the second may be reflected.
    """
    if fixed:
        return np.diag([1.0, -1.0 if plane[:, 1] @ before[:, 1] < 0 else 1.0])
    left, _, right = np.linalg.svd(plane.T @ before)
    return left @ right
