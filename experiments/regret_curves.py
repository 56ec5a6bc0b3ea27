"""The figure of the regret experiment: one row of panels a model, against T and against ñ."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from experiments.naming import label
from experiments.pictures import INK, STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXES = {"layers": "layers T", "rows_a_layer": "rows a layer ñ"}
CONFIDENCE = 0.95


def draw_regret(rows: pd.DataFrame, decay: float, out: Path) -> None:
    """Excess risk on logarithmic axes, with the bound's rates as lines of that slope."""
    import matplotlib
    from matplotlib.figure import Figure

    models = list(rows["model"].unique())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 3.9 * len(models)), layout="constrained")
        panels = figure.subplots(len(models), 2, squeeze=False, sharey=True)
        for (left, right), model in zip(panels, models, strict=True):
            part = rows[rows["model"] == model]
            draw_lines(left, part, "layers", "rows_a_layer", "ñ")
            draw_rate(left, part, "layers", decay - 1, f"rate $T^{{{decay - 1:.1f}}}$")
            draw_lines(right, part, "rows_a_layer", "layers", "T")
            draw_rate(right, part, "rows_a_layer", -0.5, "rate $ñ^{-1/2}$")
            left.set_ylabel(f"{label(model)}\nexcess risk (squared error)")
        figure.suptitle(
            "Excess risk above the Bayes risk, fresh rows for every layer, "
            f"$\\eta_t = t^{{-{decay}}}$ (mean and 95 % band over seeds)"
        )
        save(figure, out, "regret")


def draw_lines(axes: "Axes", rows: pd.DataFrame, x: str, by: str, symbol: str) -> None:
    """One line with its band for each value of ``by``, from light to dark."""
    import matplotlib
    from scipy import stats

    groups = list(rows.groupby(by))
    shades = matplotlib.colormaps["viridis_r"](np.linspace(0.15, 1.0, len(groups)))
    for (value, part), shade in zip(groups, shades, strict=True):
        risks = part.groupby(x)["excess_risk"]
        mean, count = risks.mean(), risks.size()
        half = stats.t.ppf((1 + CONFIDENCE) / 2, count - 1) * risks.std(ddof=1) / count**0.5
        axes.plot(
            mean.index, mean, color=shade, marker="o", markersize=3.5, label=f"{symbol} = {value}"
        )
        # A band around a mean of positive numbers, on an axis that has no zero.
        axes.fill_between(
            mean.index,
            (mean - half).clip(lower=mean / 10),
            mean + half,
            color=shade,
            alpha=0.2,
            linewidth=0,
        )
    ticks = sorted(rows[x].unique())
    axes.set(xscale="log", yscale="log", xlabel=AXES[x])
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(True)


def draw_rate(axes: "Axes", rows: pd.DataFrame, x: str, exponent: float, name: str) -> None:
    """A line of the bound's slope, above the curves: its constant is not known."""
    means = rows.groupby([x, "rows_a_layer" if x == "layers" else "layers"])["excess_risk"].mean()
    ticks = np.array(sorted(rows[x].unique()), dtype=float)
    highest = means.groupby(x).max().to_numpy()
    rate = ticks**exponent
    axes.plot(ticks, 1.3 * np.max(highest / rate) * rate, color=INK, linestyle="--", label=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)
