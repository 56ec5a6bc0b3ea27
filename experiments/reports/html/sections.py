"""The sections of the HTML page: tables, figures and the text around them.

Our runs and the published ones are paired by fold and compared by dataset (paired t test) and over
datasets (Wilcoxon's signed-rank test). The folders of other commands are shown as they are.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.data.published import paper_file
from experiments.models.naming import in_order, label
from experiments.reports.ablation import ablation_tables, feature_pairs
from experiments.reports.circles import summary_row
from experiments.reports.figures import (
    boxes,
    critical_difference,
    score_boxes,
    svg_text,
    swim_against_iid,
)
from experiments.reports.html.page import figure, folded, heading, paragraph, table
from experiments.reports.significance import ALPHA, holm, paired_t_p_value, signed_rank_p_value
from experiments.reports.summaries import (
    LOWER_IS_BETTER,
    SCORE,
    STORED_DECIMALS,
    TASKS,
    Complete,
    complete_part,
    dataset_name,
    dataset_rows,
    left_out_text,
    summary_rows,
    without_iid,
)
from experiments.requests import UsageError
from experiments.runs.files import read_table, table_footer
from experiments.runs.jobs import searches

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLD = ["task", "dataset", "model", "fold"]
PAIRING = (
    "Differences are ours − published: below zero is better for RMSE, above zero for accuracy. "
    "Over datasets: Wilcoxon's signed-rank test, Holm's correction over all models of both tasks. "
    "By dataset: a plain paired t test over the folds, uncorrected; by chance alone about one "
    f"dataset in twenty is below {ALPHA}, and more because folds share training rows. 'Clearly' "
    f"counts the datasets with p < {ALPHA} in that test. Seconds come from different machines."
)
DATASET_COLUMNS = ["model", "dataset", "name", "folds", "ours", "published", "difference", "p"]
AGREEMENT = {
    "regression": "Ours ÷ published RMSE, one dot per dataset: left of 1 ours is better.",
    "classification": "Ours − published accuracy, one dot per dataset: right of 0 ours is better.",
}
CIRCLES = "circles"
# The folders of other commands: title, description, and caption of their figures.
FOLDERS = {
    CIRCLES: (
        "Concentric circles",
        "Nine rings in three classes, half of 10,000 points for training. The representation has "
        "two dimensions, so that every layer can be drawn.",
        "The test points at every layer",
    ),
    "large-scale": (
        "Larger tables",
        "Searches on a hold-out at growing numbers of training rows, several seeds each.",
        "Score and seconds against the number of training rows",
    ),
    "regret": (
        "The regret bound as an experiment",
        "A problem of known Bayes risk, fresh rows for each layer and a decreasing learning rate.",
        "Excess risk against the number of layers and the rows per layer",
    ),
}


def paired_folds(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """The folds that both have, one row each, with our score and the published one."""
    measured = ["test_score", "fit_seconds"]
    pairs = ours[FOLD + measured].merge(
        published[FOLD + measured], on=FOLD, suffixes=("", "_published"), validate="one_to_one"
    )
    # Smaller differences are rounding of the stored scores.
    difference = (pairs["test_score"] - pairs["test_score_published"]).round(STORED_DECIMALS)
    return pairs.assign(difference=difference)


def dataset_pairs(folds: pd.DataFrame) -> pd.DataFrame:
    """One row per task, model and dataset: both means, their difference and its paired t test."""
    rows = (
        folds.groupby(["task", "model", "dataset"])
        .agg(
            folds=("fold", "size"),
            ours=("test_score", "mean"),
            published=("test_score_published", "mean"),
            difference=("difference", "mean"),
            p=("difference", lambda differences: paired_t_p_value(differences.to_numpy())),
            fit_seconds=("fit_seconds", "mean"),
            published_fit_seconds=("fit_seconds_published", "mean"),
        )
        .reset_index()
    )
    rows["name"] = [dataset_name(dataset) for dataset in rows["dataset"]]
    sign = [-1.0 if LOWER_IS_BETTER[task] else 1.0 for task in rows["task"]]
    rows["gain"] = (sign * rows["difference"]).round(STORED_DECIMALS)
    return rows


def model_pairs(datasets: pd.DataFrame) -> pd.DataFrame:
    """One row per task and model; the signed-rank tests are corrected over all rows."""
    grouped = dict(iter(datasets.groupby(["task", "model"])))
    keys = [(task, m) for task in TASKS for m in in_order([m for t, m in grouped if t == task])]
    p_values = holm([signed_rank_p_value(grouped[key]["gain"].to_numpy()) for key in keys])
    return pd.DataFrame(
        [_model_pair(*key, grouped[key], p) for key, p in zip(keys, p_values, strict=True)]
    )


def _model_pair(task: str, model: str, rows: pd.DataFrame, p: float) -> dict[str, object]:
    told_apart = rows["p"] < ALPHA
    return {
        "task": task,
        "model": label(model),
        "datasets": len(rows),
        "ours": rows["ours"].mean(),
        "published": rows["published"].mean(),
        "difference": rows["difference"].mean(),
        "p": p,
        "better": int((rows["gain"] > 0).sum()),
        "worse": int((rows["gain"] < 0).sum()),
        "clearly better": int((told_apart & (rows["gain"] > 0)).sum()),
        "clearly worse": int((told_apart & (rows["gain"] < 0)).sum()),
        "fit s": rows["fit_seconds"].mean(),
        "published fit s": rows["published_fit_seconds"].mean(),
    }


def replay_section(ours: pd.DataFrame, published: pd.DataFrame) -> str:
    """Our refits of the published runs, model by model and dataset by dataset."""
    text = paragraph(
        "Each published fold was fitted again by our estimators with the hyper-parameters "
        "published for it, on the same rows: no search, only the code differs."
    )
    return text + _paired(ours, published, "replay")


def _paired(ours: pd.DataFrame, published: pd.DataFrame, name: str) -> str:
    folds = paired_folds(ours, published)
    if folds.empty:
        return paragraph("None of these runs has a published counterpart.")
    datasets = dataset_pairs(folds)
    models = model_pairs(datasets)
    told_apart = int((models["p"] < ALPHA).sum())
    text = paragraph(
        f"{len(folds)} fits have a published counterpart. Over datasets, {told_apart} of "
        f"{len(models)} models differ significantly from it."
    )
    text += paragraph(PAIRING, "soft")
    for task in models["task"].unique():
        rows = datasets[datasets["task"] == task]
        text += heading(f"{task.capitalize()} ({SCORE[task]})")
        text += table(models[models["task"] == task].drop(columns="task"))
        text += _svg(agreement(rows, task), f"{name}-agreement-{task}", AGREEMENT[task])
        text += heading(f"{task.capitalize()}, dataset by dataset")
        text += table(rows.assign(model=rows["model"].map(label))[DATASET_COLUMNS])
    return text


def agreement(rows: pd.DataFrame, task: str) -> "Figure":
    """Box plots by model of our scores relative to the published ones."""
    if task == "regression":
        values = rows["ours"] / rows["published"]
        axis = "ours ÷ published test RMSE"
    else:
        values = rows["difference"]
        axis = "ours − published test accuracy"
    wide = rows.assign(value=values).pivot(index="dataset", columns="model", values="value")
    title = f"{task.capitalize()}: our runs and the published ones"
    return boxes(wide[in_order(list(wide.columns))], axis, title)


def run_section(ours: pd.DataFrame, published: pd.DataFrame, protocol: str) -> str:
    """Our searches: a ranking and, under "paper", a comparison with the published runs."""
    text = paragraph(
        f"Nested cross-validation with our searches, protocol '{protocol}': "
        f"{searches(ours)} (in the paper: 100 trials on 5). Only datasets where every model has "
        "every fold are averaged."
    )
    text += standings(ours, f"run-{protocol}")
    if protocol == "paper":
        text += heading("Comparison with the published runs of the same tables and folds")
        text += _paired(ours, published, "run")
    return text


def published_section(published: pd.DataFrame) -> str:
    """The paper's tables and figures, made from its published runs."""
    text = paragraph(
        "The paper's tables and figures, made by the same code from the published runs."
    )
    text += standings(published, "published")
    for title, rows in ablation_tables(published)[0].items():
        text += heading(title) + table(rows)
    return text


def standings(runs: pd.DataFrame, name: str) -> str:
    """Summary, diagrams and the dataset-wise scores of both tasks."""
    text = ""
    for task in TASKS:
        of_task = runs[runs["task"] == task]
        if of_task.empty:
            continue
        text += heading(task.capitalize())
        try:
            text += _standing(complete_part(without_iid(of_task, None), task), name)
            text += _pairs(of_task, task, name)
        except UsageError as error:  # incomplete runs: the page says so
            text += paragraph(str(error))
    return text


def _standing(part: Complete, name: str) -> str:
    summary = summary_rows(part).rename(
        columns={
            "mean_score": f"mean {SCORE[part.task]}",
            "mean_rank": "mean rank",
            "fit_seconds": "fit seconds",
        }
    )
    summary["model"] = summary.pop("label")
    text = table(summary.drop(columns="task"))
    if part.left_out:
        text += paragraph(left_out_text(part))
    if len(part.models) > 1:
        caption = "Average ranks; a bar joins models without a significant difference."
        text += _svg(critical_difference(part), f"{name}-ranks-{part.task}", caption)
    caption = "Each dot is a dataset; the boxes summarise each model."
    text += _svg(score_boxes(part), f"{name}-scores-{part.task}", caption)
    rows = dataset_rows(part)
    wide = rows.assign(model=rows["model"].map(label)).pivot(
        index="dataset", columns="model", values="mean"
    )[[label(model) for model in part.models]]
    wide = wide.rename_axis(columns=None).reset_index()
    wide.insert(1, "name", [dataset_name(dataset) for dataset in wide["dataset"]])
    return text + folded(f"Mean {SCORE[part.task]} by dataset", table(wide))


def _pairs(runs: pd.DataFrame, task: str, name: str) -> str:
    pairs = feature_pairs(runs)
    if not pairs:
        return ""
    part = complete_part(runs[runs["model"].isin([m for pair in pairs for m in pair])], task)
    caption = "SWIM against i.i.d. features, one dot per dataset; on the line both are equal."
    return _svg(swim_against_iid(part, pairs), f"{name}-swim-iid-{task}", caption)


def _svg(drawing: "Figure", name: str, caption: str) -> str:
    return figure(svg_text(drawing), name, caption)


def folder_sections(out: Path) -> dict[str, str]:
    """The sections of the folders that exist and are not empty, by title."""
    found = {}
    for name, (title, words, caption) in FOLDERS.items():
        content = _content(out / name, caption)
        if content:
            found[title] = paragraph(words) + content
    return found


def _content(folder: Path, caption: str) -> str:
    """All figures and tables of a folder; circles also have a summary with the published runs."""
    text = ""
    if folder.name == CIRCLES and (folder / "circles.csv").is_file():
        text += circles_summary(read_table(folder / "circles.csv"))
    for path in sorted(folder.glob("*.svg")):
        drawing = path.read_text(encoding="utf-8")
        text += figure(drawing, f"{folder.name}-{path.stem}", f"{caption} ({path.stem}).")
    for path in sorted(folder.glob("*.csv")):
        text += folded(path.name, table(read_table(path)) + paragraph(table_footer(path), "soft"))
    return text


def circles_summary(runs: pd.DataFrame) -> str:
    """Mean and standard deviation of each model's accuracy, ours and published."""
    path = paper_file(None, "concentric_circles_runs.csv")
    published = None if path is None else pd.read_csv(path)
    rows = [summary_row(model, part, published) for model, part in runs.groupby("model")]
    return table(pd.DataFrame(rows))
