"""Our refits beside the published runs: by dataset, by variant, and as text."""

import numpy as np
import pandas as pd

from experiments.datasets import known_tables
from experiments.jobs import Result
from experiments.published import Variant
from experiments.significance import holm, paired_t_p_value, signed_rank_p_value

# What makes ours "worse": a larger RMSE, a smaller accuracy.
WORSE_SIGN = {"regression": 1.0, "classification": -1.0}
# Published scores are stored in single precision: what differs less is equal.
STORED_DECIMALS = 6

HEADER = """\
# Published hyper-parameters, refitted

Score: RMSE for regression (lower is better), accuracy for classification (higher is better).
Means are over the folds that were run, ours and published alike.
`z` is how much worse ours is than published, in units of the published fold standard deviation:
the difference of the two fold means ÷ the standard deviation over all published folds (ddof = 1);
negative where ours is better, – where the published folds are all equal.
`p` of a dataset is that of a paired t-test, two-sided, over its folds: `difference` is the mean of
the fold by fold differences ours − published.
`agreement` is, as a mean over datasets, ours ÷ published for regression and ours − published for
classification. `better` and `worse` count the datasets where ours is, to six decimals; `p` of a
variant is that of a Wilcoxon signed-rank test, two-sided, on the differences of its datasets, and
`p Holm` the same corrected for the number of variants in the table. A small p says that a
difference is not chance, not that it is large. Seconds are the mean of one fit, on different
machines.
"""


def fold_rows(
    results: list[Result], published: pd.DataFrame, variants: tuple[Variant, ...]
) -> pd.DataFrame:
    """One row per good result, beside its published fold and the spread of all its folds."""
    ours = pd.DataFrame(
        [
            (r.job.dataset, r.job.model, r.job.fold, r.scores.test_score, r.scores.fit_seconds)
            for r in results
            if r.scores is not None
        ],
        columns=["dataset", "variant", "fold", "ours", "fit_seconds"],
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
    """One row per task, variant and dataset: the fold means and how far they are apart."""
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
    rows["p"] = rows.pop("p")  # last, after what it is the significance of
    return rows


def variant_rows(datasets: pd.DataFrame) -> pd.DataFrame:
    """One row per task and variant: the agreement over datasets, and the worst of them."""
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
    """The whole comparison as a text to read, failures first of all."""
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


def failure_list(failures: list[Result]) -> str:
    """One line for each failure, with the text of its error."""
    lines = [f"- {r.job.dataset} {r.job.model} fold {r.job.fold}: {r.error}" for r in failures]
    return "\n".join(lines) + "\n"


def markdown_table(frame: pd.DataFrame) -> str:
    """A frame as a markdown table, numbers with four decimals."""
    lines = [list(frame.columns), ["---"] * frame.shape[1]]
    lines += [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
    return "–" if np.isnan(value) else f"{round(value, 4) + 0.0:.4f}"
