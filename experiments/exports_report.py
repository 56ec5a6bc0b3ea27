"""The text of ``exports``: what is equal, what is not and by how much, table by table."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.comparison import markdown_table
from experiments.datasets import Table
from experiments.exported import FITTED_ON, LOADED_ON, Exported

# What exported models are asked for (single precision has seven digits).
CLOSE = 1e-5
HEADER = f"""\
# Models in files and in ONNX

Our estimators as they come, fitted on random rows of raw tables, holes and categories as they are,
and asked for other rows. *Loaded*: saved, and loaded by a new process with {LOADED_ON} threads
and not {FITTED_ON}. *ONNX*: `to_onnx` in onnxruntime, fed with single precision, beside the model
on the same rounded inputs; *rounding* is how far that is from the model on the table itself: digits
that single precision does not have (`to_onnx(dtype="float64")` keeps them). Differences are the
largest over rows, of numbers in units of the predictions' standard deviation, of classes between
probabilities.
"""


def report(tables: list[Table], found: dict[int, Exported], failures: dict[str, str]) -> str:
    """All of it as markdown."""
    known = {table: found[table.id] for table in tables if table.id in found}
    parts = [HEADER, f"{len(known)} of {len(tables)} tables were exported.\n"]
    parts += [f"{name} failed: {said}\n" for name, said in failures.items()]
    if known:
        rows = [table_row(table, of) for table, of in known.items()]
        parts += [summary(known), "## Table by table\n", markdown_table(pd.DataFrame(rows))]
    return "\n".join(parts)


def summary(known: dict[Table, Exported]) -> str:
    """The figures that matter, one line each."""
    exported = {table: of.onnx for table, of in known.items() if of.onnx is not None}
    equal = sum(of.loaded_equal for of in known.values())
    lines = [
        f"Loaded: equal to the bit on {equal} of {len(known)}; largest difference "
        f"{worst(known, lambda of: of.loaded)}."
    ]
    if exported:
        close = sum(value <= CLOSE for value in exported.values())
        typical = np.median(list(exported.values()))
        lines.append(
            f"ONNX: within {CLOSE:.0e} on {close} of {len(exported)}; largest difference "
            f"{worst(known, lambda of: of.onnx)}, median {typical:.1e}."
        )
    beyond = [table.name for table, value in exported.items() if value > CLOSE]
    lines += [f"Beyond {CLOSE:.0e}: {', '.join(beyond)}."] if beyond else []
    lines += [f"Refused: {t.name}: {of.refused}" for t, of in known.items() if of.refused]
    sizes = np.array([of.model_bytes for of in known.values()]) / 1e6
    lines.append(
        f"Model files: {np.median(sizes):.2f} MB in the median, {sizes.max():.2f} at most."
    )
    return "".join(f"- {line}\n" for line in lines)


def worst(known: dict[Table, Exported], figure: Callable[[Exported], float | None]) -> str:
    """The largest figure, and whose it is."""
    value, name = max((figure(of) or 0.0, table.name) for table, of in known.items())
    return f"{value:.1e} ({name})" if value else "0"


def table_row(table: Table, of: Exported) -> dict[str, object]:
    """One table."""
    return {
        "table": f"{table.id} {table.name}",
        "rows": of.rows,
        "other rows": of.other_rows,
        "columns": of.columns,
        "classes": of.classes or "–",
        "loaded": "equal" if of.loaded_equal else f"{of.loaded:.1e}",
        "ONNX": "refused" if of.onnx is None else f"{of.onnx:.1e}",
        "rounding": "–" if of.rounding is None else f"{of.rounding:.1e}",
        "model, kB": round(of.model_bytes / 1e3),
        "ONNX, kB": "–" if of.onnx_bytes is None else round(of.onnx_bytes / 1e3),
    }
