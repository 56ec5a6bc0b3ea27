"""``rfrboost demo``: the other commands, one after another, on a made-up table."""

import shlex
from pathlib import Path

import numpy as np
import pandas as pd

from rfrboost.cli.console import say
from rfrboost.cli.evaluate import evaluate
from rfrboost.cli.explain import explain
from rfrboost.cli.fit import fit
from rfrboost.cli.info import info
from rfrboost.cli.output import table_writer
from rfrboost.cli.predict import predict
from rfrboost.cli.request import Roles, Settings, Source

ROWS = 300
NEW_ROWS = 8
CLOSING = """
In this made-up table rents change smoothly with area, year and season, which suits rfrboost: its
error above is the lowest. Boosted trees win where a target jumps at thresholds or depends on
interacting categories, and they predict faster. `rfrboost evaluate` compares both on your table."""


def demo(folder: str) -> None:
    """Write a table of flats to a folder and run every command on it."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    known = str(place / "flats.csv")
    new = str(place / "new.csv")
    model = str(place / "flats.rfrboost")
    flats = made_up_flats(ROWS + NEW_ROWS, np.random.default_rng(0))
    write_csv(known, flats[:ROWS])
    write_csv(new, flats[ROWS:].drop(columns="rent"))
    say(
        f"Wrote {known} ({ROWS} flats with missing values, text and dates) and {new} "
        f"({NEW_ROWS} flats without rent)."
    )
    announce("evaluate", known, "--target", "rent")
    evaluate(Source(known), Roles("rent"), None, 5, Settings())
    announce("fit", known, "--target", "rent", "--out", model)
    fit(Source(known), Roles("rent"), model, Settings())
    announce("info", model)
    info(model)
    announce("explain", model, known)
    explain(model, Source(known), None, 1000, 0, protect=False)
    announce("predict", model, new)
    predict(model, Source(new), [], "-", False, None, protect=False)
    say(CLOSING)


def announce(*words: str) -> None:
    """Show a command before it runs."""
    say(f"\n$ rfrboost {shlex.join(words)}")


def made_up_flats(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Flats whose rent changes smoothly with size, year and season, in every district.

    One district and one year in 25 are missing.
    """
    area = rng.gamma(9, 8, n).round(1)
    district = rng.choice(["harbour", "hill", "market", "station"], n, p=[0.2, 0.2, 0.35, 0.25])
    built = rng.integers(1890, 2024, n).astype(float)
    day = rng.integers(0, 730, n)
    price = 9 + 3 * (district == "harbour") + 2 * (district == "hill") - 1 * (district == "station")
    # Old and new flats are dearer than those between, large ones cheaper per square metre.
    year = 0.8 + 0.4 * ((built - 1960) / 64) ** 2
    season = 1 + 0.06 * np.sin(2 * np.pi * day / 365.25)
    rent = 2 * area**0.85 * price * year * season * np.exp(rng.normal(0, 0.03, n))
    flats = pd.DataFrame(
        {
            "area": area,
            "district": district,
            "built": built,
            "let": np.datetime_as_string(np.datetime64("2022-01-01") + day),
            "rent": rent.round(2),
        }
    )
    for column in ("district", "built"):
        flats.loc[rng.random(n) < 0.04, column] = None
    return flats


def write_csv(path: str, frame: pd.DataFrame) -> None:
    """Write a data frame as CSV, with empty cells for missing values."""
    with table_writer(path) as write:
        write(
            {
                name: frame[name].astype(object).where(frame[name].notna(), "").to_numpy()
                for name in frame
            }
        )
