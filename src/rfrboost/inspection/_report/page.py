"""Parts of the report's page: cards, tables that sort, and figures. It needs no other file."""

import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from rfrboost.inspection._style import FAINT, INK, RULE

# The greys of figures, which follow the page's light or dark colours, and their names in its style.
THEME = {
    INK: "var(--ink)",
    FAINT: "var(--soft)",
    RULE.lower(): "var(--line)",
    "#000000": "var(--ink)",
    "#ffffff": "var(--ground)",
}


def page(title: str, lead: str, sections: Mapping[str, str]) -> str:
    """The whole page; ``sections`` maps titles to HTML."""
    anchors = {name: re.sub(r"\W+", "-", name.lower()) for name in sections}
    links = "".join(f'<a href="#{anchors[n]}">{html.escape(n)}</a>\n' for n in sections)
    body = f"<header>\n<h1>{html.escape(title)}</h1>\n{lead}<nav>\n{links}</nav>\n</header>\n"
    for name, content in sections.items():
        head = f'<section id="{anchors[name]}">\n<h2>{html.escape(name)}</h2>\n'
        body += f"{head}{content}</section>\n"
    template = (files("rfrboost.inspection._report") / "page.html").read_text(encoding="utf-8")
    return template.replace("{{title}}", html.escape(title)).replace("{{body}}", body)


def paragraph(text: str, kind: str = "plain") -> str:
    """A paragraph; ``kind`` is its class in the page's style."""
    return f'<p class="{kind}">{html.escape(text)}</p>\n'


def cards(facts: Sequence[tuple[str, str, str]]) -> str:
    """Large figures side by side: what it is, its value, and a line of explanation for each."""
    made = "".join(
        f'<div class="card"><div class="what">{html.escape(what)}</div>'
        f'<div class="value">{html.escape(value)}</div>'
        f'<div class="soft">{html.escape(note)}</div></div>\n'
        for what, value, note in facts
    )
    return f'<div class="cards">\n{made}</div>\n'


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table that sorts by a click on a header; rows have the same columns."""
    names = list(rows[0]) if rows else []
    numeric = {name: all(is_number(row[name]) for row in rows) for name in names}
    header = "".join(
        f'<th scope="col" aria-sort="none"{kind_of(numeric[name])}>'
        f'<button type="button">{html.escape(name)}</button></th>'
        for name in names
    )
    body = "\n".join(
        "<tr>" + "".join(cell(row[name], numeric[name]) for name in names) + "</tr>" for row in rows
    )
    return (
        '<div class="scroll" tabindex="0"><table>\n'
        f"<thead><tr>{header}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n"
    )


def is_number(value: Any) -> bool:
    """Whether a cell is a number, or has no value."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def kind_of(numeric: bool) -> str:
    """The class of a cell as an attribute."""
    return ' class="number"' if numeric else ""


def cell(value: Any, numeric: bool) -> str:
    """One cell: what is read, and what sorting compares."""
    absent = value is None or (isinstance(value, float) and math.isnan(value))
    sorted_by = "" if absent else html.escape(str(value))
    return f'<td{kind_of(numeric)} data-value="{sorted_by}">{html.escape(shown(value))}</td>'


def shown(value: Any) -> str:
    """A value as it is read: numbers with four digits, a dash in place of a missing one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def drawing(figure: Any, caption: str) -> str:
    """A matplotlib figure as SVG within the page, in its colours, with a caption."""
    import matplotlib

    stream = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", transparent=True, metadata=nothing)
    svg = stream.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for colour, name in THEME.items():
        svg = svg.replace(colour, name)
    label = html.escape(caption)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    sheet = f'<div class="sheet" tabindex="0">{svg}</div>'
    return f"<figure>{sheet}\n<figcaption>{label}</figcaption></figure>\n"
