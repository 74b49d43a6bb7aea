# SPDX-License-Identifier: Apache-2.0
"""The worker processes that runs are spread over, by Dask ``distributed``.

Owns how the cluster is configured, used and closed; nothing else touches Dask. Must not know what a run is.
"""

from __future__ import annotations

import logging
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
from distributed import Client, Future, KilledWorker, LocalCluster, Worker, WorkerPlugin, as_completed

from longfat.errors import RigError

_CONNECT_SECONDS = 20
_SETTINGS = {
    # A task whose worker died is handed back at once: whether to try again is not the scheduler's decision.
    "distributed.scheduler.allowed-failures": 0,
    # One run to a worker; none waits behind another on a worker that may die.
    "distributed.scheduler.worker-saturation": 1.0,
    # Guests are processes of their own, outside the memory that a worker could account for.
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.target": False,
    # A machine that slept for an hour has not lost its workers.
    "distributed.scheduler.worker-ttl": None,
}
# Dask's scheduler has an HTTP server even without its dashboard: on any free port, so that two can run.
_NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}


class IgnoreInterrupt(WorkerPlugin):
    """Leaves Ctrl-C, which a terminal sends to all processes, to the one that commands the workers."""

    name = "ignore-interrupt"

    def setup(self, worker: Worker) -> None:
        """Called in the worker's main thread when it starts."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class WorkerDied(Exception):
    """The process that executed a call is gone, killed or out of memory."""


class Workers:
    """Calls of functions in other processes, each known by a tag. ``slots`` of them go on at once."""

    def __init__(self, client: Client, slots: int) -> None:
        self.slots = slots
        self._client = client
        self._tags: dict[Future[Any], Any] = {}
        self._completed = as_completed()

    def __len__(self) -> int:
        """How many calls have been started and not yet been waited for."""
        return len(self._tags)

    def start(self, tag: object, function: Callable[..., Any], *arguments: object) -> None:
        """Have a worker call ``function``, which must tolerate being called again."""
        future = self._client.submit(function, *arguments, pure=False)
        self._tags[future] = tag
        self._completed.add(future)

    def wait(self) -> tuple[Any, Callable[[], Any]]:
        """Block until a call has ended: its tag, and a function that returns its result or raises its error.

        The error is WorkerDied when the worker process did not survive the call.
        """
        future = next(self._completed)
        return self._tags.pop(future), lambda: _result(future)


@contextmanager
def open_workers(jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Start ``jobs`` processes on this machine's loopback address, or use those of an existing scheduler.

    ``scheduler`` is an address such as ``tcp://host:8786``, whose workers must see the same file system and
    have ``longfat`` installed. Local workers end, with the calls they are at, when the block ends. Raises
    RigError when a scheduler does not answer or has no workers.
    """
    with tempfile.TemporaryDirectory(prefix="longfat-") as scratch, dask.config.set(_SETTINGS):
        if scheduler is not None:
            with _connect(scheduler) as client:
                yield Workers(client, _slots(client, scheduler))
            return
        with (
            LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                scheduler_kwargs=_NO_DASHBOARD,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
                local_directory=scratch,
                plugins=[IgnoreInterrupt()],
            ) as cluster,
            Client(cluster) as client,
        ):
            yield Workers(client, jobs)


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
