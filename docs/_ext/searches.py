"""What people search for on the site, and what is wrong with an index that does not find it."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

#: what people search for, and a page that has to be among the pages found
SEARCHES = {
    "missing values": "guide/tables",
    "out-of-fold": "guide/fits",
    "early stopping": "guide/fits",
    "class imbalance": "guide/weights",
    "imbalanced": "guide/weights",
    "class_weight": "guide/weights",
    "hyper-parameters": "guide/single",
    "hyperparameter": "guide/single",
    "hyperparameter tuning": "guide/single",
    "overfitting": "guide/fits",
    "callbacks": "guide/fits",
    "n_jobs": "guide/fits",
    "cross-validation": "guide/fits",
    "feature importance": "guide/explain",
    "prediction interval": "guide/intervals",
    "one-hot encoding": "guide/tables",
    "categorical": "guide/tables",
    "CatBoost": "notebooks/moving",
    "forecasting": "notebooks/forecasting",
}
#: pages of modules whose names may change
PRIVATE = "internals/"


def public(pages: Iterable[str]) -> list[str]:
    """The pages that the search may list."""
    return [page for page in pages if not page.startswith(PRIVATE)]


def faults(index: Mapping[str, Any], stem: Callable[[str], str]) -> list[str]:
    """What is wrong with a search index: private pages, private objects, words not found.

    ``index`` has the keys that Sphinx writes: "docnames", "terms" and "titleterms" (a number of a
    page, or a list of such numbers, for every stemmed word) and "objects" (by their module).
    """
    pages = index["docnames"]
    found = [f"{page} is listed" for page in pages if page not in public(pages)]
    found += [f"{name} is listed" for name in index["objects"] if "._" in name]
    for words, page in SEARCHES.items():
        for word in re.findall(r"\w+", words):
            holders = {
                p for key in ("terms", "titleterms") for p in numbers(index[key], stem(word))
            }
            # Short words that carry no meaning, such as "of", are in no index.
            if len(word) > 3 and page not in {pages[number] for number in holders}:
                found.append(f"{word!r} of {words!r} does not find {page}")
    return found


def numbers(terms: Mapping[str, int | list[int]], word: str) -> list[int]:
    """The numbers of the pages that have a word: Sphinx writes a list only if there are several."""
    value = terms.get(word, [])
    return [value] if isinstance(value, int) else value
