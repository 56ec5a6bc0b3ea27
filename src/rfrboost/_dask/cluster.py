"""Work on a Dask cluster: a function of many pieces of data, and the sum of its results.

Every value that is needed again is the result of a task with its own key, made from the results of
other tasks and never changed. If a worker is lost, Dask repeats the tasks whose results it held,
and they give the same values.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from uuid import uuid4

import dask
from distributed import Client, Future, get_client
from distributed.client import ClosedClientError
from distributed.comm.core import CommClosedError
from distributed.protocol import pickle

from rfrboost._numerics.threads import team
from rfrboost._rows.chunks import FAN_IN, TreeSum

# The most bytes (32 KB) of arguments that are sent with every task. Larger ones are sent once and
# passed on between workers, so that the client does not send them for every chunk.
SENT_WITH_TASK = 2**15

# Dask's own warning about large arguments is of no use to who fits a model.
SILENT = {"distributed.admin.large-graph-warning-threshold": "1 GB"}

# The number of items for each thread of the workers that are under way at a time: one that is
# worked on, and one that waits, so that no thread waits for the client.
UNDER_WAY = 2

Futures = list["Future[Any]"]


def current_client(client: Client | None) -> Client:
    """The client if there is one, or else the current client of Dask."""
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
    """A function and its further arguments, as one object that Dask does not search for tasks."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args


class Cluster:
    """The workers of a client during one fit. ``token`` is in the keys of its tasks, so that they
    differ from those of other fits."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.token: str = uuid4().hex
        self.n_calls: int = 0

    def map(self, task: Callable[..., Any], call: Call, *pieces: list[Any]) -> Futures:
        """``task(call, *piece)`` for every piece; a piece is one item of each list."""
        self.n_calls += 1
        name = f"{call.function.__name__}-{self.token}-{self.n_calls}"
        shared: Any = call
        dumps: Callable[[Any], bytes] = pickle.dumps
        if len(dumps(call)) > SENT_WITH_TASK:
            # As the result of a task, so that Dask can pass it on and, if it is lost, repeat it.
            with dask.config.set(SILENT):
                shared = self.client.submit(itself, call, key=f"args-{name}")
        n = len(pieces[0])
        keys = [f"{name}-{i}" for i in range(n)]
        return self.client.map(task, [shared] * n, *pieces, key=keys)

    def total(self, parts: Futures) -> Any:
        """The sum of the parts in the order of a ``TreeSum``, wherever the parts are."""
        level = 0
        while len(parts) > 1:
            level += 1
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            keys = [f"sum-{level}-{group[0].key}" for group in groups]
            parts = self.client.map(added_up, groups, key=keys)
        return parts[0].result()

    def workers(
        self, work: Callable[[Any], Any], made: Callable[[Any], Any], items: list[Any]
    ) -> Iterator[Any]:
        """``work(made(item))`` for every item, in order: made here, worked on by the workers.

        At most ``UNDER_WAY`` items for each thread of the workers are under way at a time, which
        bounds the memory of the client and of the scheduler.
        """
        client: Any = self.client
        most = UNDER_WAY * max(sum(client.nthreads().values()), 1)
        self.n_calls += 1
        name = f"{work.__name__}-{self.token}-{self.n_calls}"
        under_way: deque[Future[Any]] = deque()
        for i, item in enumerate(items):
            if len(under_way) >= most:
                yield under_way.popleft().result()
            with dask.config.set(SILENT):
                own = client.submit(on_one_thread, work, made(item), key=f"{name}-{i}")
            under_way.append(own)
        while under_way:
            yield under_way.popleft().result()


def on_one_thread(work: Callable[[Any], Any], item: Any) -> Any:
    """On a worker: the work on an item, with one thread of BLAS, as in a fit in memory."""
    with team(most=1):
        return work(item)


def itself(call: Call) -> Call:
    """The call, as the result of a task."""
    return call


def added_up(parts: list[Any]) -> Any:
    """The sum of some parts. The first is copied, because a task must not change its inputs."""
    tree = TreeSum()
    for part in [deepcopy(parts[0]), *parts[1:]]:
        tree.add(part)
    return tree.total()


@contextmanager
def answering(client: Client) -> Iterator[None]:
    """Turn the errors that Dask raises when its scheduler is lost into one ConnectionError."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError, TimeoutError) as error:
        if client.status == "running" and not isinstance(error, CancelledError):
            raise
        raise ConnectionError(
            f"The Dask scheduler of {client} went away, or cancelled the work, before the fit was "
            "done. The estimator is as it was before. Connect to a running cluster and fit again."
        ) from error
