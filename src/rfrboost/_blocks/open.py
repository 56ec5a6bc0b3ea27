"""From row blocks to chunks, the form in which a fit takes its rows."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rfrboost._blocks.reader import BlockArrays
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._rows.chunks import NEGLIGIBLE_WEIGHT, Chunk, Chunks, facts_of
from rfrboost._rows.spill import Spill
from rfrboost._rows.streamed import Streamed
from rfrboost._typing import Array

# If the largest weight is above 2 to this power, or below its inverse, sums with unscaled weights
# may have overflowed or underflowed (floats end at 2^1024), and are taken again.
MOST_EXPONENT = 500


@contextmanager
def open_blocks(source: BlockArrays, sizes: Sizes = SIZES) -> Iterator[Streamed]:
    """All rows of the source in chunks, read once and checked; temporary files are removed at the
    end."""
    spill = Spill(source.blocks.spill_dir, source.blocks.disk_budget)
    with spill.open_files:
        chunks = Streamed(source, spill, sizes)
        if source.weighted:
            # Weights are divided by a power of two, as those of rows in memory are.
            exponent = int(np.frexp(source.largest_weight)[1])
            least = least_weight(source.largest_weight)
            if source.smallest_weight <= least:
                source.drop_below(least)
                chunks.close_inputs()
                chunks = Streamed(source, spill, sizes)
            scale_weights(chunks, exponent)
        yield chunks


def scale_weights(chunks: Chunks, exponent: int) -> None:
    """Divide weights by a power of two; facts that may have overflowed are found anew."""
    chunks.set("w", scaled_weights, -exponent)
    if abs(exponent) > MOST_EXPONENT:
        chunks.facts = chunks.total(facts_of)


def least_weight(largest: float) -> float:
    """The weight up to which a row is left out, given the largest weight."""
    return float(np.ldexp(NEGLIGIBLE_WEIGHT, int(np.frexp(largest)[1])))


def scaled_weights(chunk: Chunk, exponent: int) -> Array:
    """Weights times a power of two."""
    assert chunk.w is not None
    return np.ldexp(chunk.w, exponent)
