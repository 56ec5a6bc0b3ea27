"""The ``circles`` command: the point cloud separation task of the paper.

Nine concentric rings of three classes have to become linearly separable in a representation of
width 2. Each of ten runs draws new rings; penalties and learning rates are chosen by a 5-fold grid
search on the training half. Writes a table of our accuracies and the published ones, and a figure
of the test points at every layer of RFRBoost and of the MLP.
"""

import argparse
from pathlib import Path

from experiments.commands.arguments import add_named_selection
from experiments.data.published import paper_file
from experiments.data.synthetic import rings_fold
from experiments.models.grids import combinations, grid
from experiments.models.scoring import Scores
from experiments.reports.circles import draw_clouds, markdown_report, run_rows
from experiments.requests import require, select
from experiments.runs.files import write_report, write_table
from experiments.runs.jobs import Job, provenances
from experiments.runs.pool import run_jobs
from experiments.runs.search import tuned_scores

NAME = "circles"
SUMMARY = "separate concentric circles, and draw the points at every layer"
PROTOCOL = "rings"
TABLE = "circles"
N_RUNS = 10
N_FOLDS = 5
# Many candidates classify every held-out point correctly, so that accuracy cannot rank them and may
# choose a head whose penalty has almost erased one direction of the plane.
CRITERION = "log loss"
PENALTIES = [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5]
GRIDS = {
    # The paper fixes the step's penalty at 1e-4; our steps need a smaller one, so it is searched.
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_named_selection(parser, [TABLE], list(GRIDS), out="experiments-output/circles")
    parser.add_argument(
        "--runs",
        type=int,
        choices=range(1, N_RUNS + 1),
        metavar="N",
        default=N_RUNS,
        help="number of runs, from 1 to 10 (default: %(default)s)",
    )
    parser.add_argument(
        "--published-runs",
        type=Path,
        metavar="FILE",
        help="the published ten runs (default: paper/concentric_circles_runs.csv beside the data)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Search, fit, score, and write the table and the figure; 1 if a run failed."""
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
    results = run_jobs(
        jobs, separate, arguments.out, arguments.jobs, mix_commits=arguments.mix_commits
    )
    good = [result for result in results if result.scores is not None]
    failures = [result for result in results if result.scores is None]
    rows = run_rows(good)
    text = markdown_report(rows, published, failures)
    write_table(arguments.out / "circles.csv", rows, provenances(good))
    report = write_report(arguments.out / "circles.md", text, provenances(good))
    draw_clouds([r for r in good if r.job.fold == arguments.runs - 1], arguments.out)
    print(report)
    return 1 if failures else 0


def separate(job: Job) -> Scores:
    """One run: the search on the training half of its rings, the score on the other half."""
    # Imported here, because importing scikit-learn would slow down every `--help`.
    from sklearn.model_selection import KFold

    folds = KFold(N_FOLDS, shuffle=True, random_state=job.fold)
    fold = rings_fold(job.fold)
    splits = list(folds.split(fold.X_train))
    return tuned_scores(job.recipe, fold, "classification", splits, seed=job.fold)
