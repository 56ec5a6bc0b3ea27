"""The table of defaults, made from the code: what a parameter is on each route if it is not set."""

import importlib
from collections.abc import Mapping
from typing import Any

#: where the table of defaults is: parameter → value on each route
MODULE, NAME = "rfrboost._estimators.defaults", "DEFAULTS"
#: the line of a page that the table takes the place of
MARK = "<!-- table of defaults -->"
ROUTES = {"single": "single network", "ensemble": "ensemble", "large": "large fit"}


def defaults() -> Mapping[str, Mapping[str, Any]]:
    """The table of defaults, empty in versions that have none."""
    try:
        module = importlib.import_module(MODULE)
    except ModuleNotFoundError:
        return {}
    return getattr(module, NAME)


def cell(value: Any) -> str:
    """A default as it is shown; ``None`` is a value like others, a missing one is a dash."""
    return f"`{value!r}`" if not isinstance(value, str) or " " not in value else value


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
