"""The notebooks of examples/notebooks as pages, made from their committed outputs.

Before the build, nbconvert writes each as Markdown to ``docs/notebooks``, with its pictures beside
it. The folder is not committed; ``docs/notebooks.md`` lists the pages.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

SOURCES = Path("..") / "examples" / "notebooks"
# pandas writes rules of style with every data frame; the site has its own.
STYLE = re.compile(r"<style scoped>.*?</style>\n?", re.DOTALL)
# What a cell prints is an indented block in nbconvert's Markdown.
PRINTED = re.compile(r"(?:^    .*\n(?:^\s*\n(?=    ))*)+", re.MULTILINE)
FENCED = re.compile(r"(^```.*?^```$|^<div>.*?^</div>$)", re.MULTILINE | re.DOTALL)


def page(markdown: str, name: str) -> str:
    """The page of a notebook: links lead to pages, and the title is followed by a download."""
    text = STYLE.sub("", markdown)
    text = re.sub(r"\]\(\.\./\.\./docs/", "](../", text)
    text = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text)
    parts = FENCED.split(text)
    parts[::2] = [PRINTED.sub(printed, part) for part in parts[::2]]
    download = f"{{download}}`Download this notebook <../{SOURCES.as_posix()}/{name}.ipynb>`"
    title, _, rest = "".join(parts).partition("\n")
    return f"{title}\n\n{download}\n{rest}"


def printed(block: re.Match[str]) -> str:
    """What a cell prints, as a block of plain text."""
    lines = [line[4:].rstrip() for line in block[0].rstrip().splitlines()]
    return "\n".join(["```text", *lines, "```", ""])


def write_pages(app: Sphinx, config: object) -> None:
    """Write every notebook as a page, and its pictures."""
    from nbconvert import MarkdownExporter

    folder = Path(app.srcdir) / "notebooks"
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir) / SOURCES).glob("*.ipynb")):
        names = {"output_files_dir": f"{path.stem}_files"}
        body, resources = MarkdownExporter().from_filename(str(path), resources=names)
        for picture, content in resources["outputs"].items():
            target = folder / picture
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
        (folder / f"{path.stem}.md").write_text(page(body, path.stem), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
