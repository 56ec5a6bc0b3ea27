"""``rfrboost demo``: the other commands in turn, on a table made up for it."""

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

ROWS, NEW_ROWS = 300, 8


def demo(folder: str) -> None:
    """Write a table and walk through it."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    known, new, model = (str(place / name) for name in ("flats.csv", "new.csv", "flats.rfrboost"))
    flats = made_up_flats(ROWS + NEW_ROWS, np.random.default_rng(0))
    write_csv(known, flats[:ROWS])
    write_csv(new, flats[ROWS:].drop(columns="rent"))
    say(f"Wrote {known}, {ROWS} flats with holes, text and dates, and {new}, {NEW_ROWS} more.")
    announce("evaluate", known, "--target", "rent")
    evaluate(known, "rent", None, None, [], 5, None, 0)
    announce("fit", known, "--target", "rent", "--out", model)
    fit(known, "rent", model, None, [], None, 0)
    announce("info", model)
    info(model)
    announce("explain", model, known)
    explain(model, known, None, 1000, 0)
    announce("predict", model, new)
    predict(model, new, "-", False, None)


def announce(*words: str) -> None:
    """Show a command before it runs."""
    say(f"\n$ rfrboost {shlex.join(words)}")


def made_up_flats(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Flats whose rent depends on size, district, age and season, with a tenth of cells empty."""
    area = rng.gamma(9, 8, n).round(1)
    district = rng.choice(["harbour", "hill", "market", "station"], n, p=[0.2, 0.2, 0.35, 0.25])
    built = rng.integers(1890, 2024, n).astype(float)
    day = rng.integers(0, 730, n)
    price = 9 + 3 * (district == "harbour") + 2 * (district == "hill") - 1 * (district == "station")
    season = 40 * np.sin(2 * np.pi * day / 365.25)
    rent = area * price * (1 + 0.15 * (built > 1990)) + season + rng.normal(0, 30, n)
    flats = pd.DataFrame(
        {
            "area": area,
            "district": district,
            "built": built,
            "let": np.datetime_as_string(np.datetime64("2022-01-01") + day),
            "rent": rent.round(2),
        }
    )
    for column in ("area", "district", "built"):
        flats.loc[rng.random(n) < 0.1, column] = None
    return flats


def write_csv(path: str, frame: pd.DataFrame) -> None:
    """A frame as a file, with empty cells for holes."""
    with table_writer(path) as write:
        write(
            {
                name: frame[name].astype(object).where(frame[name].notna(), "").to_numpy()
                for name in frame
            }
        )
