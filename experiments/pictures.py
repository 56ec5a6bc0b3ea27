"""How every figure looks, and how it is kept: as SVG and PNG, the same bytes each time."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.files import write_atomically
from experiments.naming import LINEAR, NETWORK, ONE_LAYER, OTHER, RFRBOOST, TREES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any kind of colour vision.
COLOURS = {
    RFRBOOST: "#0072B2",
    TREES: "#D55E00",
    NETWORK: "#009E73",
    ONE_LAYER: "#CC79A7",
    LINEAR: "#595959",
    OTHER: "#E69F00",
}
INK = "#222222"
FAINT = "#b8b8b8"

STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "savefig.dpi": 150,
    "svg.hashsalt": "rfrboost",  # the ids in the file would be random otherwise
}


def svg_text(figure: "Figure") -> str:
    """A figure as the text of an SVG file, without the date."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    return stream.getvalue()


def save(figure: "Figure", folder: Path, name: str) -> None:
    """Write a figure as ``name.svg`` and ``name.png``."""
    write_atomically(folder / f"{name}.svg", svg_text(figure))
    temporary = folder / f".{name}.png"
    figure.savefig(temporary, format="png", bbox_inches="tight")
    os.replace(temporary, folder / f"{name}.png")
