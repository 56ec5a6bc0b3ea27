"""From row blocks to chunks, the form in which a fit takes its rows; and their targets' units."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from rfrboost._blocks.reader import BlockArrays, ClassBlockArrays
from rfrboost._blocks.row_blocks import RowBlocks
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import Chunk, Chunks, Facts
from rfrboost._rows.spill import Spill
from rfrboost._rows.streamed import Streamed
from rfrboost._rows.units import NEGLIGIBLE_WEIGHT, TargetScale, check_extent, coded
from rfrboost._typing import Array


@contextmanager
def open_blocks(source: BlockArrays, sizes: Sizes = SIZES) -> Iterator[Streamed]:
    """All rows of the source in chunks, read once and checked; temporary files end with it."""
    spill = Spill(source.blocks.spill_dir, source.blocks.disk_budget)
    with spill.open_files:
        chunks = Streamed(source, spill, sizes)
        if source.weighted:
            # Divided by a power of two, so that equal weights of any size give the same bits.
            exponent = int(np.frexp(source.largest_weight)[1])
            least = float(np.ldexp(NEGLIGIBLE_WEIGHT, exponent))
            if source.smallest_weight <= least:
                source.drop_below(least)
                chunks.close_inputs()
                chunks = Streamed(source, spill, sizes)
            chunks.set("w", scaled_weights, -exponent)
        largest = np.maximum(chunks.facts.x_high, -chunks.facts.x_low)
        check_extent(largest, None if source.encoder else source.names)
        yield chunks


def scaled_weights(chunk: Chunk, exponent: int) -> Array:
    """Weights times a power of two."""
    assert chunk.w is not None
    return np.ldexp(chunk.w, exponent)


def shrunk_targets(chunk: Chunk, scale: TargetScale) -> Array:
    """Targets in the unit of the fit."""
    return scale.shrink(chunk.y)


def coded_labels(chunk: Chunk, places: np.ndarray, n_classes: int) -> Array:
    """Numbers of labels as columns of zeros and ones; ``places`` sorts the labels."""
    return coded(places[chunk.y[:, 0].astype(np.intp)], n_classes)


def extremes(facts: Facts) -> Array:
    """The least and the largest target of every column, an array (2, k)."""
    return np.vstack([facts.y_low, facts.y_high])


def set_classes(chunks: Chunks, source: ClassBlockArrays) -> np.ndarray:
    """Turn labels into columns of zeros and ones, held-out rows' too; the classes, sorted."""
    classes, places = source.classes()
    k = 1 if len(classes) == 2 else len(classes)
    chunks.set("y", coded_labels, places, len(classes))
    chunks.facts = replace(chunks.facts, y_low=np.zeros(k), y_high=np.ones(k))
    if source.held is not None:
        source.held.y = coded(places[source.held.y[:, 0].astype(np.intp)], len(classes))
    return classes


def check_blocks(estimator: Any, *others: Any) -> None:
    """Refuse other arguments of ``fit``, and parameters, that row blocks cannot be fitted with."""
    if any(other is not None for other in others):
        raise ValueError(
            "RowBlocks hold the targets and weights themselves: call fit(blocks), without y, "
            "sample_weight, X_val or y_val."
        )
    if estimator.get_params(deep=False).get("sample_splitting"):
        raise ValueError(
            "sample_splitting shuffles all rows, which must be in memory for that: pass arrays "
            "instead of RowBlocks, or set sample_splitting=False."
        )


def is_blocks(X: Any) -> bool:
    """Whether X is row blocks."""
    return isinstance(X, RowBlocks)
