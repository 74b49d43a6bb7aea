# SPDX-License-Identifier: Apache-2.0
"""The threads of this process that execute runs, each one attempt at a time.

Owns the stopping of attempts: a guest is a child process, so a thread only waits for its end. ``study`` decides the
consequence of an outcome.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self

from longfat.backends.protocol import Backend
from longfat.execute.attempt import Attempt, Outcome, attempt_run
from longfat.system.processes import children, end_children

LOOK_S = 0.1  # interval of the checks for new child processes while stopping


class Pool(Protocol):
    """An executor of attempts, at most ``slots`` at the same time."""

    @property
    def slots(self) -> int:
        """Largest number of unfinished attempts."""

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Begin an attempt. The future raises OSError if the record cannot be written."""

    def check(self) -> None:
        """Raise RigError if the attempts can no longer finish."""


class Threads:
    """A pool of ``slots`` threads on this machine, as a context manager.

    If the block ends with an error, attempts that have not ended are stopped: their child processes are killed, and
    they leave no record. A single slot is the calling thread itself, where an interrupt reaches the backend.
    """

    def __init__(self, backend: Backend, raw: Path, slots: int) -> None:
        self.slots = slots
        self._work = backend, raw
        self._threads = ThreadPoolExecutor(slots)
        self._stop = threading.Event()
        self._running: set[Future[Outcome]] = set()
        self._others = children()  # not of this pool

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Begin an attempt; with a single slot, return after its end."""
        if self.slots == 1:
            ended: Future[Outcome] = Future()
            ended.set_result(self._attempt(attempt))
            return ended
        future = self._threads.submit(self._attempt, attempt)
        self._running.add(future)
        future.add_done_callback(self._running.discard)
        return future

    def check(self) -> None:
        """Do nothing: threads of this process always finish their attempts."""

    def _attempt(self, attempt: Attempt) -> Outcome:
        backend, raw = self._work
        return attempt_run(backend, attempt, raw, self._stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        while self._running:
            with suppress(KeyboardInterrupt):  # a second interrupt would not make the kernel faster
                end_children(self._others)
                wait(tuple(self._running), LOOK_S)
