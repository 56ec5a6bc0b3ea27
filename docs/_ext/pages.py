"""Links into the repository, the table of defaults, plain docstrings, the gallery's examples."""

import re
import time
from pathlib import Path
from typing import Any

from defaults import MARK, table
from sphinx.application import Sphinx

import rfrboost

# The gallery in the order in which it should be read.
EXAMPLES = ["regression", "tables", "circles", "trees", "pipeline", "explain", "onnx", "dask"]
# Processor seconds that an example may take. Examples are meant to run within 15 seconds on an idle
# machine, so that they can be tried while reading; a busy machine may take three times as long.
MOST_SECONDS = 45.0
# Width and height of a thumbnail in pixels.
THUMBNAIL = (540, 400)
# Pictures that are wider than this, as a multiple of their height, have two panels side by side.
TWO_PANELS = 2.3

# The page of the site for a file of the repository.
LINKS = {
    r"experiments/results/([\w-]+)\.md": r"/results/\1.md",
    r"experiments/results": "/results/index.md",
    r"experiments/README\.md": "/results/experiments.md",
    r"benchmarks/results\.md": "/results/benchmarks.md",
    r"benchmarks/(dask|extremes|limits|scale)\.md": r"/results/\1.md",
    r"examples/serve/README\.md": "/guide/serve.md",
    r"examples/notebooks/(\w+)\.ipynb": r"/notebooks/\1.md",
    r"SECURITY\.md": "/security.md",
    r"CONTRIBUTING\.md": "/contributing.md",
    r"CHANGELOG\.md": "/changes.md",
}
SOURCE_FILE = re.compile(r"\]\((?:\.\./)+src/(rfrboost/[\w/]+)\.py\)")
PUBLIC = set(rfrboost.__all__)
ATTRIBUTE_LINK = re.compile(r":obj:`(\w+_)(?: <[^>]*>)?`")
CODE = re.compile(r"(``.*?``)")


def gallery_order(filename: str) -> int:
    """The place of an example in the gallery."""
    return EXAMPLES.index(Path(filename).stem.removeprefix("plot_"))


class TimeLimit:
    """Fails the build when an example takes too long."""

    def __init__(self) -> None:
        self.began = 0.0

    def __call__(self, conf: dict[str, Any], filename: str, when: str) -> None:
        if when == "before":
            self.began = time.process_time()
            return
        seconds = time.process_time() - self.began
        if seconds > MOST_SECONDS:
            raise RuntimeError(f"{filename} takes {seconds:.1f} s, more than {MOST_SECONDS:.0f}.")


limit_time = TimeLimit()


def crop_thumbnails(app: Sphinx) -> None:
    """Let thumbnails show the left one of two panels: both together are too small to read."""
    from PIL import Image, ImageOps

    for thumbnail in (Path(app.srcdir) / "gallery" / "images" / "thumb").glob("*_thumb.png"):
        name = thumbnail.name.replace("_thumb", "_001")
        with Image.open(thumbnail.parent.parent / name) as picture:
            panels = 2 if picture.width > TWO_PANELS * picture.height else 1
            part = picture.convert("RGB").crop((0, 0, picture.width // panels, picture.height))
        ImageOps.pad(part, THUMBNAIL, color="white").save(thumbnail)


def read_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Point links to files of the repository at their pages, and put the table of defaults in."""
    text = SOURCE_FILE.sub(module_link, source[0]).replace(MARK, table())
    for file, target in LINKS.items():
        text = re.sub(rf"\]\((?:\.\./)+{file}\)", f"]({target})", text)
    # The blank line that ends a doctest is not for readers.
    source[0] = re.sub(r"\n\n```(?=\n|$)", "\n```", text)


def module_link(found: re.Match[str]) -> str:
    """The link to a module's page in place of that to its file."""
    name = found[1].removesuffix("/__init__").replace("/", ".")
    return f"](/internals/{name}.rst)"


def plain_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Let |x| be an absolute value, not a substitution, and fitted attributes be plain names."""
    for i, line in enumerate(lines):
        # numpydoc links attributes to their own entries, which are left out below.
        parts = CODE.split(ATTRIBUTE_LINK.sub(r"**\1**", line))
        lines[i] = "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in parts)


def left_out(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what is documented elsewhere.

    What scikit-learn adds to every estimator is in its own manual, fitted attributes are in the
    docstrings of their classes, and public estimators have pages in the reference.
    """
    module = str(getattr(obj, "__module__", "rfrboost"))
    fitted = what == "class" and name.endswith("_") and not name.endswith("__")
    public = what == "module" and module.startswith("rfrboost._estimators") and name in PUBLIC
    return skip or fitted or public or not module.startswith("rfrboost")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above, the thumbnails after the gallery has made its own."""
    app.connect("builder-inited", crop_thumbnails, priority=900)
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-skip-member", left_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
