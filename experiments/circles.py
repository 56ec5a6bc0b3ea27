"""The ``circles`` command: the point cloud separation task of the paper.

Nine concentric rings of three classes have to become linearly separable in a representation of
width 2. Ten runs with rings of their own; penalties and learning rates by 5-fold grid search on
the training half. Writes the accuracies beside the published ones, and the test points at every
layer of RFRBoost and of the MLP.
"""

import argparse
from pathlib import Path

import pandas as pd

from experiments.arguments import add_named_selection, select
from experiments.clouds import draw_clouds
from experiments.comparison import markdown_table
from experiments.files import write_atomically
from experiments.grid import combinations, grid, tuned_scores
from experiments.jobs import Job, Result
from experiments.libraries import require
from experiments.naming import label
from experiments.paper_files import paper_file
from experiments.pool import run_jobs
from experiments.rings import rings_fold
from experiments.scoring import Scores

NAME = "circles"
SUMMARY = "separate concentric circles, and draw the points at every layer"
PROTOCOL = "rings"
TABLE = "circles"
N_RUNS = 10
N_FOLDS = 5

# Many candidates are right on every held-out point, so that accuracy cannot tell them apart and
# lets a head through whose penalty has all but erased one direction of the plane.
CRITERION = "log loss"
PENALTIES = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
GRIDS = {
    # The paper keeps the step's penalty at 1e-4; ours wants less, so it is searched as well.
    "rfrboost-swim": grid(
        "RFRBoostClassifier",
        {
            "n_layers": 3,
            "n_features": (512, 512),
            "feature_scale": 1.0,
            "learning_rate": 1.0,
            "normalize": True,
        },
        combinations({"l2_step": [1e-4, 1e-5, 1e-6], "l2_head": PENALTIES}),
        CRITERION,
    ),
    "rfnn-swim": grid(
        "RFNNClassifier",
        {"n_features": 512, "feature_scale": 1.0},
        combinations({"l2_head": PENALTIES}),
        CRITERION,
    ),
    "logistic": grid(
        "LogisticRegression", {}, combinations({"l2_head": PENALTIES[:-1]}), CRITERION
    ),
    "mlp": grid(
        "MLPResNetClassifier",
        {
            "hidden_dim": None,
            "bottleneck_dim": 512,
            "n_blocks": 3,
            "n_epochs": 30,
            "end_lr_factor": 0.01,
            "weight_decay": 1e-5,
            "batch_size": 128,
            "activation": "tanh",
        },
        combinations({"lr": [1e-1, 1e-2, 1e-3, 1e-4, 1e-5]}),
        CRITERION,
    ),
}
PUBLISHED_NAMES = {
    "rfrboost-swim": "RFRBoost SWIM",
    "rfnn-swim": "RFNN",
    "logistic": "Logistic Regression",
    "mlp": "End2EndMLP",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, [TABLE], list(GRIDS), out="experiments-output/circles")
    parser.add_argument(
        "--runs",
        type=int,
        choices=range(1, N_RUNS + 1),
        metavar="N",
        default=N_RUNS,
        help="how many of the ten runs, e.g. 1 for a quick look (default: %(default)s)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published ten runs (default: paper/concentric_circles_runs.csv beside the data)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Search, fit, score, write the table and the picture; 1 when a run failed."""
    select("table", arguments.tables, [TABLE])
    models = select("model", arguments.models, list(GRIDS))
    if "mlp" in models:
        require("torch", "torch", "The MLP ResNet")
    require("matplotlib", "experiments", "The picture")
    published = paper_file(arguments.published_runs, "concentric_circles_runs.csv")

    jobs = [
        Job(PROTOCOL, TABLE, model, k, GRIDS[model])
        for model in models
        for k in range(arguments.runs)
    ]
    results = run_jobs(jobs, separate, arguments.out, arguments.jobs)
    good = [result for result in results if result.scores is not None]
    failures = [result for result in results if result.scores is None]
    report = markdown_report(run_rows(good), published, failures)
    write_atomically(arguments.out / "circles.csv", run_rows(good).to_csv(index=False))
    write_atomically(arguments.out / "circles.md", report)
    draw_clouds([r for r in good if r.job.fold == arguments.runs - 1], arguments.out)
    print(report)
    return 1 if failures else 0


def separate(job: Job) -> Scores:
    """One run: its rings, the search on the training half, the score on the other."""
    # Here and not above, as in the other commands: it would slow down every `--help`.
    from sklearn.model_selection import KFold

    folds = KFold(N_FOLDS, shuffle=True, random_state=job.fold)
    fold = rings_fold(job.fold)
    splits = list(folds.split(fold.X_train))
    return tuned_scores(job.recipe, fold, "classification", splits, seed=job.fold)


def run_rows(results: list[Result]) -> pd.DataFrame:
    """One row a run, with what the search chose."""
    return pd.DataFrame(
        [
            {
                "model": r.job.model,
                "run": r.job.fold,
                "accuracy": r.scores.test_score,
                "train_accuracy": r.scores.train_score,
                "fit_seconds": r.scores.fit_seconds,
                "chosen": " ".join(f"{k}={v:g}" for k, v in r.scores.details["chosen"].items()),
            }
            for r in results
        ],
        columns=["model", "run", "accuracy", "train_accuracy", "fit_seconds", "chosen"],
    )


def markdown_report(rows: pd.DataFrame, published: Path | None, failures: list[Result]) -> str:
    """The accuracies, ours beside the published ones, as a text to read."""
    text = "# Concentric circles\n\nTest accuracy; spreads are population standard deviations.\n\n"
    text += "".join(f"- failed: {r.job.model} run {r.job.fold}: {r.error}\n" for r in failures)
    theirs = None if published is None else pd.read_csv(published)
    lines = [summary_row(model, part, theirs) for model, part in rows.groupby("model", sort=False)]
    return text + markdown_table(pd.DataFrame(lines))


def summary_row(
    model: str, runs: pd.DataFrame, published: pd.DataFrame | None
) -> dict[str, object]:
    """One model: mean, spread and worst run, and the published mean and spread."""
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
