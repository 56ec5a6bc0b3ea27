"""What the other experiments left in their folders, as sections of the report."""

from pathlib import Path

import pandas as pd

from experiments.circles import summary_row
from experiments.page import figure, folded, paragraph, table
from experiments.paper_files import paper_file

CIRCLES = "circles"

# The folders of other commands: the title, what was done, and what their pictures show.
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
        "A problem with known best risk, fresh rows for each layer and a decreasing learning rate.",
        "Excess risk against the number of layers and the rows per layer",
    ),
}


def folder_sections(out: Path) -> dict[str, str]:
    """The sections of the folders that hold something, by title."""
    found = {}
    for name, (title, words, caption) in FOLDERS.items():
        content = _content(out / name, caption)
        if content:
            found[title] = paragraph(words) + content
    return found


def _content(folder: Path, caption: str) -> str:
    """Every picture and every table of a folder; the circles' summed up beside the paper's."""
    text = ""
    if folder.name == CIRCLES and (folder / "circles.csv").is_file():
        text += circles_summary(pd.read_csv(folder / "circles.csv"))
    for path in sorted(folder.glob("*.svg")):
        drawing, name = path.read_text(encoding="utf-8"), f"{folder.name}-{path.stem}"
        text += figure(drawing, name, f"{caption} ({path.stem}).")
    for path in sorted(folder.glob("*.csv")):
        text += folded(path.name, table(pd.read_csv(path)))
    return text


def circles_summary(runs: pd.DataFrame) -> str:
    """Mean and spread of each model's accuracy, ours beside the published runs."""
    path = paper_file(None, "concentric_circles_runs.csv")
    published = None if path is None else pd.read_csv(path)
    rows = [summary_row(model, part, published) for model, part in runs.groupby("model")]
    return table(pd.DataFrame(rows))
