"""Results of the ``circles`` command: accuracies as a table, and the points at every layer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from experiments.data.synthetic import N_CLASSES, rings_fold
from experiments.models.grids import with_choice
from experiments.models.naming import label
from experiments.models.recipes import build
from experiments.reports.figures import STYLE, save
from experiments.reports.markdown import markdown_table
from experiments.runs.jobs import Result, provenances

# The columns of the published file, by our names.
PUBLISHED_NAMES = {
    "rfrboost-swim": "RFRBoost SWIM",
    "rfnn-swim": "RFNN",
    "logistic": "Logistic Regression",
    "mlp": "End2EndMLP",
}
COLUMNS = ["model", "run", "accuracy", "train_accuracy", "fit_seconds", "chosen", "commit"]
# One colour for each class, distinct for any kind of colour vision and in grey.
CLASS_COLOURS = ["#0072B2", "#E69F00", "#000000"]


def run_rows(results: list[Result]) -> pd.DataFrame:
    """One row per run, with the parameters that the search chose."""
    rows = [
        (
            r.job.model,
            r.job.fold,
            r.scores.test_score,
            r.scores.train_score,
            r.scores.fit_seconds,
            " ".join(f"{k}={v:g}" for k, v in r.scores.details["chosen"].items()),
            r.provenance.code,
        )
        for r in results
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def markdown_report(rows: pd.DataFrame, published: Path | None, failures: list[Result]) -> str:
    """A table of our accuracies and the published ones."""
    text = "# Concentric circles\n\nTest accuracy; spreads are population standard deviations.\n\n"
    text += "".join(f"- failed: {r.job.model} run {r.job.fold}: {r.error}\n" for r in failures)
    theirs = None if published is None else pd.read_csv(published)
    lines = [summary_row(model, part, theirs) for model, part in rows.groupby("model", sort=False)]
    return text + markdown_table(pd.DataFrame(lines))


def summary_row(
    model: str, runs: pd.DataFrame, published: pd.DataFrame | None
) -> dict[str, object]:
    """One model: mean, standard deviation and worst run, and the published mean and deviation."""
    accuracy = runs["accuracy"]
    row = {
        "model": label(model),
        "runs": len(runs),
        "mean": accuracy.mean(),
        "std": accuracy.std(ddof=0),
        "worst": accuracy.min(),
        "search and fit s": runs["fit_seconds"].mean(),
    }
    if published is not None:
        theirs = published[PUBLISHED_NAMES[model]]
        row |= {"published mean": theirs.mean(), "published std": theirs.std(ddof=0)}
    return row


def rfrboost_layers(model: Any, X: NDArray) -> list[NDArray]:
    """Φ_0, …, Φ_T of the rows, copied because the network changes one array in place."""
    return [phi[:, :-1].copy() for phi in model.network_.staged(X)]


def mlp_layers(model: Any, X: NDArray) -> list[NDArray]:
    """Φ_0, …, Φ_T of the rows, from the network inside the wrapper that codes the labels."""
    return model.classifier.representations(X)


# The models whose Φ has two dimensions and can be drawn.
LAYERS: dict[str, Callable[[Any, NDArray], list[NDArray]]] = {
    "rfrboost-swim": rfrboost_layers,
    "mlp": mlp_layers,
}


def draw_clouds(results: list[Result], out: Path) -> None:
    """Draw the test points of each run at every layer, one row of panels per model.

    The chosen candidate is fitted again; the same seed gives the same model.
    """
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
        points = panels[0, 0].collections
        names = [f"class {c}" for c in range(N_CLASSES)]
        figure.legend(points, names, loc="outside lower center", ncols=N_CLASSES, markerscale=5)
        save(figure, out, "circles-layers", provenances(drawn))


def points_by_layer(result: Result) -> list[NDArray]:
    """The test points of a run at every layer of its model."""
    job = result.job
    fold = rings_fold(job.fold)
    recipe = with_choice(job.recipe, result.scores.details["chosen"])
    model = build(recipe, len(fold.y_train), job.fold).fit(fold.X_train, fold.y_train)
    return LAYERS[job.model](model, fold.X_test)


def draw_row(row: Any, result: Result, layers: list[NDArray]) -> None:
    """The panels of one model, with equal units on both axes and no ticks."""
    labels = rings_fold(result.job.fold).y_test
    for axes, cloud in zip(row, layers, strict=True):
        for c, colour in enumerate(CLASS_COLOURS):
            points = cloud[labels == c]
            # Rasterized, because thousands of vector points make an SVG slow to show.
            axes.scatter(*points.T, s=2, c=colour, linewidths=0, rasterized=True)
        axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
        axes.spines[["top", "right"]].set_visible(True)
    row[0].set_ylabel(f"{label(result.job.model)}\ntest accuracy {result.scores.test_score:.3f}")
