"""Work on a Dask cluster: functions of many pieces of data, and sums of what they give.

Everything that is needed again later is the result of a task with a key of its own, made from
the results of others and never changed: if a worker is lost, Dask computes what it held anew, and
the same comes out.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, get_client
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError
from distributed.protocol.pickle import dumps

from rfrboost._rows.chunks import FAN_IN, TreeSum

# Arguments up to this many bytes go along with every task; larger ones are passed among workers.
SMALL = 2**15


def current_client(client: Client | None) -> Client:
    """The client that was set, or else the one that was made last."""
    if client is not None:
        return client
    try:
        return get_client()
    except ValueError as error:
        raise RuntimeError(
            "There is no Dask client. Make one before fitting, for example by "
            "client = dask.distributed.Client(), or set the estimator's client."
        ) from error


class Call:
    """A function and its arguments but the first, as one object that Dask does not look into."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function, self.args = function, args


class Cluster:
    """The workers behind a client, for the length of one fit."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.token, self.n_calls = uuid4().hex, 0

    def map(self, task: Callable[..., Any], call: Call, *pieces: list[Any]) -> list[Future]:
        """``task(call, *piece)`` for every piece, a piece being one item of each of the lists."""
        self.n_calls += 1
        name = f"{call.function.__name__}-{self.token}-{self.n_calls}"
        shared: Any = call
        if len(dumps(call)) > SMALL:
            # Every worker fetches it once, from one that has it; and it can be made again.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GB"}):
                shared = self.client.submit(itself, call, key=f"args-{name}")
        n = len(pieces[0])
        keys = [f"{name}-{i}" for i in range(n)]
        return self.client.map(task, [shared] * n, *pieces, key=keys)

    def total(self, parts: list[Future]) -> Any:
        """The sum of parts in the order of a ``TreeSum``, whichever worker has which part."""
        level = 0
        while len(parts) > 1:
            level += 1
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            keys = [f"sum-{level}-{group[0].key}" for group in groups]
            parts = self.client.map(added_up, groups, key=keys)
        return parts[0].result()


def itself(call: Call) -> Call:
    """The same."""
    return call


def added_up(parts: list[Any]) -> Any:
    """Several sums in one. The first is copied: what a task is given belongs to others too."""
    tree = TreeSum()
    for part in [deepcopy(parts[0]), *parts[1:]]:
        tree.add(part)
    return tree.total()


@contextmanager
def answering(client: Client) -> Iterator[None]:
    """One sentence instead of what Dask says when its scheduler has gone away."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError, TimeoutError) as error:
        if client.status == "running" and not isinstance(error, CancelledError):
            raise
        raise ConnectionError(
            f"The Dask scheduler of {client} went away, or dropped what it was asked for, before "
            "the fit was done. The estimator is as it was before."
        ) from error
