"""The pages of the site print what comes out, and leave nothing public and no module out."""

import ast
import doctest
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import rfrboost
from rfrboost import RFRBoostRegressor

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"


def written() -> list[str]:
    """The pages that people wrote; the build writes others into folders of its own."""
    pages = [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), *DOCS.glob("extend/*.md")]
    return sorted(str(page.relative_to(DOCS)) for page in pages)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [page for page in written() if ">>> " in text_of(page)])
def test_pages_print_what_comes_out(page):
    result = doctest.testfile(str(DOCS / page), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


def test_everything_public_is_in_the_reference():
    listed = set(re.findall(r"^   (\w+)$", text_of("api.rst"), re.MULTILINE))
    assert {name for name in rfrboost.__all__ if name != "__version__"} <= listed


def extension(name: str):
    """A module of the site, without Sphinx, which tests do not need."""
    folders = [str(DOCS / "_ext"), str(ROOT / "tools")]
    source = (DOCS / "_ext" / f"{name}.py").read_text(encoding="utf-8")
    source = source.replace("from sphinx.application import Sphinx", "Sphinx = object")
    spec = importlib.util.spec_from_loader(name, loader=None)
    module = importlib.util.module_from_spec(spec)
    sys.path[:0] = folders
    try:
        exec(compile(source, name, "exec"), module.__dict__)
    finally:
        del sys.path[: len(folders)]
    return module


def test_every_module_is_among_the_internals():
    package = Path(rfrboost.__file__).parent
    files = [path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py")]
    modules = {".".join(path.parts).removesuffix(".__init__") for path in files}
    # Public names are in the reference, and a script has no names.
    names = ("callbacks", "dask", "torch", "inspection")
    others = {"rfrboost", *(f"rfrboost.{name}" for name in names)}
    listed = re.findall(r"^   (rfrboost[\w.]+)$", extension("internals").page(), re.MULTILINE)
    scripts = {name for name in modules if name.endswith("__main__")}
    assert set(listed) == modules - others - scripts
    assert len(listed) == len(set(listed))


def test_the_table_of_defaults_has_every_parameter_and_route():
    defaults = extension("defaults")
    rows = {"l2_step": {"single": None, "ensemble": (1e-3, 1e-6)}}
    lines = defaults.table(rows).splitlines()
    assert lines[0] == "| parameter | single network | ensemble |"
    assert lines[2] == "| `l2_step` | `None` | `0.001` and `1e-06` |"
    # The table takes the place of a line of this page.
    assert defaults.MARK in text_of("architecture.md")
    own = set(RFRBoostRegressor().get_params())
    assert set(re.findall(r"^\| `(\w+)`", defaults.table(), re.MULTILINE)) <= own
    assert defaults.table().count("\n| `") == len(defaults.DEFAULTS) > 0


def test_pages_link_to_modules_that_exist():
    for page in written():
        for path in re.findall(r"\((?:\.\./)+(src/[\w/]+\.py)\)", text_of(page)):
            assert (ROOT / path).exists(), (page, path)


def names_in(path: Path) -> set[str]:
    """What a module defines, and the members of its classes."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = [m for m in node.body if isinstance(m, ast.FunctionDef)]
            found |= {f"{node.name}.{member.name}" for member in members}
    return found


@pytest.mark.parametrize("page", written())
def test_pages_name_functions_that_exist(page):
    for kind, name in re.findall(r"\{py:(\w+)\}`~?(rfrboost\._[\w.]+)`", text_of(page)):
        parts = name.split(".")
        path = ROOT / "src" / Path(*parts).with_suffix(".py")
        if kind == "mod":
            assert path.exists() or path.with_suffix("").is_dir(), name
            continue
        depth = 2 if kind == "meth" else 1
        module = ROOT / "src" / Path(*parts[:-depth]).with_suffix(".py")
        assert module.exists(), name
        assert ".".join(parts[-depth:]) in names_in(module), name


def test_the_readme_is_short_and_begins_with_the_two_commands():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    beginning = "\n".join(lines[:60])
    for words in ("pip install", "make demo", "make test", ".fit("):
        assert words in beginning
