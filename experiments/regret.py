"""The ``regret`` command: the excess-risk bound of the theory as an experiment.

A problem of known Bayes risk, fresh rows for every layer and learning rates c·t^(−s), as the
theorem assumes. The excess risk is drawn against the layers T and against the rows a layer ñ,
beside the rates T^(−β(1−s)), with β = 1, and ñ^(−1/2) of the bound.
"""

import argparse
import time

import numpy as np
import pandas as pd

from experiments.arguments import add_named_selection, select
from experiments.comparison import markdown_table
from experiments.files import write_atomically
from experiments.friedman import excess_risk, sample
from experiments.jobs import Job, Result
from experiments.libraries import require, versions
from experiments.models import Recipe, build
from experiments.naming import label
from experiments.pool import run_jobs
from experiments.regret_curves import draw_regret
from experiments.scoring import Scores, rmse

NAME = "regret"
SUMMARY = "excess risk against layers and rows a layer, beside the bound's rates"
TABLE = "friedman"
N_SEEDS = 5
ROWS_A_LAYER = (256, 512, 1024, 2048, 4096)
N_LAYERS = 64
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
N_TEST_ROWS = 10_000
# In ((β+1)/(β+2), 1) for β = 1: the smallest s has the fastest rate T^(−a), a < 1 − s.
DECAY = 0.7

SHARED = {
    "n_layers": N_LAYERS,
    # The theorem's residual blocks see Φ and not x.
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
COLUMNS = ["model", "rows_a_layer", "layers", "seed", "excess_risk"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, [TABLE], list(RECIPES), out="experiments-output/regret")


def run(arguments: argparse.Namespace) -> int:
    """Fit, measure, write the rows, the rates and the figure; 1 when a fit failed."""
    select("table", arguments.tables, [TABLE])
    models = select("model", arguments.models, list(RECIPES))
    require("matplotlib", "experiments", "The picture")
    jobs = [
        Job(f"rows-{n_rows}", TABLE, model, seed, RECIPES[model])
        for n_rows in ROWS_A_LAYER
        for model in models
        for seed in range(N_SEEDS)
    ]
    results = run_jobs(jobs, boost_on_fresh_rows, arguments.out, arguments.jobs)
    failures = [result for result in results if result.scores is None]
    rows = excess_rows(results)
    report = markdown_report(rows, failures)
    write_atomically(arguments.out / "regret.csv", rows.to_csv(index=False))
    write_atomically(arguments.out / "regret.md", report)
    if not rows.empty:
        draw_regret(rows, DECAY, arguments.out)
    print(report)
    return 1 if failures else 0


def boost_on_fresh_rows(job: Job) -> Scores:
    """One fit of the deepest model; its first t layers are a fit of t layers on t parts."""
    rng = np.random.default_rng(job.fold)
    X, y = sample(rows_a_layer(job) * N_LAYERS, rng)
    X_test, _ = sample(N_TEST_ROWS, rng)
    model = build(job.recipe, len(y), job.fold)
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    stages = list(model.staged_predict(X_test))
    predicted = time.perf_counter()
    risks = {str(depth): excess_risk(stages[depth], X_test) for depth in DEPTHS}
    return Scores(
        # Of some rows: to predict them all would take as long as the fit.
        train_score=rmse(y[:N_TEST_ROWS], model.predict(X[:N_TEST_ROWS])),
        test_score=risks[str(N_LAYERS)],
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        details={"excess_risk": risks, "seed": job.fold, "versions": versions()},
    )


def rows_a_layer(job: Job) -> int:
    """ñ of a job."""
    return int(job.protocol.removeprefix("rows-"))


def excess_rows(results: list[Result]) -> pd.DataFrame:
    """One row per model, ñ, T and seed."""
    rows = [
        (r.job.model, rows_a_layer(r.job), int(depth), r.job.fold, risk)
        for r in results
        if r.scores is not None
        for depth, risk in r.scores.details["excess_risk"].items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def slope(rows: pd.DataFrame, against: str) -> float:
    """The exponent of the excess risk in a column: the least squares line of logarithms."""
    means = rows.groupby(against)["excess_risk"].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


def markdown_report(rows: pd.DataFrame, failures: list[Result]) -> str:
    """The measured exponents beside those of the bound."""
    lines = [
        {
            "model": label(model),
            "excess risk, least": part.groupby(COLUMNS[1:3])["excess_risk"].mean().min(),
            f"exponent in T, ñ = {ROWS_A_LAYER[-1]}": slope(
                part[part["rows_a_layer"] == ROWS_A_LAYER[-1]], "layers"
            ),
            "bound in T": -(1 - DECAY),
            f"exponent in ñ, T = {N_LAYERS}": slope(
                part[part["layers"] == N_LAYERS], "rows_a_layer"
            ),
            "bound in ñ": -0.5,
        }
        for model, part in rows.groupby("model", sort=False)
    ]
    text = "# Excess risk with sample splitting\n\n"
    text += (
        f"η_t = t^(−{DECAY}); means over {N_SEEDS} seeds; the bound's exponents for β = 1.\n"
        "The bound is a sum: for one ñ the curve in T levels off at its other terms, that of ñ\n"
        "and the errors of the weak learners, so its exponent is nearer to 0 than the T term's.\n\n"
    )
    text += "".join(f"- failed: {r.job.protocol} {r.job.model}: {r.error}\n" for r in failures)
    return text + markdown_table(pd.DataFrame(lines))
