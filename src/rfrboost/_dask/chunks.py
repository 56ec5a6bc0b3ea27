"""Chunks of rows on the workers of a Dask cluster.

What the rows of a chunk have under a name is one future. A sum is a task a chunk and a tree of
additions; setting something is a task a chunk whose result takes the place of the one before. The
client has the chunks' sizes and what the sums come to, and nothing that grows with the rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Future

from rfrboost._dask.cluster import Call, Cluster
from rfrboost._numerics.sizes import SIZES, Sizes
from rfrboost._numerics.threads import BLAS
from rfrboost._rows.chunks import Chunk, FeatureCache, facts_of


class DaskChunks:
    """Chunks with ``lengths`` rows each. ``fields`` has one future per chunk for every name."""

    remembers = True

    def __init__(
        self,
        cluster: Cluster,
        lengths: list[int],
        fields: dict[str, list[Future]],
        sizes: Sizes = SIZES,
    ) -> None:
        self.cluster = cluster
        self.fields = fields
        self.sizes = sizes
        firsts = np.cumsum([0, *lengths[:-1]]).tolist()
        self.places = list(zip(firsts, lengths, strict=True))
        self.facts = self.total(facts_of)

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.cluster.total(self._visited(None, function, args))

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        self.fields[name] = self._visited(name, function, args)

    def _visited(
        self, name: str | None, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> list[Future]:
        """What the function makes of every chunk, to be kept under a name or summed."""
        call = Call(function, (name, tuple(self.fields), args, self.sizes))
        return self.cluster.map(visit, call, self.places, *self.fields.values())


def visit(call: Call, place: tuple[int, int], *values: Any) -> Any:
    """Put a chunk together from its values, and call the function with it."""
    name, names, args, sizes = call.args
    chunk = Chunk(*place, FeatureCache(0), sizes)
    chunk.w = None
    for own, value in zip(names, values, strict=True):
        # What is set anew may be changed in place, so that it must not be anybody else's.
        setattr(chunk, own, np.array(value, order="K") if own == name else value)
    # As many tasks as a worker has threads are at work already; and one thread rounds one way.
    with BLAS.entered():
        return call.function(chunk, *args)
