"""The ``regret`` command: the excess-risk bound of the theory as an experiment.

A regression problem of known Bayes risk, with fresh rows for every layer and learning rates
c·t^(−s), as the theorem assumes. Measures the excess risk against the number of layers T and the
number of rows per layer ñ, and compares it with the rates T^(−β(1−s)), β = 1, and ñ^(−1/2) of the
bound.
"""

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.commands.arguments import add_named_selection
from experiments.data.synthetic import excess_risk, sample
from experiments.models.naming import label
from experiments.models.recipes import Recipe, build
from experiments.models.scoring import Scores, rmse
from experiments.reports.figures import INK, STYLE, save
from experiments.reports.markdown import markdown_table
from experiments.requests import require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, Result, provenances
from experiments.runs.pool import run_jobs
from experiments.runs.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "regret"
SUMMARY = "excess risk against layers and rows per layer, and the rates of the bound"
TABLE = "friedman"
N_SEEDS = 5
ROWS_PER_LAYER = (256, 512, 1024, 2048, 4096)
N_LAYERS = 64
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
N_TEST_ROWS = 10_000
# s of the learning rate t^(−s): in ((β+1)/(β+2), 1) for β = 1. The bound falls as T^(−a) with
# a < 1 − s, fastest for the smallest s.
DECAY = 0.7
SHARED = {
    "n_layers": N_LAYERS,
    # The theorem's residual blocks are functions of Φ, not of x.
    "n_features": (128, 0),
    "learning_rate": (1.0, DECAY),
    "sample_splitting": True,
    "l2_head": 1e-5,
    "l2_step": 1e-4,
}
RECIPES = {
    "gradient-swim": Recipe("RFRBoostRegressor", SHARED | {"strategy": "gradient"}),
    "dense-swim": Recipe("RFRBoostRegressor", SHARED | {"strategy": "greedy"}),
}
COLUMNS = ["model", "rows_per_layer", "layers", "seed", "excess_risk", "commit"]
# The labels of the horizontal axes.
AXES = {"layers": "layers T", "rows_per_layer": "rows per layer ñ"}
CONFIDENCE = 0.95


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, [TABLE], list(RECIPES), out="experiments-output/regret")


def run(arguments: argparse.Namespace) -> int:
    """Fit, measure, and write the rows, the exponents and the figure; 1 if a fit failed."""
    select("table", arguments.tables, [TABLE])
    models = select("model", arguments.models, list(RECIPES))
    require("matplotlib", "experiments", "The picture")
    jobs = [
        Job(f"rows-{n_rows}", TABLE, model, seed, RECIPES[model])
        for n_rows in ROWS_PER_LAYER
        for model in models
        for seed in range(N_SEEDS)
    ]
    results = run_jobs(
        jobs, boost_on_fresh_rows, arguments.out, arguments.jobs, mix_commits=arguments.mix_commits
    )
    failures = [result for result in results if result.scores is None]
    rows = excess_rows(results)
    made_with = provenances(results)
    write_table(arguments.out / "regret.csv", rows, made_with)
    report = write_report(arguments.out / "regret.md", markdown_report(rows, failures), made_with)
    if not rows.empty:
        draw_regret(rows, DECAY, arguments.out, made_with)
    print(report)
    return 1 if failures else 0


def boost_on_fresh_rows(job: Job) -> Scores:
    """Fit the deepest model once: its first t layers are a fit of t layers on t fresh samples."""
    rng = np.random.default_rng(job.fold)
    X, y = sample(rows_per_layer(job) * N_LAYERS, rng)
    X_test, _ = sample(N_TEST_ROWS, rng)
    model = build(job.recipe, len(y), job.fold)
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    stages = list(model.staged_predict(X_test))
    predicted = time.perf_counter()
    risks = {str(depth): excess_risk(stages[depth], X_test) for depth in DEPTHS}
    return Scores(
        # Of 10,000 rows only: predicting all of them takes as long as the fit.
        train_score=rmse(y[:N_TEST_ROWS], model.predict(X[:N_TEST_ROWS])),
        test_score=risks[str(N_LAYERS)],
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        details={"excess_risk": risks, "seed": job.fold},
    )


def rows_per_layer(job: Job) -> int:
    """ñ of a job."""
    return int(job.protocol.removeprefix("rows-"))


def excess_rows(results: list[Result]) -> pd.DataFrame:
    """One row per model, ñ, T and seed."""
    rows = [
        (r.job.model, rows_per_layer(r.job), int(depth), r.job.fold, risk, r.provenance.code)
        for r in results
        if r.scores is not None
        for depth, risk in r.scores.details["excess_risk"].items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def slope(rows: pd.DataFrame, against: str) -> float:
    """The exponent of the mean excess risk as a power of a column, from a least squares line."""
    means = rows.groupby(against)["excess_risk"].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


def markdown_report(rows: pd.DataFrame, failures: list[Result]) -> str:
    """The measured exponents and those of the bound."""
    lines = [
        {
            "model": label(model),
            "excess risk, least": part.groupby(COLUMNS[1:3])["excess_risk"].mean().min(),
            f"exponent in T, ñ = {ROWS_PER_LAYER[-1]}": slope(
                part[part["rows_per_layer"] == ROWS_PER_LAYER[-1]], "layers"
            ),
            "bound in T": -(1 - DECAY),
            f"exponent in ñ, T = {N_LAYERS}": slope(
                part[part["layers"] == N_LAYERS], "rows_per_layer"
            ),
            "bound in ñ": -0.5,
        }
        for model, part in rows.groupby("model", sort=False)
    ]
    text = "# Excess risk with sample splitting\n\n"
    text += (
        f"η_t = t^(−{DECAY}); means over {N_SEEDS} seeds; the bound's exponents for β = 1.\n"
        "The bound is a sum of terms: for fixed ñ the curve in T levels off at the term of ñ and\n"
        "the errors of the weak learners, so that its exponent is nearer to 0 than that of T.\n\n"
    )
    text += "".join(f"- failed: {r.job.protocol} {r.job.model}: {r.error}\n" for r in failures)
    return text + markdown_table(pd.DataFrame(lines))


def draw_regret(
    rows: pd.DataFrame, decay: float, out: Path, made_with: Iterable[Provenance]
) -> None:
    """Excess risk on logarithmic axes, with lines of the bound's slopes; one row per model."""
    import matplotlib
    from matplotlib.figure import Figure

    models = list(rows["model"].unique())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.9 * len(models)), layout="constrained")
        panels = figure.subplots(len(models), 2, squeeze=False, sharey=True)
        for (left, right), model in zip(panels, models, strict=True):
            part = rows[rows["model"] == model]
            draw_lines(left, part, "layers", "rows_per_layer", "ñ")
            draw_rate(left, part, "layers", decay - 1, f"rate $T^{{{decay - 1:.1f}}}$")
            draw_lines(right, part, "rows_per_layer", "layers", "T")
            draw_rate(right, part, "rows_per_layer", -0.5, "rate $ñ^{-1/2}$")
            left.set_ylabel(f"{label(model)}\nexcess risk (squared error)")
        figure.suptitle(
            "Excess risk above the Bayes risk, fresh rows for every layer, "
            f"$\\eta_t = t^{{-{decay}}}$ (mean and 95 % band over seeds)"
        )
        save(figure, out, "regret", made_with)


def draw_lines(axes: "Axes", rows: pd.DataFrame, x: str, by: str, symbol: str) -> None:
    """One line with its 95 % band for each value of ``by``, from light to dark."""
    import matplotlib
    from scipy import stats

    groups = list(rows.groupby(by))
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.15, 1.0, len(groups)))
    for (value, part), shade in zip(groups, shades, strict=True):
        risks = part.groupby(x)["excess_risk"]
        mean, count = risks.mean(), risks.size()
        half = stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * risks.std(ddof=1) / count**0.5
        axes.plot(
            mean.index, mean, color=shade, marker="o", markersize=3.5, label=f"{symbol} = {value}"
        )
        # The axis is logarithmic: the band must stay above zero.
        axes.fill_between(
            mean.index,
            (mean - half).clip(lower=mean / 10),
            mean + half,
            color=shade,
            alpha=0.2,
            linewidth=0,
        )
    ticks = sorted(rows[x].unique())
    axes.set(xscale="log", yscale="log", xlabel=AXES[x])
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(True)


def draw_rate(axes: "Axes", rows: pd.DataFrame, x: str, exponent: float, name: str) -> None:
    """A line of the bound's slope, drawn above the curves because its constant is not known."""
    means = rows.groupby([x, "rows_per_layer" if x == "layers" else "layers"])["excess_risk"].mean()
    ticks = np.array(sorted(rows[x].unique()), dtype=float)
    highest = means.groupby(x).max().to_numpy()
    rate = ticks**exponent
    axes.plot(ticks, 1.3 * np.max(highest / rate) * rate, color=INK, linestyle="--", label=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)
