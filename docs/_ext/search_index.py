"""What the site's search lists: pages for users, never the pages of private modules.

After the build the index is read back, and the build fails if a private module is in it or if it
does not find the words that people of this field look for.
"""

import json
from pathlib import Path

from docutils import nodes
from searches import faults, public
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.errors import ExtensionError
from sphinx.search.en import SearchEnglish


class PublicSearchBuilder(StandaloneHTMLBuilder):
    """Sphinx's HTML builder, with an index of public pages only."""

    name = "html"

    def index_page(self, pagename: str, doctree: nodes.document, title: str) -> None:
        if public([pagename]):
            super().index_page(pagename, doctree, title)


def check(app: Sphinx, problem: Exception | None) -> None:
    """Fail a build whose search would lead astray."""
    path = Path(app.outdir) / "searchindex.js"
    if problem or app.builder.name != "html":
        return
    text = path.read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")")
    language = SearchEnglish({})
    wrong = faults(json.loads(text), lambda word: language.stem(word.lower()))
    if wrong:
        raise ExtensionError("The search index is wrong: " + "; ".join(wrong))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the above."""
    app.add_builder(PublicSearchBuilder, override=True)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
