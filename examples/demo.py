"""RFRBoost beside three other models on eight small datasets, in one to two minutes and offline.

Run ``python examples/demo.py``. It prints a table of test scores, says where boosted trees win, and
draws ``demo-output/demo.png``: nine rings pulled apart layer by layer, and the models' errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from picture import draw
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
    make_friedman3,
)
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from rfrboost import RFNNClassifier, RFNNRegressor, RFRBoostClassifier, RFRBoostRegressor

SEED = 0
PICTURE = Path("demo-output/demo.png")
CIRCLES = "circles"

# Cross-validation chooses among four candidates per model. RFRBoost has its default settings,
# except on the circles, where its layers are drawn. A list of one value is a setting, no choice.
Grid = dict[str, list[Any]]
Model = GridSearchCV | Pipeline
RIDGE: Grid = {"alpha": [0.1, 1, 10, 100]}
LOGISTIC: Grid = {"C": [0.01, 0.1, 1, 10], "max_iter": [1000]}
TREES: Grid = {"learning_rate": [0.05, 0.1], "max_leaf_nodes": [7, 31]}
RFNN: Grid = {"l2_head": [1e-4, 1e-3, 1e-2, 1e-1]}
RFRBOOST: Grid = {}

# Two coordinates in, two in every layer (Φ₀ is the identity), so that every layer can be drawn.
# The rings are thin and there is no noise to fear: steep features and little regularisation.
CIRCLES_RFNN: Grid = {"feature_scale": [1.0], "l2_head": [1e-6, 1e-5, 1e-4, 1e-3]}
CIRCLES_RFRBOOST: Grid = {
    "n_layers": [3],
    "initial": ["identity"],
    "normalize": [True],
    "learning_rate": [1.0],
    "feature_scale": [1.0],
    "l2_head": [1e-3],
    "l2_step": [1e-6, 1e-5, 1e-4, 1e-3],
}


@dataclass(frozen=True)
class Dataset:
    """A table, halved into training and test rows that every model shares."""

    name: str
    measure: str
    X_train: NDArray
    X_test: NDArray
    y_train: NDArray
    y_test: NDArray


@dataclass(frozen=True)
class Result:
    """A fitted model, its score on the test half and the seconds of the final fit."""

    dataset: Dataset
    model: str
    fitted: Pipeline
    score: float
    seconds: float


def circles(n: int = 10_000, rings: int = 9, classes: int = 3) -> tuple[NDArray, NDArray]:
    """Concentric rings whose classes alternate: no straight line tells them apart."""
    turns = np.linspace(0, rings, n, endpoint=False)
    ring = turns.astype(int)
    direction = np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)])
    noise = np.random.default_rng(SEED).uniform(0, 0.4, (n, 2))
    X = (ring + 1)[:, None] * direction + noise
    return X / X.max(), ring % classes


def rectangles(n: int = 2000) -> tuple[NDArray, NDArray]:
    """Two columns of six decide on which rectangle of a board a row lies: a problem for trees."""
    rng = np.random.default_rng(SEED)
    X = rng.uniform(-1, 1, (n, 6))
    cell = np.floor(X * 2.5 + 5).astype(int) % 3
    heights = np.array([[3, 0, 1], [1, 4, 2], [0, 2, 5]]) / 2.0
    return X, heights[cell[:, 0], cell[:, 1]] + 0.2 * rng.standard_normal(n)


def halved(name: str, measure: str, rows: tuple[NDArray, NDArray]) -> Dataset:
    X, y = rows
    classes = y if measure == "accuracy" else None
    return Dataset(
        name, measure, *train_test_split(X, y, test_size=0.5, stratify=classes, random_state=SEED)
    )


def datasets() -> list[Dataset]:
    return [
        halved("digits", "accuracy", load_digits(return_X_y=True)),
        halved("cancer", "accuracy", load_breast_cancer(return_X_y=True)),
        halved("wine", "accuracy", load_wine(return_X_y=True)),
        halved(CIRCLES, "accuracy", circles()),
        halved("Friedman 1", "R²", make_friedman1(2000, noise=1.0, random_state=SEED)),
        halved("Friedman 3", "R²", make_friedman3(2000, noise=0.1, random_state=SEED)),
        halved("diabetes", "R²", load_diabetes(return_X_y=True)),
        halved("rectangles", "R²", rectangles()),
    ]


def searches(data: Dataset) -> dict[str, Model]:
    """The four models, each with its candidates."""
    rings = data.name == CIRCLES
    rfnn, boost = (CIRCLES_RFNN, CIRCLES_RFRBOOST) if rings else (RFNN, RFRBOOST)
    if data.measure == "accuracy":
        return {
            "Linear": search(LogisticRegression, LOGISTIC),
            "RFNN": search(RFNNClassifier, rfnn),
            "Boosted trees": search(HistGradientBoostingClassifier, TREES, scaled=False),
            "RFRBoost": search(RFRBoostClassifier, boost, scaled=rings),
        }
    return {
        "Linear": search(Ridge, RIDGE),
        "RFNN": search(RFNNRegressor, rfnn),
        "Boosted trees": search(HistGradientBoostingRegressor, TREES, scaled=False),
        "RFRBoost": search(RFRBoostRegressor, boost, scaled=False),
    }


def search(estimator: Any, grid: Grid, scaled: bool = True) -> Model:
    scale = StandardScaler() if scaled else "passthrough"
    pipeline = Pipeline([("scale", scale), ("model", estimator(random_state=SEED))])
    if not grid:
        return pipeline
    return GridSearchCV(pipeline, {f"model__{k}": v for k, v in grid.items()}, cv=3, n_jobs=2)


def evaluate(data: Dataset, model: str, candidates: Model) -> Result:
    began = perf_counter()
    candidates.fit(data.X_train, data.y_train)
    seconds = getattr(candidates, "refit_time_", perf_counter() - began)
    score = candidates.score(data.X_test, data.y_test)
    fitted = getattr(candidates, "best_estimator_", candidates)
    return Result(data, model, fitted, score, seconds)


Job = tuple[Dataset, str, Model]


def shown(jobs: list[Job], console: Console) -> Iterator[Job]:
    """The jobs, with a progress bar, or a line each where the output is a file or a pipe."""
    if not console.is_terminal:
        for i, job in enumerate(jobs, start=1):
            console.print(f"{i:2}/{len(jobs)}  {job[0].name}: {job[1]}", highlight=False)
            yield job
        return
    columns = (
        TextColumn("{task.description:26}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(jobs))
        for job in jobs:
            bar.update(task, description=f"{job[0].name}: {job[1]}")
            yield job
            bar.advance(task)


def score_table(results: list[Result]) -> Table:
    """Datasets down, models across; ★ marks the best score of a row."""
    models = list(dict.fromkeys(r.model for r in results))
    table = Table(
        "dataset",
        "score",
        title="Test scores, and seconds of one fit",
        caption="★ best. Half of the rows train, half test. RFRBoost has its default\n"
        "settings except on the circles; the others are the best of four\n"
        "candidates by cross-validation. One split: small gaps mean little.",
        show_lines=True,
    )
    for model in models:
        table.add_column(model, justify="right")
    for name in dict.fromkeys(r.dataset.name for r in results):
        row = [r for r in results if r.dataset.name == name]
        table.add_row(name, row[0].dataset.measure, *score_cells(row))
    return table


def summary(results: list[Result]) -> str:
    """Where RFRBoost is better than boosted trees, by how much at most, and where it is not."""
    scores = {(r.dataset.name, r.model): r.score for r in results}
    names = list(dict.fromkeys(r.dataset.name for r in results))
    gain = {n: scores[n, "RFRBoost"] - scores[n, "Boosted trees"] for n in names}
    share = {n: gain[n] / (1 - scores[n, "Boosted trees"]) for n in names}
    won = [name for name in names if gain[name] > 0]
    most = max(names, key=lambda name: share[name])
    return (
        f"RFRBoost is better than boosted trees on {len(won)} of {len(names)}: {', '.join(won)}. "
        f"On {most} it leaves {share[most]:.0%} less error than they do.\n"
        f"Boosted trees are as good or better on: {', '.join(n for n in names if n not in won)}. "
        "They win where a target jumps at thresholds, as on the rectangles, and they fit faster. "
        "(On the circles RFRBoost has three layers of two numbers each, so that they can be drawn.)"
    )


def score_cells(row: list[Result]) -> list[str]:
    # Compared as printed, so that equal numbers are marked alike.
    scores = [f"{r.score:.3f}" for r in row]
    best = max(scores, key=float)
    marked = [f"[bold green]★ {s}[/]" if s == best else s for s in scores]
    return [f"{s}\n[dim]{r.seconds:.2f} s[/]" for s, r in zip(marked, row, strict=True)]


def layers(result: Result) -> list[tuple[NDArray, float]]:
    """Φ_0, …, Φ_T of the test half, and the test accuracy that each of them allows."""
    data, model = result.dataset, result.fitted["model"]
    X = result.fitted["scale"].transform(data.X_test)
    # Rows are (φ, 1) in one array that the next layer overwrites, hence the copies.
    clouds = [phi[:, :-1].copy() for phi in model.network_.staged(X)]
    accuracies = [float(np.mean(y == data.y_test)) for y in model.staged_predict(X)]
    return list(zip(clouds, accuracies, strict=True))


def errors(results: list[Result], measure: str) -> dict[str, dict[str, float]]:
    """1 − score, by dataset and model, of the datasets that are scored by this measure."""
    chosen: dict[str, dict[str, float]] = {}
    for r in results:
        if r.dataset.measure == measure:
            chosen.setdefault(r.dataset.name, {})[r.model] = 1 - r.score
    return chosen


def main() -> None:
    console = Console()
    jobs = [(data, *pair) for data in datasets() for pair in searches(data).items()]
    # One thread per fit: fits are small, and threads that wait for each other on a busy machine
    # take many times as long. The second core is for the other half of the search.
    with threadpool_limits(1):
        results = [evaluate(*job) for job in shown(jobs, console)]
    console.print(score_table(results))
    console.print(summary(results), highlight=False)
    rings = next(r for r in results if (r.dataset.name, r.model) == (CIRCLES, "RFRBoost"))
    PICTURE.parent.mkdir(exist_ok=True)
    wrong = {measure: errors(results, measure) for measure in ("accuracy", "R²")}
    draw(PICTURE, layers(rings), rings.dataset.y_test, wrong)
    console.print(f"Picture: {PICTURE}", highlight=False)


if __name__ == "__main__":
    main()
