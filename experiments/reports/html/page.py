"""Parts of the HTML page: sortable tables, figures, sections. The page needs no other file."""

import html
import re
from pathlib import Path

import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from experiments.reports.significance import ALPHA, p_value_text

TEMPLATE = Path(__file__).with_name("page.html")


def page(title: str, introduction: str, sections: dict[str, str]) -> str:
    """The whole page; ``sections`` maps titles to HTML."""
    anchors = {name: re.sub(r"\W+", "-", name.lower()) for name in sections}
    links = "".join(f'<a href="#{anchors[n]}">{html.escape(n)}</a>\n' for n in sections)
    body = f"<h1>{html.escape(title)}</h1>\n{introduction}\n<nav>\n{links}</nav>\n"
    for name, content in sections.items():
        body += (
            f'<section id="{anchors[name]}">\n<h2>{html.escape(name)}</h2>\n{content}</section>\n'
        )
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("{{title}}", html.escape(title)).replace("{{body}}", body)


def heading(text: str) -> str:
    """A heading within a section."""
    return f"<h3>{html.escape(text)}</h3>\n"


def paragraph(text: str, kind: str = "plain") -> str:
    """A paragraph; ``kind`` is its class in the page's style."""
    return f'<p class="{kind}">{html.escape(text)}</p>\n'


def folded(title: str, content: str) -> str:
    """A part that is hidden until the reader opens it."""
    return f"<details><summary>{html.escape(title)}</summary>\n{content}</details>\n"


def table(rows: pd.DataFrame) -> str:
    """A table that sorts by a click on a header; significant values of columns ``p`` are marked."""
    numeric = {name: is_numeric_dtype(rows[name]) for name in rows}
    header = "".join(
        f'<th scope="col" aria-sort="none"{_class("number" if numeric[name] else "")}>'
        f'<button type="button">{html.escape(str(name))}</button></th>'
        for name in rows
    )
    columns = [_cells(rows[name]) for name in rows]
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True))
    return (
        '<div class="scroll" tabindex="0"><table>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )


def _cells(column: pd.Series) -> list[str]:
    """The cells of a column: the printed text, and the value that sorting uses."""
    is_test = str(column.name).split()[0] == "p"
    show = p_value_text if is_test else (_decimals if is_float_dtype(column) else str)
    kind = "number" if is_numeric_dtype(column) else ""
    cells = []
    for value in column:
        marked = f"{kind} significant" if is_test and value < ALPHA else kind
        sort_value = "" if pd.isna(value) else html.escape(str(value))
        text = html.escape(show(value))
        cells.append(f'<td{_class(marked)} data-value="{sort_value}">{text}</td>')
    return cells


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _decimals(value: float) -> str:
    # Adding 0.0 turns the -0.0 that rounding leaves into 0.0.
    return "–" if pd.isna(value) else f"{round(value, 4) + 0.0:.4f}"


def figure(svg: str, name: str, caption: str) -> str:
    """The text of an SVG file as part of the page; ``name`` makes its ids unique on the page."""
    drawing = svg[svg.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    for mark in (r'\bid="', r'href="#', r"url\(#"):
        drawing = re.sub(mark, lambda match: f"{match[0]}{name}-", drawing)
    described = f'<svg role="img" aria-label="{html.escape(caption)}"'
    drawing = drawing.replace("<svg", described, 1)
    return (
        f'<figure><div class="sheet">{drawing}</div>\n'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>\n"
    )
