"""The sections of the report: what was run, as tables, figures and the words around them."""

from typing import TYPE_CHECKING

import pandas as pd

from experiments.ablation import ablation_tables, twin_pairs
from experiments.beside import dataset_pairs, model_pairs, paired_folds
from experiments.drawings import boxes, critical_difference, score_boxes, twins
from experiments.errors import UsageError
from experiments.naming import in_order, label
from experiments.page import figure, folded, heading, paragraph, table
from experiments.pictures import svg_text
from experiments.results import searches
from experiments.significance import ALPHA
from experiments.sources import TASKS, without_twins
from experiments.summaries import (
    SCORE,
    Complete,
    complete_part,
    dataset_name,
    dataset_rows,
    left_out_text,
    summary_rows,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRING = (
    "Differences are ours − published: below zero is better for RMSE, above zero for accuracy. "
    "Over datasets: Wilcoxon's signed-rank test, Holm's correction over all models of both tasks. "
    "By dataset: a plain paired t test over the folds, uncorrected; by chance alone about one "
    f"dataset in twenty is below {ALPHA}, and more because folds share training rows. 'Clearly' "
    f"counts the datasets with p < {ALPHA} in that test. Seconds come from different machines."
)


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


DATASET_COLUMNS = ["model", "dataset", "name", "folds", "ours", "published", "difference", "p"]
AGREEMENT = {
    "regression": "Ours ÷ published RMSE, a dot a dataset: left of 1 ours is better.",
    "classification": "Ours − published accuracy, a dot a dataset: right of 0 ours is better.",
}


def agreement(rows: pd.DataFrame, task: str) -> "Figure":
    """How far ours are from the published scores, by model."""
    if task == "regression":
        values, axis = rows["ours"] / rows["published"], "ours ÷ published test RMSE"
    else:
        values, axis = rows["difference"], "ours − published test accuracy"
    wide = rows.assign(value=values).pivot(index="dataset", columns="model", values="value")
    title = f"{task.capitalize()}: our runs beside the published ones"
    return boxes(wide[in_order(list(wide.columns))], axis, title)


def run_section(ours: pd.DataFrame, published: pd.DataFrame, protocol: str) -> str:
    """Our own searches: who is best, and, where the protocol is the paper's, beside the paper."""
    text = paragraph(
        f"Nested cross-validation with searches of our own, protocol '{protocol}': "
        f"{searches(ours)} (in the paper: 100 trials on 5). Only datasets where every model has "
        "every fold count."
    )
    text += standings(ours, f"run-{protocol}")
    if protocol == "paper":
        text += heading("Beside the published runs of the same tables and folds")
        text += _paired(ours, published, "run")
    return text


def published_section(published: pd.DataFrame) -> str:
    """The paper's own tables and figures, made from its published runs."""
    text = paragraph("The paper's tables and figures, made by the same code from its own runs.")
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
            text += _standing(complete_part(without_twins(of_task, None), task), name)
            text += _twins(of_task, task, name)
        except UsageError as error:  # unfinished runs: the page says so and goes on
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


def _twins(runs: pd.DataFrame, task: str, name: str) -> str:
    pairs = twin_pairs(runs)
    if not pairs:
        return ""
    part = complete_part(runs[runs["model"].isin([m for pair in pairs for m in pair])], task)
    caption = "SWIM against i.i.d. features, a dot a dataset; on the line both are equal."
    return _svg(twins(part, pairs), f"{name}-twins-{task}", caption)


def _svg(drawing: "Figure", name: str, caption: str) -> str:
    return figure(svg_text(drawing), name, caption)
