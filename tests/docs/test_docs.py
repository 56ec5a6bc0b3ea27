"""The pages of the site: what they print is what comes out, and nothing public is left out."""

import doctest
import re
from pathlib import Path

import pytest

import rfrboost

DOCS = Path(__file__).parent.parent.parent / "docs"
#: modules of public names, which the reference has
PUBLIC = [
    "_rfnn",
    "_rfrboost",
    "_rfrboost_classifier",
    "_transformers",
    "_version",
    "dask",
    "row_blocks",
    "torch",
]


def written() -> list[str]:
    """The pages that people wrote; the build writes others into folders of its own."""
    pages = [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("extend/*.md")]
    return sorted(str(page.relative_to(DOCS)) for page in pages)


def run(page: str) -> bool:
    """Whether a page has code that a test can run."""
    return ">>> " in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in written() if run(page)])
def test_pages_print_what_comes_out(page):
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


def test_everything_public_is_in_the_reference():
    reference = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (\w+)$", reference, re.MULTILINE))
    assert {name for name in rfrboost.__all__ if name != "__version__"} <= listed


def test_every_module_is_among_the_internals():
    package = Path(rfrboost.__file__).parent
    files = [p.relative_to(package).with_suffix("") for p in package.rglob("*.py")]
    modules = [".".join(p.parts) for p in files if not p.stem.startswith("__")]
    page = (DOCS / "internals.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   rfrboost\.([\w.]+)$", page, re.MULTILINE)
    assert sorted(listed + PUBLIC) == sorted(modules)
