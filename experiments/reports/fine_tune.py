"""Results of the ``fine-tune`` command as rows, as Markdown with a test, and as a figure."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.data.large_tables import LARGE_TABLES
from experiments.data.tables import known_table
from experiments.models.naming import NETWORK, RFRBOOST
from experiments.models.scoring import Scores
from experiments.reports.figures import COLOURS, INK, STYLE, save
from experiments.reports.markdown import markdown_table
from experiments.reports.significance import ALPHA, p_value_text, signed_rank_p_value
from experiments.runs.fine_tune import BOOSTED, RANDOM, STARTS
from experiments.runs.jobs import Result
from experiments.runs.provenance import Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The label and colour of each start in the figure.
LOOKS = {
    "boosted": ("RFRBoost, then trained", COLOURS[RFRBOOST]),
    "random": ("random, then trained", COLOURS[NETWORK]),
}
# Panels in one row of the figure, at most.
MOST_ACROSS = 4
SCORES = {"regression": "test RMSE", "classification": "test accuracy"}
# With fewer tables Wilcoxon's test cannot reach p < 0.05.
FEWEST_TABLES = 6
COLUMNS = ["table", "task", "start", "seed", "epoch", "score", "chosen", "commit"]


def draw_curves(rows: pd.DataFrame, out: Path, made_with: Iterable[Provenance]) -> None:
    """One panel per table: mean test score after every epoch, and the range over seeds."""
    import matplotlib
    from matplotlib.figure import Figure

    tables = list(rows.groupby("table", sort=False))
    across = min(MOST_ACROSS, len(tables))
    down = math.ceil(len(tables) / across)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * across, 2.7 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for axes, (name, part) in zip(panels, tables, strict=False):
            draw_table(axes, str(name), part)
        for axes in panels[len(tables) :]:
            axes.remove()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        figure.suptitle("End-to-end training from a boosted and from a random start")
        save(figure, out, "fine-tune", made_with)


def draw_table(axes: "Axes", name: str, rows: pd.DataFrame) -> None:
    """One table: a line per start, and the score of RFRBoost before training."""
    for start, part in rows.groupby("start", sort=False):
        words, colour = LOOKS[str(start)]
        scores = part.groupby("epoch")["score"]
        mean = scores.mean()
        axes.plot(mean.index, mean, color=colour, label=words)
        axes.fill_between(mean.index, scores.min(), scores.max(), color=colour, alpha=0.2, lw=0)
        if start == "boosted":
            axes.axhline(mean.iloc[0], color=INK, ls=":", lw=1, label="RFRBoost, untrained")
    # The vertical range is that of the later epochs: the first ones may be far worse.
    late = rows["epoch"] >= rows["epoch"].max() / 2
    begin = rows["epoch"] == 0
    seen = rows[late | (begin & (rows["start"] == "boosted"))]["score"]
    margin = 0.5 * (seen.max() - seen.min() or 1.0)
    axes.set(
        title=name,
        xlabel="epochs",
        ylabel=SCORES[rows["task"].iloc[0]],
        ylim=(seen.min() - margin, seen.max() + margin),
    )
    axes.grid(True)


def table_name(table: int | str) -> str:
    """The name of a table."""
    return LARGE_TABLES[table].name if table in LARGE_TABLES else known_table(table).name


def scores_of(result: Result) -> Scores:
    """The scores of a good result."""
    assert result.scores is not None
    return result.scores


def epoch_rows(results: list[Result]) -> pd.DataFrame:
    """One row per table, start, seed and epoch; ``chosen`` marks the epoch that is reported."""
    rows = [
        (
            table_name(r.job.dataset),
            scores_of(r).details["task"],
            r.job.model,
            r.job.fold,
            epoch,
            score,
            epoch == scores_of(r).details["best_epoch"],
            r.provenance.code,
        )
        for r in results
        for epoch, score in enumerate(scores_of(r).details["curve"])
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def markdown_report(results: list[Result], failures: list[Result], n_epochs: int) -> str:
    """Scores before and after training, and whether the hypothesis holds."""
    text = (
        "# End-to-end training from a boosted and from a random start\n\n"
        "Test RMSE (in standard deviations of y) or accuracy, means over seeds; the same\n"
        f"network, {n_epochs} epochs of Adam, learning rate and epoch chosen by held-out rows.\n\n"
    )
    text += "".join(
        f"- failed: {r.job.dataset} {r.job.model} {r.job.fold}: {r.error}\n" for r in failures
    )
    lines = table_rows(results)
    shown = lines.drop(columns="gain", errors="ignore")
    return text + markdown_table(shown) + "\n" + verdict(lines)


def table_rows(results: list[Result]) -> pd.DataFrame:
    """One row per table that has both starts."""
    lines = []
    for table in dict.fromkeys(r.job.dataset for r in results):
        runs = {
            start: [
                scores_of(r) for r in results if r.job.dataset == table and r.job.model == start
            ]
            for start in STARTS
        }
        if all(runs.values()):
            lines.append({"table": table_name(table), **table_row(runs)})
    return pd.DataFrame(lines)


def table_row(runs: dict[str, list[Scores]]) -> dict[str, object]:
    """One table; ``gain`` is (random − boosted) ÷ (random + boosted) of the final errors."""
    regression = runs[BOOSTED][0].details["task"] == "regression"
    ends = {start: float(np.mean([s.test_score for s in runs[start]])) for start in STARTS}
    ours, theirs = (ends[s] if regression else 1 - ends[s] for s in (BOOSTED, RANDOM))
    epochs = {s: float(np.mean([r.details["best_epoch"] for r in runs[s]])) for s in STARTS}
    return {
        "score": "RMSE" if regression else "accuracy",
        "boosted": float(np.mean([s.details["curve"][0] for s in runs[BOOSTED]])),
        "boosted, then trained": ends[BOOSTED],
        "random, then trained": ends[RANDOM],
        "epochs, boosted": epochs[BOOSTED],
        "epochs, random": epochs[RANDOM],
        "gain": (theirs - ours) / ((theirs + ours) or 1.0),
    }


def verdict(lines: pd.DataFrame) -> str:
    """Whether the boosted start ends better: number of tables, and Wilcoxon's test."""
    if lines.empty:
        return "No table has both starts.\n"
    better = int((lines["gain"] > 0).sum())
    text = f"The boosted start ends ahead on {better} of {len(lines)} tables"
    if len(lines) < FEWEST_TABLES:
        return f"{text}: too few for a test.\n"
    p = signed_rank_p_value(lines["gain"].to_numpy())
    holds = p < ALPHA and better > len(lines) / 2
    return (
        f"{text} (Wilcoxon's signed-rank test of relative errors: p {p_value_text(p)}): the "
        "hypothesis that boosting is the better start "
        f"{'holds' if holds else 'is not borne out'} here.\n"
    )
