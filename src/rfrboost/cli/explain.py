"""``rfrboost explain``: which columns matter to a model, on the rows of a table."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
import pyarrow as pa

from rfrboost.cli.console import progress, say, show_table
from rfrboost.cli.errors import CommandError
from rfrboost.cli.frames import prediction_frame
from rfrboost.cli.importances import total_effects
from rfrboost.cli.output import table_writer
from rfrboost.cli.predict import load_predictor
from rfrboost.cli.signature import read_signature
from rfrboost.cli.tables import open_table

BAR = 30


def explain(model: str, table: str, out: str | None, rows: int, seed: int) -> None:
    """Show the total effect of every column, largest first."""
    fitted, signature = load_predictor(model), read_signature(model)
    with open_table(table) as opened:
        columns = signature.columns(opened.columns, opened.name)
        kinds = signature.kinds(columns)
        frame = sampled(frames(opened.blocks(columns), kinds), rows, seed)
        if frame is None or len(frame) < 2:
            raise CommandError(f"{opened.name} has too few rows to explain a model by.")
    with progress("Shuffling", len(columns), "columns") as advance:
        effects = total_effects(fitted, frame, seed, advance)
    say(
        f"Shares of the predictions' variance on {len(frame):,} rows that shuffling a column moves."
    )
    order = np.argsort(-effects, kind="stable")
    if out is None:
        largest = max(effects.max(), 1e-300)
        bars = ["█" * round(BAR * effects[j] / largest) for j in order]
        rows_shown = [
            [columns[j], f"{effects[j]:.4f}", bar] for j, bar in zip(order, bars, strict=True)
        ]
        show_table(["column", "effect", ""], rows_shown)
        return
    with table_writer(out) as write:
        write({"column": np.array(columns, dtype=str)[order], "effect": effects[order]})


def frames(blocks: Iterable[pa.Table], kinds: dict[str, str]) -> Iterable[pd.DataFrame]:
    """The blocks as frames."""
    before = 0
    for block in blocks:
        yield prediction_frame(block, kinds, before)
        before += block.num_rows


def sampled(blocks: Iterable[pd.DataFrame], rows: int, seed: int) -> pd.DataFrame | None:
    """So many rows drawn without replacement in one pass: those with the smallest random keys."""
    rng = np.random.default_rng(seed)
    kept, keys = None, np.empty(0)
    for block in blocks:
        kept = block if kept is None else pd.concat([kept, block], ignore_index=True)
        keys = np.append(keys, rng.random(len(block)))
        chosen = np.sort(np.argsort(keys, kind="stable")[:rows])
        kept, keys = kept.iloc[chosen].reset_index(drop=True), keys[chosen]
    return kept
