"""``rfrboost compress``: from a model file and a table to a smaller model file."""

import os

import pandas as pd

from rfrboost.cli.console import CommandError, counted, duration, heartbeat, say
from rfrboost.cli.explain import frames
from rfrboost.cli.fit import check_model_path
from rfrboost.cli.info import compressed
from rfrboost.cli.notices import warnings_said
from rfrboost.cli.output import named, refuse_overwriting
from rfrboost.cli.predict import load_predictor
from rfrboost.cli.reading.tables import open_table
from rfrboost.cli.request import Source
from rfrboost.cli.signature import read_signature


def compress(
    model: str,
    table: Source,
    out: str,
    tolerance: float | None,
    size: int | None,
    training_rows: bool,
) -> None:
    """Write a smaller model, which imitates the model on all rows of a table."""
    check_model_path(out)
    refuse_overwriting(out, table.path, model)
    fitted = load_predictor(model)
    if not hasattr(fitted, "compress"):
        raise CommandError(f"{model} contains {type(fitted).__name__}, which has no smaller form.")
    signature = read_signature(model)
    with open_table(table) as opened:
        columns = signature.columns(opened.columns, opened.name)
        blocks = list(frames(opened, columns, signature.by_name(columns)))
        if not blocks:
            raise CommandError(f"{opened.name} has no rows to imitate the model on.")
    rows = pd.concat(blocks, ignore_index=True)
    say(f"Imitating {model} on {counted(len(rows), 'row')}.")
    with warnings_said(), heartbeat(lambda seconds: f"Compressing: {duration(seconds)}."):
        smaller = fitted.compress(rows, tolerance=tolerance, size=size, training_rows=training_rows)
    found = smaller.compression_
    say(f"Kept {compressed(vars(found))}.")
    if found.features == found.features_before:
        say("No smaller model keeps the tolerance: this one is a copy.")
    with named(out):
        smaller.save(out)
    before, after = (os.path.getsize(path) / 1e6 for path in (model, out))
    say(f"Wrote {out} ({after:.2f} MB, the model has {before:.2f} MB).")
