"""Figures on pages are those of the committed result files, and no figure is without a source."""

import re
from pathlib import Path

import pytest
from figures import agree, claims, number_in, on_one_line, settings, value_of

ROOT = Path(__file__).parent.parent.parent
CLAIMS = claims()
#: pages that state results; numbers with a decimal point must be claims or settings on them
PAGES = sorted({claim.page for claim in CLAIMS})


def text_of(page: str) -> str:
    return on_one_line((ROOT / page).read_text(encoding="utf-8"))


def prose(page: str) -> str:
    """The page without code, formulas, links and included files."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for pattern in (r"```.*?```", r"\$\$.*?\$\$", r"\$[^$\n]*\$", r"`[^`]*`", r"\]\([^)]*\)"):
        text = re.sub(pattern, " ", text, flags=re.DOTALL)
    return on_one_line(text)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: f"{c.page}: {c.plain[:60]}")
def test_figures_are_those_of_the_result_files(claim):
    assert on_one_line(claim.plain) in text_of(claim.page)
    assert claim.figures
    for figure, source in zip(claim.figures, claim.sources, strict=True):
        value = value_of(source)
        assert agree(figure, value), f"{figure} is {value} in {source}"


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_of_a_page_has_a_source(page):
    known = [c.plain for c in CLAIMS if c.page == page] + settings().get(page, [])
    left = prose(page)
    # Longer ones first: a short one may be part of a long one.
    for text in sorted((on_one_line(t) for t in known), key=len, reverse=True):
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", text)
        assert on_one_line(plain) in left or text in text_of(page), text
        left = left.replace(on_one_line(plain), " ")
    assert re.findall(r"\S*\d\.\d+\S*", left) == []


def test_settings_are_on_their_pages():
    for page, texts in settings().items():
        assert page in PAGES
        for text in texts:
            assert on_one_line(text) in text_of(page), text


@pytest.mark.parametrize(
    ("figure", "value", "right"),
    [
        ("0.427", 0.4269, True),
        ("0.427", 0.4281, False),
        ("551", 550.8, True),
        ("552", 550.8, False),
        ("1,150", 1150.2, True),
        ("91.1 %", 0.911, True),
        ("91.2 %", 0.911, False),
        ("12 %", 0.119, True),
        ("0.862", 0.8615, True),
        ("1e-5", 1e-5, True),
        ("1e-5", 2e-5, False),
        ("−0.48", -0.4773, True),
        ("−0.48", 0.4773, False),
    ],
)
def test_figures_are_compared_by_the_digits_they_have(figure, value, right):
    assert agree(figure, value) == right


def test_sentences_are_found_across_lines():
    text = "rows cost\n11.9% more than\nthe cheapest"
    assert number_in(text, "cost {} more than the cheapest") == pytest.approx(0.119)
