"""Small things the site needs: links into the repository, plain docstrings, a quick gallery."""

import re
import time
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# The gallery in the order in which it should be read.
EXAMPLES = ["regression", "tables", "circles", "trees", "pipeline", "explain", "onnx", "dask"]
# Processor seconds an example may take, so that it can be tried while reading.
MOST_SECONDS = 15.0

# What a link to a file of the repository is on the site.
LINKS = {
    r"src/rfrboost/(\w+)\.py": r"/internals/rfrboost.\1.rst",
    r"experiments/results/([\w-]+)\.md": r"/results/\1.md",
    r"experiments/results": "/results/index.md",
    r"experiments/README\.md": "/results/experiments.md",
    r"benchmarks/results\.md": "/results/benchmarks.md",
}
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


def read_source(app: Sphinx, page: str, source: list[str]) -> None:
    """Point links at what a file of the repository is on the site."""
    text = source[0]
    for file, target in LINKS.items():
        text = re.sub(rf"\]\((?:\.\./)+{file}\)", f"]({target})", text)
    # The blank line that ends a doctest is not for readers.
    source[0] = re.sub(r"\n\n```(?=\n|$)", "\n```", text)


def plain_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Let |x| in docstrings mean what it means in mathematics, not a substitution."""
    for i, line in enumerate(lines):
        parts = CODE.split(line)
        lines[i] = "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in parts)


def only_ours(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn adds to every estimator: its own manual has it."""
    return skip or not str(getattr(obj, "__module__", "rfrboost")).startswith("rfrboost")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.connect("source-read", read_source)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.connect("autodoc-skip-member", only_ours)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
