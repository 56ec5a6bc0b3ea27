"""The table of defaults, made from the code: what a parameter is on each route if it is not set."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from rfrboost._estimators.parameters import DEFAULTS

#: the line of a page that the table takes the place of
MARK = "<!-- table of defaults -->"
#: longer tuples are shown by their ends
MOST_VALUES = 4
ROUTES = {"single": "single network", "ensemble": "ensemble"}


def cell(value: Any) -> str:
    """A default as the table shows it."""
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        nested = any(is_dataclass(part) for part in parts.values())
        return ("; " if nested else ", ").join(f"{name}: {cell(p)}" for name, p in parts.items())
    if isinstance(value, tuple) and len(value) > MOST_VALUES:
        return f"{len(value)} values, {cell(value[0])} to {cell(value[-1])}"
    if isinstance(value, tuple):
        return " and ".join(cell(part) for part in value)
    if isinstance(value, float):
        return f"`{value:.3g}`"
    # What has no literal form in Python, such as a parameter without effect, is words.
    text = repr(value)
    return text if " " in text else f"`{text}`"


def table(rows: Mapping[str, Mapping[str, Any]] = DEFAULTS) -> str:
    """The defaults as a Markdown table: one line for each parameter, one column for each route."""
    lines = [
        "| parameter | " + " | ".join(ROUTES.values()) + " |",
        "|---" * (len(ROUTES) + 1) + "|",
    ]
    for name, values in rows.items():
        lines.append(f"| `{name}` | " + " | ".join(cell(values[route]) for route in ROUTES) + " |")
    return "\n".join(lines)
