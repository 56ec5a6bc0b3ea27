"""``rfrboost explain``: which columns matter to a model, on the rows of a table."""

from collections.abc import Iterable
from contextlib import nullcontext

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
    with (
        nullcontext() if out is None else table_writer(out) as write,
        progress("Shuffling", len(columns), "columns") as advance,
    ):
        effects = total_effects(fitted, frame, seed, advance)
        order = np.argsort(-effects, kind="stable")
        names, effects = np.array(columns, dtype=str)[order], effects[order]
        if write is not None:
            write({"column": names, "effect": effects})
    if out is None:
        say(f"The share of the predictions' variance on {len(frame):,} rows that a column moves.")
        show(names, effects)


def show(names: np.ndarray, effects: np.ndarray) -> None:
    """A bar for every column."""
    lengths = np.round(BAR * effects / max(effects[0], 1e-300)).astype(int)
    rows = [
        [name, f"{effect:.4f}", "█" * length]
        for name, effect, length in zip(names, effects, lengths, strict=True)
    ]
    show_table(["column", "effect", ""], rows)


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
