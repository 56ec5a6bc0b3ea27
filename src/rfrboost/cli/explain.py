"""``rfrboost explain``: how much each column matters to a model's predictions for a table.

The shares are those of :func:`rfrboost.inspection.importances`, at rows of the table.
"""

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pandas as pd

from rfrboost.cli.console import CommandError, duration, heartbeat, say, show_table
from rfrboost.cli.output import refuse_overwriting, table_writer
from rfrboost.cli.predict import load_predictor
from rfrboost.cli.reading.columns import prediction_frame
from rfrboost.cli.reading.tables import OpenTable, open_table
from rfrboost.cli.request import Source
from rfrboost.cli.signature import Held, read_signature
from rfrboost.inspection import importances

# Characters of the longest bar.
BAR = 30


def explain(
    model: str, table: Source, out: str | None, rows: int, seed: int, protect: bool
) -> None:
    """Show the share of every column, largest first, or write it to ``out``."""
    if out is not None:
        refuse_overwriting(out, table.path, model)
    fitted = load_predictor(model)
    signature = read_signature(model)
    with open_table(table) as opened:
        columns = signature.columns(opened.columns, opened.name)
        blocks = frames(opened, columns, signature.by_name(columns))
        frame = sampled(blocks, rows, seed)
        if frame is None or len(frame) < 2:
            raise CommandError(f"{opened.name} has fewer than 2 rows, too few to explain a model.")
    with (
        nullcontext() if out is None else table_writer(out, protect) as write,
        heartbeat(lambda seconds: f"Shuffling columns: {duration(seconds)}."),
    ):
        found = importances(fitted, frame)
        names = np.array(list(found), dtype=str)
        shares = np.array(list(found.values()))
        if write is not None:
            write({"column": names, "share": shares})
    if out is None:
        say(
            "Share: how much shuffling a column changes the predictions, of the sum over all "
            f"columns ({len(frame):,} rows)."
        )
        show(names, shares)


def show(names: np.ndarray, shares: np.ndarray) -> None:
    """Print a bar for every column."""
    lengths = np.round(BAR * shares / max(shares[0], 1e-300)).astype(int)
    rows = [
        [name, f"{share:.4f}", "█" * length]
        for name, share, length in zip(names, shares, lengths, strict=True)
    ]
    show_table(["column", "share", ""], rows)


def frames(table: OpenTable, columns: list[str], held: dict[str, Held]) -> Iterator[pd.DataFrame]:
    """The blocks of a table as data frames."""
    before = 0
    for block in table.blocks(columns):
        yield prediction_frame(block, held, before)
        before += block.num_rows


def sampled(blocks: Iterator[pd.DataFrame], rows: int, seed: int) -> pd.DataFrame | None:
    """Sample at most ``rows`` rows without replacement in one pass; None without a block.

    Every row gets a random key, and the rows with the smallest keys are kept.
    """
    rng = np.random.default_rng(seed)
    kept = None
    keys = np.empty(0)
    for block in blocks:
        kept = block if kept is None else pd.concat([kept, block], ignore_index=True)
        keys = np.append(keys, rng.random(len(block)))
        chosen = np.sort(np.argsort(keys, kind="stable")[:rows])
        kept = kept.iloc[chosen].reset_index(drop=True)
        keys = keys[chosen]
    return kept
