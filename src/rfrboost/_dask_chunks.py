"""Chunks of rows on the workers of a Dask cluster.

What the rows of a chunk have under a name is one future. A sum is a task a chunk and a tree of
additions; setting something is a task a chunk whose result takes the place of the one before. The
client has the chunks' sizes and what the sums come to, and nothing that grows with the rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from distributed import Future

from rfrboost._chunks import facts_of
from rfrboost._dask_cluster import Call, Cluster
from rfrboost._rows import KeptFeatures, Rows
from rfrboost._threads import BLAS


class DaskChunks:
    """Chunks of so many rows each. ``fields`` has, for every name, a future a chunk."""

    remembers = True

    def __init__(self, cluster: Cluster, sizes: list[int], fields: dict[str, list[Future]]) -> None:
        self.cluster, self.fields = cluster, fields
        firsts = np.cumsum([0, *sizes[:-1]]).tolist()
        self.places = list(zip(firsts, sizes, strict=True))
        self.facts = self.total(facts_of)

    def total(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.cluster.total(self._visited(None, function, args))

    def set(self, name: str, function: Callable[..., Any], *args: Any) -> None:
        self.fields[name] = self._visited(name, function, args)

    def _visited(
        self, name: str | None, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> list[Future]:
        """What the function makes of every chunk, to be kept under a name or summed."""
        call = Call(function, (name, tuple(self.fields), args))
        return self.cluster.map(visit, call, self.places, *self.fields.values())


def visit(call: Call, place: tuple[int, int], *values: Any) -> Any:
    """Make rows of what is there, and call the function with them."""
    name, names, args = call.args
    rows = Rows(*place, KeptFeatures(room=False))
    rows.w = None
    for own, value in zip(names, values, strict=True):
        # What is set anew may be changed in place, so that it must not be anybody else's.
        setattr(rows, own, np.array(value, order="K") if own == name else value)
    # As many tasks as a worker has threads are at work already; and one thread rounds one way.
    with BLAS.entered():
        return call.function(rows, *args)
