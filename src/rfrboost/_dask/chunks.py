"""Chunks of rows on the workers of a Dask cluster.

The values of a chunk under one name are one future. A sum takes one task for each chunk and a tree
of additions; setting a value takes one task for each chunk, whose result replaces the former value.
The client holds the chunks' lengths and the sums, and nothing that grows with the rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rfrboost._dask.cluster import Call, Cluster, Futures
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
        fields: dict[str, Futures],
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
    ) -> Futures:
        """The function's result for every chunk, to be kept under ``name`` or (None) summed."""
        call = Call(function, (name, tuple(self.fields), args, self.sizes))
        return self.cluster.map(visit, call, self.places, *self.fields.values())


def visit(call: Call, place: tuple[int, int], *values: Any) -> Any:
    """On a worker: put a chunk together from its values, and call the function with it."""
    name, names, args, sizes = call.args
    chunk = Chunk(*place, FeatureCache(0), sizes)
    chunk.w = None
    for own, value in zip(names, values, strict=True):
        # A function may change the value that it replaces in place; other tasks need the old one.
        setattr(chunk, own, np.array(value, order="K") if own == name else value)
    # One BLAS thread: the worker's own threads are busy with other tasks, and rounding depends on
    # the number of threads.
    with BLAS.entered():
        return call.function(chunk, *args)
