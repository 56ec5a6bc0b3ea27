"""The style that all figures share: colours, panels, headings and a plain frame.

matplotlib is imported when a figure is made; its settings (rcParams) are never changed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: greys: text, secondary text and axes, grid lines
INK = "#222222"
FAINT = "#767676"
RULE = "#E6E6E6"
# The colours of Okabe and Ito, which can be told apart with every form of colour blindness, without
# their yellow, which is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
PALE = COLOURS[5]
#: with more classes than colours, colours repeat with the next marker
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: colour map from low to high: lightness increases evenly, also for colour-blind readers
SCALE = "cividis"
# The most points of a scatter plot; of more, this many are drawn at random, because more overlap.
MOST_POINTS = 4000
# The most characters of a name; longer names would leave no room for the figure.
LONGEST = 40


def panels(
    ax: "Axes | None",
    size: tuple[float, float],
    widths: tuple[float, ...] = (1.0,),
    heights: tuple[float, ...] = (1.0,),
) -> list["Axes"]:
    """Axes of a grid of panels, row by row: in a new figure, or in the place of ``ax``.

    ``size`` is that of a new figure in inches; ``widths`` and ``heights`` are the proportions of
    columns and rows. A new figure is made by pyplot, so that ``pyplot.show`` finds it. With ``ax``
    given, pyplot is not used.
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
                "This figure has several panels, so ax must be one that can be divided: make it "
                "with subplots or add_subplot."
            )
        ax.set_axis_off()
        figure = ax.figure
        grid = place.subgridspec(len(heights), len(widths), **ratios)
    return [figure.add_subplot(grid[i, j]) for i in range(len(heights)) for j in range(len(widths))]


def pyplot() -> Any:
    """Import matplotlib.pyplot, or raise an error that says what to install."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Figures need matplotlib, which is not installed: pip install 'rfrboost[plot]'."
        ) from error
    return pyplot


def plain(ax: "Axes", grid: str | None = None) -> None:
    """Keep two spines, and draw a pale grid along ``grid`` ("x", "y" or "both") if it is given."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(color=FAINT, labelcolor=INK)
    if grid is not None:
        ax.set_axisbelow(True)
        ax.grid(axis=grid, color=RULE, linewidth=0.8)  # type: ignore[arg-type]


def heading(ax: "Axes", title: str, subtitle: str = "") -> None:
    """Write a bold title, aligned left, and a grey line beneath it."""
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
        # The title leaves room for this line, and a long line must not make the panel smaller.
        line.set_in_layout(False)


def text(name: object) -> str:
    """The name of a column or class as a label that matplotlib draws as it is, shortened.

    matplotlib would read text between two dollar signs as mathematics, and leave labels that begin
    with an underscore out of legends.
    """
    label = str(name)
    label = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    return label.replace("$", r"\$").replace("_", " _", int(label.startswith("_")))
