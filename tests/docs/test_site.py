"""The site: its search, the pages of notebooks, its words, and an example that must not overfit.

Sphinx is not needed here. The build itself checks the real search index, by the function that is
tested here with a small one.
"""

import importlib.util
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted(path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb"))


def extension(name: str):
    """A module of the site that needs no Sphinx, or needs it for the types of arguments only."""
    source = (DOCS / "_ext" / f"{name}.py").read_text(encoding="utf-8")
    source = source.replace("from sphinx.application import Sphinx", "Sphinx = object")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader=None))
    exec(compile(source, name, "exec"), module.__dict__)
    return module


searches = extension("searches")


def index_of(pages: dict[str, str], objects: dict | None = None) -> dict:
    """A search index of pages by their words, as Sphinx writes it."""
    terms: dict[str, int | list[int]] = {}
    for number, text in enumerate(pages.values()):
        for word in set(re.findall(r"\w+", text.lower())):
            found = [*searches.numbers(terms, word), number]
            terms[word] = found if len(found) > 1 else number
    return {"docnames": list(pages), "terms": terms, "titleterms": {}, "objects": objects or {}}


def pages_that_answer() -> dict[str, str]:
    """Every page that a search has to find, with the words that it has to be found by."""
    pages: dict[str, str] = {}
    for words, page in searches.SEARCHES.items():
        pages[page] = f"{pages.get(page, '')} {words}"
    return pages


def test_an_index_that_answers_has_no_faults():
    assert searches.faults(index_of(pages_that_answer()), str.lower) == []


def test_private_pages_and_objects_are_faults():
    pages = {**pages_that_answer(), "internals/rfrboost._auto.trees": "early stopping"}
    objects = {"rfrboost": [], "rfrboost._auto.trees": []}
    found = searches.faults(index_of(pages, objects), str.lower)
    assert found == ["internals/rfrboost._auto.trees is listed", "rfrboost._auto.trees is listed"]
    assert searches.public(pages) == list(pages_that_answer())


def test_words_that_are_not_found_are_faults():
    pages = pages_that_answer()
    pages["guide/fits"] = pages["guide/fits"].replace("overfitting", "")
    found = searches.faults(index_of(pages), str.lower)
    assert found == ["'overfitting' of 'overfitting' does not find guide/fits"]


@pytest.mark.parametrize(("words", "page"), searches.SEARCHES.items())
def test_pages_have_the_words_that_people_search_for(words, page):
    if page.startswith("notebooks/"):
        path = ROOT / "examples" / f"{page}.ipynb"
    else:
        path = DOCS / f"{page}.md"
    # The search splits texts into such words; endings are left open, as it compares stems.
    held = set(re.findall(r"\w+", path.read_text(encoding="utf-8").lower()))
    for word in re.findall(r"\w+", words.lower()):
        forms = {w for w in held if w.startswith(word.removesuffix("s")) and len(w) < len(word) + 4}
        assert forms, (word, page)


def test_the_build_uses_the_extensions():
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    for name in ("internals", "notebooks", "pages", "search_index"):
        assert f'"{name}"' in conf


def test_every_notebook_is_on_the_site():
    listed = re.findall(r"^notebooks/(\w+)$", (DOCS / "notebooks.md").read_text(), re.MULTILINE)
    assert sorted(listed) == NOTEBOOKS


def test_a_notebook_becomes_a_page():
    markdown = "\n".join(
        [
            "# Title",
            "",
            "See [files](../../docs/guide/files.md) and [another](moving.ipynb).",
            "",
            "```python",
            "for i in range(2):",
            "    print(i)",
            "```",
            "",
            "    0",
            "    1",
            "",
            "",
            "<div>",
            "<style scoped>",
            "    .dataframe {",
            "    }",
            "",
            "</style>",
            '<table border="1" class="dataframe">',
            "    <td>1</td>",
            "</table>",
            "</div>",
            "",
        ]
    )
    page = extension("notebooks").page(markdown, "first_model")
    assert page.startswith("# Title\n\n{download}`Download this notebook <")
    assert "/examples/notebooks/first_model.ipynb>`" in page
    assert "[files](../guide/files.md) and [another](moving.md)" in page
    assert "    print(i)\n```\n" in page
    assert "```text\n0\n1\n```\n" in page
    assert "style" not in page
    assert "    <td>1</td>" in page


def test_the_quantiles_of_the_gallery_follow_the_truth():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    example = runpy.run_path(str(ROOT / "examples" / "gallery" / "plot_regression.py"))
    plt.close("all")
    grid = example["grid"]
    truth = example["truth"](grid[:, 0])
    median = example["quantiles"].predict(grid)[:, 1]
    # The noise has a standard deviation of 0.1 to 0.8. An overfitted median was 0.15 off.
    assert np.sqrt(np.mean((median - truth) ** 2)) < 0.08
    # It goes up and down as the truth does: an overfitted one had twice the way to go.
    assert np.abs(np.diff(median)).sum() < 1.15 * np.abs(np.diff(truth)).sum()


def test_the_demo_says_where_boosted_trees_win(monkeypatch):
    pytest.importorskip("rich")
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import demo

    assert "rectangles" in {data.name for data in demo.datasets()}
    scores = {"digits": (0.97, 0.99), "rectangles": (0.74, 0.65)}
    results = [
        demo.Result(demo.Dataset(name, "R²", *[None] * 4), model, None, score, 1.0)
        for name, pair in scores.items()
        for model, score in zip(("Boosted trees", "RFRBoost"), pair, strict=True)
    ]
    text = demo.summary(results)
    assert "better than boosted trees on 1 of 2: digits. On digits it leaves 67% less" in text
    assert "Boosted trees are as good or better on: rectangles." in text


#: words that were hard to understand, or that the field has another word for
UNPLAIN = re.compile(
    r"\baloud\b|\bso many\b|\bmanieth\b|what to compare by|\bof your own\b|\bquestion by question\b"
)


def test_texts_use_plain_words():
    package = ROOT / "src" / "rfrboost"
    texts = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("guide/*.md")]
    for path in [*texts, *DOCS.glob("extend/*.md"), *package.rglob("*.py")]:
        found = UNPLAIN.findall(path.read_text(encoding="utf-8"))
        assert not found, (path.relative_to(ROOT), found)


def test_pages_for_users_say_radial_features():
    pages = [ROOT / "README.md", *DOCS.glob("guide/*.md")]
    pages += [DOCS / name for name in ("index.md", "start.md", "when.md", "cli.md", "automatic.md")]
    for path in pages:
        # The name of the family, "bumps", is part of the interface and stands in quotes.
        words = re.findall(r'(?<!")\b[Bb]umps?\b(?!")', path.read_text(encoding="utf-8"))
        assert not words, path.relative_to(ROOT)


def test_the_glossary_has_the_words_of_trees_and_fits():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = set(re.findall(r"^(\S.*)\n: ", text, re.MULTILINE))
    wanted = {"tree", "forest", "leaf", "split of a tree", "compress", "snapshot", "callback"}
    assert wanted | {"missing value", "overfitting", "early stopping"} <= terms
