"""The table of defaults, made from the code: what a parameter is on each route if it is not set."""

import importlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

#: where the table of defaults is: parameter → value on each route
MODULE, NAME = "rfrboost._estimators.defaults", "DEFAULTS"
#: the line of a page that the table takes the place of
MARK = "<!-- table of defaults -->"
#: longer tuples are shown by their ends
MOST_VALUES = 4
ROUTES = {"single": "single network", "ensemble": "ensemble", "large": "large fit"}


def defaults() -> Mapping[str, Mapping[str, Any]]:
    """The table of defaults, empty in versions that have none."""
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError:
        return {}
    return getattr(module, NAME)


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


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """The defaults as a Markdown table: a row for every parameter, a column for every route."""
    if not rows:
        return "The table is part of the module `_estimators/defaults.py`."
    lines = [
        "| parameter | " + " | ".join(ROUTES.values()) + " |",
        "|---" * (len(ROUTES) + 1) + "|",
    ]
    for name, values in rows.items():
        cells = [cell(values[route]) if route in values else "–" for route in ROUTES]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)
