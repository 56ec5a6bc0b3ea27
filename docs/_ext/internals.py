"""The list of modules, made from the source tree: it cannot miss one or name one that is gone.

Before the build, ``docs/internals/index.rst`` is written: a section for every package, in the order
of imports, with a page for every module. The folder is not committed.
"""

from pathlib import Path

from architecture import EVERYWHERE, PACKAGE, import_graph, import_order, modules_of, purpose
from sphinx.application import Sphinx

#: public modules, which the reference documents
REFERENCE = {"__init__", "callbacks", "dask", "torch", "inspection"}
HEAD = """\
The code, module by module
==========================

Names in these modules may change from one version to the next. They are here because the
:doc:`method </method>` names the function behind every formula. :doc:`The architecture
</architecture>` shows how packages import each other. Public names are in the
:doc:`reference </api>`.
"""


def sections() -> dict[str, list[str]]:
    """The modules of every package by their dotted names, lower packages first."""
    order = import_order(import_graph()[0])
    public = PACKAGE / "inspection" / "__init__.py"
    found = {"rfrboost": sorted(f"rfrboost.{name}" for name in EVERYWHERE)}
    for package in order:
        if package not in REFERENCE:
            found[f"rfrboost.{package}"] = [dotted(p) for p in modules_of(package) if is_module(p)]
    private = [dotted(path) for path in modules_of("inspection") if path != public]
    return {**found, "rfrboost.inspection": private}


def is_module(path: Path) -> bool:
    """Whether a file can be imported; ``__main__`` is a script, which would run."""
    return path.name != "__main__.py"


def dotted(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def page() -> str:
    """The page that lists all modules."""
    parts = [HEAD]
    for package, modules in sections().items():
        lines = [package, "-" * len(package), ""]
        if package != "rfrboost":
            lines += [purpose(package.removeprefix("rfrboost.")) + ".", ""]
        lines += [".. autosummary::", "   :toctree: .", ""]
        lines += [f"   {module}" for module in modules]
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)


def write_page(app: Sphinx, config: object) -> None:
    """Write the page before autosummary looks for pages to make."""
    folder = Path(app.srcdir) / "internals"
    folder.mkdir(exist_ok=True)
    (folder / "index.rst").write_text(page(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.connect("config-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
