"""The licences of all packages that pyproject.toml names, as docs/licences.md.

    python tools/licences.py

reads them from the packages of the environment that it runs in. A package that is not installed
there keeps the line that the page has, and is an error if it has none.
"""

import re
import sys
import tomllib
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "licences.md"
HEADING = """\
# Licences of what it depends on

The library has the MIT licence and contains no code of other packages. Those that it needs or can
use are installed beside it, under licences of their own: the first table is what
`pip install rfrboost` installs, the second what its extras add. Licences are as the packages
declare them; what these need in turn is not listed.

`python tools/licences.py` writes this page from the packages that are installed, and a test
compares it with `pyproject.toml`.
"""
# How texts of licences begin, where a package gives neither a name nor a class.
TEXTS = {
    "Redistribution and use in source and binary forms": "BSD-3-Clause",
    "Permission is hereby granted, free of charge": "MIT",
    "Apache License": "Apache-2.0",
}
CLASSIFIER = "License :: "


def requirements() -> tuple[list[str], list[str]]:
    """The names of required packages, and of those that only extras name; each in order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = sorted(map(name_of, project["dependencies"]))
    extras = project["optional-dependencies"].values()
    named = {name_of(entry) for entries in extras for entry in entries}
    return needed, sorted(named - {*needed, project["name"]})


def name_of(requirement: str) -> str:
    """The package of a requirement such as ``dask[array]>=2025.5``."""
    return re.split(r"[\[<>=~! ;]", requirement, maxsplit=1)[0]


def licence_of(data: Message) -> str:
    """What a package says about its licence, in few words."""
    if data.get("License-Expression"):
        return str(data.get("License-Expression"))
    declared = str(data.get("License") or "").strip()
    if declared and "\n" not in declared:
        return declared
    # A text in full often has those of parts in it, so that what a package is classified as counts.
    classes = [c.rpartition(" :: ")[2] for c in data.get_all("Classifier", []) if CLASSIFIER in c]
    named = next((name for text, name in TEXTS.items() if text in declared), "not declared")
    return ", ".join(classes) or named


def lines_of(names: list[str], before: dict[str, str]) -> list[str]:
    """A line of a table for every package."""
    return [f"| {name} | {licence(name, before)} |" for name in names]


def licence(name: str, before: dict[str, str]) -> str:
    """The licence of an installed package, or what the page says of one that is not there."""
    try:
        return licence_of(metadata(name))
    except PackageNotFoundError:
        if name not in before:
            sys.exit(f"{name} is not installed, and {PAGE.name} does not have it yet.")
        return before[name]


def listed() -> dict[str, str]:
    """The page's licences by package."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    rows = re.findall(r"^\| ([\w.-]+) \| ([^|\n]+) \|$", text, re.MULTILINE)
    return {name: words for name, words in rows if name != "package"}


def page() -> str:
    """The whole page."""
    before = listed()
    needed, optional = requirements()
    rule = ["| package | licence |", "|---|---|"]
    parts = [HEADING, "## Required\n", *rule, *lines_of(needed, before)]
    parts += ["\n## Of extras\n", *rule, *lines_of(optional, before), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
