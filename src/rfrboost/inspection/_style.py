"""What all figures have in common: colours, panels, and a plain frame."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, RULE = "#222222", "#767676", "#E6E6E6"
# Okabe and Ito's colours, which stay apart under every form of colour blindness, without their
# yellow, which is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
PALE = COLOURS[5]
#: one after another where there are more classes than colours
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: of a scale from low to high: even in lightness, and the same to a colour-blind reader
SCALE = "cividis"
# More points than this are a blot: so many are drawn, chosen at random.
MOST_POINTS = 4000
# Names longer than this would leave no room for the picture.
LONGEST = 40


def panels(
    ax: "Axes | None",
    size: tuple[float, float],
    widths: tuple[float, ...] = (1.0,),
    heights: tuple[float, ...] = (1.0,),
) -> list["Axes"]:
    """Axes row by row: in a figure of their own, or in the place of ``ax``.

    The figure is one of pyplot's, so that ``show`` finds it; with ``ax`` given, pyplot is not
    touched.
    """
    if ax is not None and len(widths) * len(heights) == 1:
        return [ax]
    ratios: dict[str, Any] = {"width_ratios": widths, "height_ratios": heights}
    if ax is None:
        figure = pyplot().figure(figsize=size, layout="compressed")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
        grid: Any = figure.add_gridspec(len(heights), len(widths), **ratios)
    else:
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError(
                "This figure has several panels, and ax can be divided only if it was made by "
                "subplots or add_subplot."
            )
        ax.set_axis_off()
        figure = ax.figure
        grid = place.subgridspec(len(heights), len(widths), **ratios)
    return [figure.add_subplot(grid[i, j]) for i in range(len(heights)) for j in range(len(widths))]


def pyplot() -> Any:
    """matplotlib.pyplot, or one sentence saying what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib, which is not installed: pip install 'rfrboost[plot]'"
        ) from error
    return pyplot


def plain(ax: "Axes", grid: str | None = None) -> None:
    """A quiet frame: two spines, and a faint grid along ``grid`` ("x", "y", "both") if any."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(color=FAINT, labelcolor=INK)
    if grid is not None:
        ax.set_axisbelow(True)
        ax.grid(axis=grid, color=RULE, linewidth=0.8)  # type: ignore[arg-type]


def heading(ax: "Axes", title: str, subtitle: str = "") -> None:
    """A title in bold, flush left, and a line in grey beneath it."""
    ax.set_title(title, loc="left", fontweight="bold", color=INK, pad=24 if subtitle else 10)
    if subtitle:
        line = ax.annotate(
            subtitle,
            (0, 1),
            (0, 8),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            color=FAINT,
        )
        # The title makes room for it; a long one must not squeeze its panel.
        line.set_in_layout(False)


def text(name: object) -> str:
    """A name from outside as a label: not too long, and without a meaning to matplotlib.

    Between two dollar signs it would read mathematics, and it leaves out of legends what begins
    with an underscore.
    """
    label = str(name)
    label = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    return label.replace("$", r"\$").replace("_", " _", int(label.startswith("_")))
