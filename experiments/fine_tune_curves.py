"""The figure of the ``fine-tune`` command: a panel a table, score against epochs."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.naming import NETWORK, RFRBOOST
from experiments.pictures import COLOURS, INK, STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: the starts, with their words and colours
LOOKS = {
    "boosted": ("RFRBoost, then trained", COLOURS[RFRBOOST]),
    "random": ("random, then trained", COLOURS[NETWORK]),
}
MOST_ACROSS = 4
SCORES = {"regression": "test RMSE", "classification": "test accuracy"}


def draw_curves(rows: pd.DataFrame, out: Path) -> None:
    """Mean test score after every epoch, with the range over seeds."""
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
        save(figure, out, "fine-tune")


def draw_table(axes: "Axes", name: str, rows: pd.DataFrame) -> None:
    """One table: a line a start, and the level of RFRBoost before any training."""
    for start, part in rows.groupby("start", sort=False):
        words, colour = LOOKS[str(start)]
        scores = part.groupby("epoch")["score"]
        mean = scores.mean()
        axes.plot(mean.index, mean, color=colour, label=words)
        axes.fill_between(mean.index, scores.min(), scores.max(), color=colour, alpha=0.2, lw=0)
        if start == "boosted":
            axes.axhline(mean.iloc[0], color=INK, ls=":", lw=1, label="RFRBoost, untrained")
    # The first epochs, which may go far astray, would set the scale of everything else.
    late, begin = rows["epoch"] >= rows["epoch"].max() / 2, rows["epoch"] == 0
    seen = rows[late | (begin & (rows["start"] == "boosted"))]["score"]
    margin = 0.5 * (seen.max() - seen.min() or 1.0)
    axes.set(
        title=name,
        xlabel="epochs",
        ylabel=SCORES[rows["task"].iloc[0]],
        ylim=(seen.min() - margin, seen.max() + margin),
    )
    axes.grid(True)
