"""The picture of the circles: the test points at every layer, one row of panels a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from experiments.grid import with_choice
from experiments.jobs import Result
from experiments.models import build
from experiments.naming import label
from experiments.pictures import STYLE, save
from experiments.rings import N_CLASSES, rings_fold

# One colour and one marker a class, told apart with any kind of colour vision and in grey.
CLASS_COLOURS = ["#0072B2", "#E69F00", "#000000"]


def rfrboost_layers(model: Any, X: NDArray) -> list[NDArray]:
    """Φ_0, …, Φ_T; the network yields one array that it goes on changing."""
    return [phi[:, :-1].copy() for phi in model.network_.staged(X)]


def mlp_layers(model: Any, X: NDArray) -> list[NDArray]:
    """Φ_0, …, Φ_T of the network inside the wrapper that codes the labels."""
    return model.classifier.representations(X)


# The models whose representation is a plane; the others have nothing to draw.
LAYERS: dict[str, Callable[[Any, NDArray], list[NDArray]]] = {
    "rfrboost-swim": rfrboost_layers,
    "mlp": mlp_layers,
}


def draw_clouds(results: list[Result], out: Path) -> None:
    """Refit what each run chose, which gives the same model again, and draw its test points."""
    drawn = [result for result in results if result.job.model in LAYERS]
    if not drawn:
        return
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        clouds = [points_by_layer(result) for result in drawn]
        n_columns = len(clouds[0])
        figure = Figure(figsize=(2.6 * n_columns, 2.75 * len(drawn) + 0.5), layout="constrained")
        panels = figure.subplots(len(drawn), n_columns, squeeze=False)
        for row, result, layers in zip(panels, drawn, clouds, strict=True):
            draw_row(row, result, layers)
        for t, axes in enumerate(panels[0]):
            axes.set_title("input" if t == 0 else f"layer t = {t}")
        points, names = panels[0, 0].collections, [f"class {c}" for c in range(N_CLASSES)]
        figure.legend(points, names, loc="outside lower center", ncols=N_CLASSES, markerscale=5)
        save(figure, out, "circles-layers")


def points_by_layer(result: Result) -> list[NDArray]:
    """The test points of a run at every layer of its model."""
    fold, job = rings_fold(result.job.fold), result.job
    recipe = with_choice(job.recipe, result.scores.details["chosen"])
    model = build(recipe, len(fold.y_train), job.fold).fit(fold.X_train, fold.y_train)
    return LAYERS[job.model](model, fold.X_test)


def draw_row(row: Any, result: Result, layers: list[NDArray]) -> None:
    """One model's panels: equal units along both axes, no ticks, for only the shape counts."""
    labels = rings_fold(result.job.fold).y_test
    for axes, cloud in zip(row, layers, strict=True):
        for c, colour in enumerate(CLASS_COLOURS):
            points = cloud[labels == c]
            # Thousands of points as vectors would make a slow page: they are a picture in the SVG.
            axes.scatter(*points.T, s=2, c=colour, linewidths=0, rasterized=True)
        axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        axes.spines[["top", "right"]].set_visible(True)
    row[0].set_ylabel(f"{label(result.job.model)}\ntest accuracy {result.scores.test_score:.3f}")
