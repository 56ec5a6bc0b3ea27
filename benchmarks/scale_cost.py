"""The cost model of a streamed fit: flops, activations and bytes per row and layer.

For squared error with p features per layer, D columns and one target. A layer takes three passes
over the rows: features and their Gram; features again, the update of Φ and its Gram; predictions
and the loss. Features are in single precision, everything else in double precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from rfrboost._model.network import centered
from rfrboost._numerics.blas import gram, product
from rfrboost._numerics.sizes import BATCH_ROWS as BLOCK_ROWS
from rfrboost._rows.spill import Spill, SpillFile

# Bytes of a number in double precision.
DOUBLE = 8
# Bytes per row of its bin and two keys, which both draws of a layer read.
ORDER = 4 + 2 * DOUBLE
# Rows of a chunk, and the number of chunks that are written and read to measure the disk: more than
# any processor cache holds.
CHUNK = 65_536
CHUNKS = 16


@dataclass(frozen=True)
class RowCost:
    """The cost of one row in one layer."""

    feature_flops: float
    gram_flops: float
    activations: float
    bytes_read: float
    bytes_written: float
    centered: float

    @property
    def flops(self) -> float:
        return self.feature_flops + self.gram_flops


def row_cost(D: int, p: int) -> RowCost:
    """The cost of a row, counted from the algorithm."""
    x, phi, y = D * DOUBLE, (D + 1) * DOUBLE, DOUBLE
    return RowCost(
        # Two passes of features of x and Φ, together p, and their products with residuals.
        feature_flops=2 * 2 * (D + 1) * p + 2 * p * 2 + 2 * p,
        gram_flops=p * (p + 1),
        activations=2 * p,
        bytes_read=2 * (x + phi + y) + (phi + y) + 2 * ORDER,
        bytes_written=phi,
        centered=2,
    )


@dataclass(frozen=True)
class Rates:
    """Amounts of work per second on this machine, at the shapes of the fit."""

    feature_flops: float
    gram_flops: float
    activations: float
    bytes: float
    centered: float

    def seconds(self, cost: RowCost) -> float:
        """The predicted seconds per row and layer."""
        return (
            cost.feature_flops / self.feature_flops
            + cost.gram_flops / self.gram_flops
            + cost.activations / self.activations
            + (cost.bytes_read + cost.bytes_written) / self.bytes
            + cost.centered / self.centered
        )


def per_second(amount: float, call: Callable[[], object], repeats: int = 5) -> float:
    """``amount`` ÷ the median seconds of several calls."""
    call()
    times = []
    for _ in range(repeats):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return amount / float(np.median(times))


def measured_rates(D: int, p: int) -> Rates:
    """The rate of each kind of work by itself, in batches or chunks as in the fit."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((BLOCK_ROWS, D + 1)).astype(np.float32)
    B = rng.standard_normal((D + 1, p // 2)).astype(np.float32)
    F = np.asfortranarray(rng.standard_normal((BLOCK_ROWS, p)), np.float32)
    half, X = F[:, : p // 2], rng.standard_normal((CHUNK, D))
    spill = Spill(None, 1e12)
    file = SpillFile(spill, X)

    def there_and_back() -> None:
        for k in range(CHUNKS):
            file.write(k * CHUNK, X)
        for k in range(CHUNKS):
            file.read(k * CHUNK, CHUNK)

    moved = per_second(2 * CHUNKS * X.nbytes, there_and_back, 2)
    spill.open_files.close()
    return Rates(
        feature_flops=per_second(2 * BLOCK_ROWS * (D + 1) * (p // 2), lambda: product(z, B, half)),
        gram_flops=per_second(BLOCK_ROWS * p * (p + 1), lambda: gram(F)),
        activations=per_second(BLOCK_ROWS * p, lambda: np.tanh(F, out=F)),
        bytes=moved,
        centered=per_second(CHUNK, lambda: centered(X, X[0])),
    )
