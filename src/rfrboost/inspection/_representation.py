"""The representation Φ_t of some rows, layer by layer, as point clouds in the plane.

For single networks only. In an ensemble Φ consists of the members' predictions.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from rfrboost.inspection._models import is_automatic
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The most panels; a network with more layers shows this many of them, evenly spaced.
MOST_PANELS = 4
# The axes span these quantiles and a margin, so that outliers do not shrink the rest.
VIEW = (0.003, 0.997)


@dataclass
class RepresentationDisplay:
    """The rows in the plane after some layers, their labels, and the score after each layer.

    ``clouds`` maps a layer to an array (n, 2). It is Φ_t itself if Φ_t has two columns, otherwise
    its projection on the plane that the outputs depend on most, rotated so that rows move as
    little as possible from panel to panel. ``axis`` labels the first coordinate, if it has a
    meaning.
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
        figure = drawn[0].figure
        if self.classes is None:
            figure.colorbar(points, ax=drawn, label="y", shrink=0.8, pad=0.02)
        else:
            drawn[-1].legend(
                loc="upper left",
                bbox_to_anchor=(1.0, 1.04),
                frameon=False,
                labelcolor=INK,
                markerscale=1.8,
                handletextpad=0.2,
            )
        self.ax_ = np.array(drawn)
        self.figure_ = figure
        return self

    def _draw(self, panel: "Axes", cloud: np.ndarray) -> Any:
        """Draw the points of one layer; for regression, return them for the colour bar."""
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
        middle = (low + high) / 2
        half = 0.58 * np.maximum(high - low, 1e-12)
        if not self.axis:
            # Equal axes, so that distances are those of the representation.
            half[:] = half.max()
        panel.set(xlim=(middle[0] - half[0], middle[0] + half[0]), xticks=[])
        panel.set(ylim=(middle[1] - half[1], middle[1] + half[1]), yticks=[], box_aspect=1)
        panel.spines[:].set_color(RULE)
        return points


def layer_name(t: int) -> str:
    """The title of a panel."""
    return "$\\Phi_0$: the start" if t == 0 else f"$\\Phi_{{{t}}}$: layer {t}"


def plot_representation(
    model: Any, X: Any, y: Any, *, ax: "Axes | None" = None
) -> RepresentationDisplay:
    """Draw Φ_t of some rows after the layers of a single network, coloured by label.

    Parameters
    ----------
    model : RFRBoostRegressor or RFRBoostClassifier with n_layers a number, or an RFNN
        A fitted single network.
    X, y : array-like of shapes (n_samples, n_features_in) and (n_samples,)
        Rows and their labels or targets; at most 4,000 rows are drawn.
    ax : matplotlib Axes, optional
        The axes to draw into; a new figure by default.

    Returns
    -------
    RepresentationDisplay
        ``clouds``, ``scores``, ``labels``, ``ax_`` and ``figure_``.
    """
    check_is_fitted(model)
    if is_automatic(model):
        raise ValueError(
            "An automatic fit is an ensemble and has no single representation to draw: set "
            "n_layers to a number for a single network."
        )
    check_consistent_length(X, y)
    # Predicting first lets the model check X, including the names of its columns.
    scores = staged_scores(model, X, y)
    X = model.encode(X)
    y = np.asarray(y)
    if y.ndim > 1:
        raise ValueError("y has several columns, but points can be coloured by one only.")
    if len(y) > MOST_POINTS:
        shown = np.random.default_rng(0).choice(len(y), MOST_POINTS, replace=False)
        X = X[shown]
        y = y[shown]
    chosen = set(spread(len(scores)))
    # The network yields (φ, 1) in one array that the next layer overwrites, hence the copies.
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
    """The stages to draw: all, or MOST_PANELS evenly spaced ones with the first and the last."""
    places = np.linspace(0, n_stages - 1, min(n_stages, MOST_PANELS))
    return [int(t) for t in places.round()]


def flattened(phis: dict[int, tuple[np.ndarray, np.ndarray]]) -> dict[int, np.ndarray]:
    """Every Φ_t (n, D) in the plane (n, 2); each is given with W_t (D, d) of its head."""
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
    """Two orthonormal directions (D, 2) in which centred rows of Φ change the outputs most.

    With one output, the first is the direction in which the prediction increases. The second is
    then the direction orthogonal to it in which Φ varies most.
    """
    if W.shape[1] > 1:
        W = W @ np.linalg.svd(phi @ W, full_matrices=False)[2][:2].T
    first, R = np.linalg.qr(W)
    first = first * np.where(np.diag(R) < 0, -1.0, 1.0)
    rest = phi - (phi @ first) @ first.T
    beside = np.linalg.svd(rest, full_matrices=False)[2][:2].T
    return np.column_stack([first, beside])[:, :2]


def turn(plane: np.ndarray, before: np.ndarray, fixed: bool) -> np.ndarray:
    """The rotation or reflection (2, 2) that brings a cloud closest to the one before.

    With ``fixed`` the first axis has a meaning, so only the second may be reflected. Otherwise
    this is the orthogonal Procrustes problem, solved by a singular value decomposition.
    """
    if fixed:
        return np.diag([1.0, -1.0 if plane[:, 1] @ before[:, 1] < 0 else 1.0])
    left, _, right = np.linalg.svd(plane.T @ before)
    return np.asarray(left @ right)
