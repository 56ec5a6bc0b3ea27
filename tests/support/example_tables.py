"""Tables of every kind of column, made up by hypothesis, in every form that users have them in."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

from rfrboost._tables.fit import fit_encoder

NUMBERS = st.floats(-1e30, 1e30, allow_subnormal=True)
DATES = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(
    lambda d: d.replace(microsecond=0)
)
CELLS = {
    "number": NUMBERS,
    "few numbers": st.sampled_from([0.0, 1.0, 1e-300]),
    "whole": st.integers(-(2**40), 2**40),
    "flag": st.booleans(),
    "text": st.sampled_from(["a", "b", "1", "ü", ""]),
    "date": DATES,
    "day": st.dates(datetime(2019, 1, 1).date(), datetime(2024, 1, 1).date()).map(
        lambda d: datetime(d.year, d.month, d.day)
    ),
    "constant": st.just(3.0),
}


@st.composite
def columns(draw):
    """A dict of lists: names, and cells of one kind, some of them None."""
    n = draw(st.integers(2, 25))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=5))
    table = {}
    for j, kind in enumerate(kinds):
        cell = st.one_of(CELLS[kind], st.none()) if draw(st.booleans()) else CELLS[kind]
        table[f"{kind} {j}"] = draw(st.lists(cell, min_size=n, max_size=n))
    return table


def as_pandas(table):
    return pd.DataFrame({name: pd.Series(cells) for name, cells in table.items()})


def as_polars(table):
    return pl.DataFrame({name: pl.Series(cells, strict=False) for name, cells in table.items()})


def as_objects(table):
    array = np.empty((len(next(iter(table.values()))), len(table)), dtype=object)
    for j, cells in enumerate(table.values()):
        array[:, j] = cells
    return array


def chosen(table, rows):
    return {name: [cells[i] for i in rows] for name, cells in table.items()}


def fitted(X, y, w=None, task="regression", seed=0):
    """The encoder and the encoded table."""
    return fit_encoder(X, y, w, task, np.random.default_rng(seed))


def many_levels(n=400, n_levels=40, seed=0):
    """A frame with a column of many levels, whose effects make up half of y's variance."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, n)
    frame = pd.DataFrame({"x": rng.normal(size=n), "city": [f"c{i}" for i in codes]})
    return frame, rng.normal(size=n_levels)[codes] + rng.normal(size=n)
