"""The pages of the site: what they print is what comes out, and nothing public is left out."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

import rfrboost

DOCS = Path(__file__).parent.parent / "docs"


def not_yet() -> list[str]:
    """The pages whose code is not there yet, from the list that the build uses."""
    spec = importlib.util.spec_from_file_location("pending", DOCS / "pending.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PAGES


def written() -> list[str]:
    """The pages that people wrote; the build writes others into folders of its own."""
    pages = [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("extend/*.md")]
    return sorted(str(page.relative_to(DOCS)) for page in pages)


def run(page: str) -> bool:
    """Whether a page has code that a test can run."""
    return page not in not_yet() and ">>> " in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in written() if run(page)])
def test_pages_print_what_comes_out(page):
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


def test_everything_public_is_in_the_reference():
    reference = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (\w+)$", reference, re.MULTILINE))
    assert {name for name in rfrboost.__all__ if name != "__version__"} <= listed
