"""``rfrboost explain``: how much each column matters to a model's predictions for a table.

A column's total effect is the share of the variance of the predictions that depends on it, by
Jansen's estimate. No labels are needed. To know what the score of a model would lose without a
column, use scikit-learn's ``permutation_importance`` instead.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from rfrboost.cli.console import Advance, CommandError, progress, say, show_table
from rfrboost.cli.output import refuse_overwriting, table_writer
from rfrboost.cli.predict import load_predictor
from rfrboost.cli.reading.columns import prediction_frame
from rfrboost.cli.reading.tables import OpenTable, open_table
from rfrboost.cli.request import Source
from rfrboost.cli.signature import Held, read_signature

# Characters of the longest bar.
BAR = 30


def explain(
    model: str, table: Source, out: str | None, rows: int, seed: int, protect: bool
) -> None:
    """Show the total effect of every column, largest first, or write it to ``out``."""
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
        progress("Shuffling", len(columns), "columns") as advance,
    ):
        effects = total_effects(fitted, frame, seed, advance)
        order = np.argsort(-effects, kind="stable")
        names = np.array(columns, dtype=str)[order]
        effects = effects[order]
        if write is not None:
            write({"column": names, "effect": effects})
    if out is None:
        say(
            "Effect: the share of the variance of the predictions that depends on a column "
            f"({len(frame):,} rows)."
        )
        show(names, effects)


def show(names: np.ndarray, effects: np.ndarray) -> None:
    """Print a bar for every column."""
    lengths = np.round(BAR * effects / max(effects[0], 1e-300)).astype(int)
    rows = [
        [name, f"{effect:.4f}", "█" * length]
        for name, effect, length in zip(names, effects, lengths, strict=True)
    ]
    show_table(["column", "effect", ""], rows)


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


def total_effects(model: Any, frame: pd.DataFrame, seed: int, advance: Advance) -> np.ndarray:
    """The total effect of each column, (n_columns,).

    With f the predictions and f_j those after column j was shuffled, it is
    E‖f − f_j‖² / (2·Var f): Jansen's estimate. It counts what a column does alone and together
    with others, so effects may add up to more than 1. Columns that carry the same information
    share their effect.
    """
    rng = np.random.default_rng(seed)
    predicted = outputs(model, frame)
    variance = predicted.var(axis=0).sum()
    effects = np.zeros(frame.shape[1])
    for j, name in enumerate(frame.columns):
        shuffled = frame.copy(deep=False)
        shuffled[name] = frame[name].to_numpy()[rng.permutation(len(frame))]
        if variance > 0:
            change = ((outputs(model, shuffled) - predicted) ** 2).sum(axis=1).mean()
            effects[j] = change / (2 * variance)
        advance(1)
    return effects


def outputs(model: Any, frame: pd.DataFrame) -> np.ndarray:
    """Predicted numbers or probabilities, (n_rows, n_outputs)."""
    values = model.predict_proba(frame) if is_classifier(model) else model.predict(frame)
    return np.asarray(values, dtype=float).reshape(len(frame), -1)
