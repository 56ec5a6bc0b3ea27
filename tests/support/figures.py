"""Figures on pages, and the committed result files that they are copied from.

``docs/figures.toml`` has a list of claims. A claim is a piece of a page's text with its figures in
braces, and a source for every figure. A source is one of

- ``[file, section, row, column]``: a cell of the first Markdown table below that heading, whose
  beginning is enough, in the row that has this cell (several cells are joined by " + "); where
  several columns have one name, the second is called "name 2";
- the same with ``"min"`` or ``"max"`` at the end: over all rows that have these cells;
- ``[file, sentence]``: text of the file, with ``{}`` in place of the figure;
- ``{sum = [source, …]}`` or ``{ratio = [source, source]}``: of several such figures.

Files are named by their path below ``experiments/results`` or ``benchmarks``. In a CSV file the
section is "".
"""

import csv
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
CLAIMS = ROOT / "docs" / "figures.toml"
FOLDERS = ("experiments/results", "benchmarks")
NUMBER = r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?: ?%)?"


@dataclass(frozen=True)
class Claim:
    """Figures of a page, with their sources."""

    page: str
    text: str
    sources: list[Any]

    @property
    def plain(self) -> str:
        """The text as it stands on the page."""
        return self.text.replace("{", "").replace("}", "")

    @property
    def figures(self) -> list[str]:
        """The figures, as they are written."""
        return re.findall(r"\{(.*?)\}", self.text)


def claims() -> list[Claim]:
    """All claims of all pages."""
    entries = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["claim"]
    return [Claim(entry["page"], entry["text"], entry["from"]) for entry in entries]


def settings() -> dict[str, list[str]]:
    """For every page, pieces of text whose numbers were chosen and not measured."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["settings"]


def on_one_line(text: str) -> str:
    """Text without line breaks, which do not matter to a claim."""
    return " ".join(text.split())


def agree(figure: str, value: float) -> bool:
    """Whether a figure is the value, rounded to the digits it is written with."""
    mantissa, _, exponent = re.sub(r"[ %]", "", figure).partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0) + 2 * ("%" in figure)
    return abs(number(figure) - value) <= 0.5000001 * 10.0**-decimals


def number(text: str) -> float:
    """The number that a piece of text begins with; 12 % is 0.12."""
    found = re.search(NUMBER, text)
    if found is None:
        raise ValueError(f"no number in {text!r}")
    value = float(found[0].replace(",", "").replace("−", "-").rstrip(" %"))
    return value / 100 if found[0].endswith("%") else value


def value_of(source: Any) -> float:
    """The number that a source names."""
    if isinstance(source, dict):
        [(kind, parts)] = source.items()
        values = [value_of(part) for part in parts]
        return sum(values) if kind == "sum" else values[0] / values[1]
    file, *place = source
    if len(place) == 1:
        return number_in(path_of(file).read_text(encoding="utf-8"), place[0])
    section, row, column = place[:3]
    found = [number(cells[column]) for cells in rows(file, section, row)]
    if len(place) == 4:
        return {"min": min, "max": max}[place[3]](found)
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows instead of one: {source}")
    return found[0]


def number_in(text: str, sentence: str) -> float:
    """The number in place of the braces of a sentence of the text."""
    before, after = (re.escape(on_one_line(part)) for part in sentence.split("{}"))
    found = re.search(
        f"{before} ?\\**({NUMBER})\\**{' ?' if after else ''}{after}", on_one_line(text)
    )
    if found is None:
        raise ValueError(f"not found: {sentence!r}")
    return number(found[1])


def path_of(file: str) -> Path:
    """Where a result file is."""
    return next(p for p in (ROOT / folder / file for folder in FOLDERS) if p.exists())


def rows(file: str, section: str, row: str) -> list[dict[str, str]]:
    """The rows below a heading that have all the cells named, by column."""
    path = path_of(file)
    table = read_csv(path) if path.suffix == ".csv" else read_markdown(path, section)
    return [cells for cells in table if set(row.split(" + ")) <= set(cells.values())]


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def read_markdown(path: Path, section: str) -> list[dict[str, str]]:
    """The rows of the first table below the first heading that begins so; "" is the whole file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    heading = re.compile(r"#+ " + re.escape(section))
    start = next(i for i, line in enumerate(lines) if not section or heading.match(line))
    first = next(i for i in range(start, len(lines)) if lines[i].startswith("|"))
    cells = [line.strip("| ").split("|") for line in table(lines, first)]
    names, _, *body = ([cell.strip().strip("*") for cell in line] for line in cells)
    columns = [f"{n} 2" if n in names[:i] else n for i, n in enumerate(names)]
    return [dict(zip(columns, line, strict=True)) for line in body]


def table(lines: list[str], first: int) -> list[str]:
    """The lines of a table that begins there."""
    end = next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines))
    return lines[first:end]
