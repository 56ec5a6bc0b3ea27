"""The larger-scale curves: score and time against training rows, ours and the published."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from experiments.large_report import curve
from experiments.large_tables import LargeTable
from experiments.naming import in_order, label, look
from experiments.pictures import COLOURS, INK, STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE = {"regression": "test RMSE (scaled label)", "classification": "test accuracy"}


def draw_curves(table: LargeTable, rows: pd.DataFrame, published: pd.DataFrame, out: Path) -> None:
    """One figure: the score on the left, the time on the right."""
    ours = rows[rows["table"] == table.id]
    if ours.empty:
        return
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    theirs = published[published["table"] == table.id]
    models = in_order(list(ours["model"].unique()))
    sizes = sorted({*ours["rows"], *theirs["rows"]})
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes, value in ((left, "score"), (right, "fit_seconds")):
            for model in models:
                draw_model(axes, model, value, ours, theirs)
            axes.set_xscale("log")
            axes.set_xticks(sizes, [f"{size / 1000:.0f}k" for size in sizes])
            axes.minorticks_off()
            axes.set_xlabel("training rows")
            axes.grid(True)
        left.set_ylabel(SCORE[table.task])
        right.set_ylabel("search and fit, seconds\n(ours: one CPU core; published: GPU)")
        right.set_yscale("log")
        handles = [Line2D([], [], color=COLOURS[look(m).family], label=label(m)) for m in models]
        handles += [
            Line2D([], [], color=INK, marker="o", label="ours, 95 % band over seeds"),
            Line2D([], [], color=INK, linestyle=":", label="published"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle(f"{table.name}: larger training sets")
        save(figure, out, f"large-scale-{table.id}")


def draw_model(
    axes: "Axes", model: str, value: str, ours: pd.DataFrame, published: pd.DataFrame
) -> None:
    """Our curve of a model with its band, and the published one as dots."""
    colour = COLOURS[look(model).family]
    points = curve(ours[ours["model"] == model], value)
    axes.plot(points.index, points["mean"], color=colour, marker="o", markersize=4)
    low, high = points["mean"] - points["half"], points["mean"] + points["half"]
    # A time has no negative values, and a logarithmic axis no place for them.
    floor = points["mean"] / 10 if value == "fit_seconds" else low
    axes.fill_between(points.index, low.clip(lower=floor), high, color=colour, alpha=0.2)
    theirs = published[published["model"] == model]
    if not theirs.empty:
        dots = curve(theirs, value)
        axes.plot(dots.index, dots["mean"], color=colour, linestyle=":")
