# SPDX-License-Identifier: Apache-2.0
"""The workers of a Dask scheduler that somebody else has started; no other module uses Dask.

Owns the connection to it and its use. Must not know what a run is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from longfat.errors import RigError
from longfat.execute.workers import WorkerDied

_CONNECT_SECONDS = 20


class DaskWorkers:
    """Calls of functions in the workers of a scheduler. ``slots`` of them go on at once."""

    def __init__(self, client: Client, slots: int) -> None:
        self.slots = slots
        self._client = client
        self._tags: dict[Future[Any], Any] = {}
        self._completed = as_completed()

    def __len__(self) -> int:
        return len(self._tags)

    def start(self, tag: object, function: Callable[..., Any], *arguments: object) -> None:
        future = self._client.submit(function, *arguments, pure=False)
        self._tags[future] = tag
        self._completed.add(future)

    def wait(self) -> tuple[Any, Callable[[], Any]]:
        future = next(self._completed)
        return self._tags.pop(future), lambda: _result(future)


@contextmanager
def open_dask(scheduler: str) -> Iterator[DaskWorkers]:
    """The workers of the scheduler at this address. Raises RigError when it does not answer or has no workers."""
    with _connect(scheduler) as client:
        yield DaskWorkers(client, _slots(client, scheduler))


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except KilledWorker as error:
        raise WorkerDied from error


def _connect(scheduler: str) -> Client:
    try:
        return Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise RigError(f"the Dask scheduler does not answer: {error}", where=scheduler) from error


def _slots(client: Client, scheduler: str) -> int:
    slots = sum(client.ncores().values())
    if slots == 0:
        raise RigError("the Dask scheduler has no workers", where=scheduler, hint="start some first")
    return int(slots)
