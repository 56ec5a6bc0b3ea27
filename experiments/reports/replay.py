"""Results of the ``replay`` command: our refits and the published runs, as rows and Markdown."""

import numpy as np
import pandas as pd

from experiments.data.tables import known_tables
from experiments.models.variants import Variant
from experiments.reports.markdown import failure_list, markdown_table
from experiments.reports.significance import holm, paired_t_p_value, signed_rank_p_value
from experiments.reports.summaries import STORED_DECIMALS, WORSE_SIGN
from experiments.runs.jobs import Result

HEADER = """\
# Published hyper-parameters, refitted

Score: RMSE for regression (lower is better), accuracy for classification (higher is better).
Means are over the folds that were run, ours and published alike.
`z` says how much worse ours is than published: the difference of the two fold means ÷ the standard
deviation over all published folds (ddof = 1); negative if ours is better, – if the published folds
are all equal.
`p` of a dataset is that of a two-sided paired t-test over its folds; `difference` is the mean of
ours − published over folds.
`agreement` is a mean over datasets: of ours ÷ published for regression, of ours − published for
classification. `better` and `worse` count the datasets where ours is better or worse, to six
decimals. `p` of a variant is that of a two-sided Wilcoxon signed-rank test on the differences of
its datasets; `p Holm` is corrected for the number of variants in the table. A small p says that a
difference is not chance, not that it is large. Seconds are the mean of one fit, on different
machines.
"""

# The columns of the per-fold file.
FOLD_COLUMNS = [
    "task",
    "variant",
    "dataset",
    "fold",
    "ours",
    "published",
    "fit_seconds",
    "published_fit_seconds",
    "commit",
]


def fold_rows(
    results: list[Result], published: pd.DataFrame, variants: tuple[Variant, ...]
) -> pd.DataFrame:
    """One row per good result, with its published fold and the deviation of all published folds."""
    ours = pd.DataFrame(
        [
            (
                r.job.dataset,
                r.job.model,
                r.job.fold,
                r.scores.test_score,
                r.scores.fit_seconds,
                r.provenance.code,
            )
            for r in results
            if r.scores is not None
        ],
        columns=["dataset", "variant", "fold", "ours", "fit_seconds", "commit"],
    )
    names = pd.DataFrame(
        [(v.task, v.published, v.name) for v in variants], columns=["task", "model", "variant"]
    )
    theirs = published.merge(names, on=["task", "model"]).rename(
        columns={"test_score": "published", "fit_seconds": "published_fit_seconds"}
    )
    scores = theirs.groupby(["dataset", "variant"])["published"]
    theirs["published_std"] = scores.transform("std", ddof=1)
    return ours.merge(theirs, on=["dataset", "variant", "fold"], validate="one_to_one")


def dataset_rows(folds: pd.DataFrame) -> pd.DataFrame:
    """One row per task, variant and dataset: our mean, the published mean, their difference."""
    folds = folds.assign(fold_difference=folds["ours"] - folds["published"])
    grouped = folds.groupby(["task", "variant", "dataset"], sort=False)
    rows = grouped.agg(
        folds=("fold", "size"),
        ours=("ours", "mean"),
        published=("published", "mean"),
        published_std=("published_std", "first"),
        fit_seconds=("fit_seconds", "mean"),
        published_fit_seconds=("published_fit_seconds", "mean"),
        p=("fold_difference", paired_t_p_value),
    ).reset_index()
    rows.insert(3, "name", [known_tables()[dataset].name for dataset in rows["dataset"]])
    rows["ratio"] = rows["ours"] / rows["published"]
    rows["difference"] = rows["ours"] - rows["published"]
    spread = rows["published_std"].where(rows["published_std"] > 0)
    rows["z"] = rows["task"].map(WORSE_SIGN).astype(float) * rows["difference"] / spread
    rows["p"] = rows.pop("p")  # moved to the end, after the difference that it tests
    return rows


def variant_rows(datasets: pd.DataFrame) -> pd.DataFrame:
    """One row per task and variant: the agreement over datasets, and the worst dataset."""
    rows = pd.DataFrame(
        [
            _variant_row(*key, rows)
            for key, rows in datasets.groupby(["task", "variant"], sort=False)
        ]
    )
    rows.insert(rows.columns.get_loc("p") + 1, "p Holm", holm(list(rows["p"])))
    return rows


def _variant_row(task: str, variant: str, rows: pd.DataFrame) -> dict[str, object]:
    worst = rows.loc[rows["z"].fillna(-np.inf).idxmax()]
    differences = rows["difference"].round(STORED_DECIMALS)
    worse_by = WORSE_SIGN[task] * differences
    return {
        "task": task,
        "variant": variant,
        "datasets": len(rows),
        "agreement": rows["ratio" if task == "regression" else "difference"].mean(),
        "better": int((worse_by < 0).sum()),
        "worse": int((worse_by > 0).sum()),
        "p": signed_rank_p_value(differences),
        "worst dataset": worst["name"],
        "worst z": worst["z"],
        "fit s": rows["fit_seconds"].mean(),
        "published fit s": rows["published_fit_seconds"].mean(),
    }


def markdown_report(datasets: pd.DataFrame, failures: list[Result]) -> str:
    """The whole comparison, failures first."""
    parts = [HEADER]
    if failures:
        parts.append(
            f"## Failed: {len(failures)} fits, in no mean below\n\n" + failure_list(failures)
        )
    if not datasets.empty:
        parts.append("## By variant\n\n" + markdown_table(variant_rows(datasets)))
    for (task, variant), rows in datasets.groupby(["task", "variant"], sort=False):
        agreement = "ratio" if task == "regression" else "difference"
        columns = ["dataset", "name", "folds", "ours", "published", "published_std"]
        columns += list(dict.fromkeys((agreement, "difference", "z", "p")))
        parts.append(f"## {variant}, {task}\n\n" + markdown_table(rows[columns]))
    return "\n".join(parts)
