# SPDX-License-Identifier: Apache-2.0
"""Packed records on their way from a results folder to a store, sent while the next runs are executed.

Owns ``outbox/`` in a results folder (docs/formats.md). A file there is a whole record; it is removed when the store has
it. What a command leaves, because it was killed or the store did not answer, the next one sends. Must not know what a
record contains.
"""

from __future__ import annotations

import queue
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from longfat.errors import RigError
from longfat.record.bucket import SUFFIX, Bucket, name_of, object_name

OUTBOX = "outbox"
SENDERS = 4  # requests at a time, all of one client
MOST = 64  # files that wait: runs that are faster than the network wait for it
PATIENCE_S = 60.0  # a store may not answer for so long
PAUSE_S = 1.0  # before it is asked again, and twice as long each time
INTERRUPTED_S = 5.0  # after an interrupt, what is on its way may take so long


class Outbox:
    """``outbox/`` in the folder ``results``: its files are sent as long as the ``with`` block lasts.

    The end of the block waits until all are sent; after an interrupt, for a moment. Raises RigError then, and in
    ``send``, when the store takes no more.
    """

    def __init__(self, results: Path, store: Bucket) -> None:
        self.folder = results / OUTBOX
        self.store = store
        self._queue: queue.Queue[Path] = queue.Queue(MOST)
        self._error: RigError | None = None

    def __enter__(self) -> Self:
        self.folder.mkdir(exist_ok=True)
        for number in range(SENDERS):
            threading.Thread(target=self._go_on, name=f"outbox {number}", daemon=True).start()
        for path in self._files():
            self._queue.put(path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._queue.all_tasks_done:
            sent = self._queue.all_tasks_done
            sent.wait_for(lambda: not self._queue.unfinished_tasks, INTERRUPTED_S if error else None)
        if error is None:
            self._check()

    def names(self) -> dict[str, str]:
        """What the store has, as its ``names``, and what is still to be sent. Raises RigError."""
        return {name_of(path.name): path.name for path in self._files()} | self.store.names()

    def send(self, name: str, *, ok: bool) -> None:
        """Send the file of a run, which has been packed, in the background; waits while too many others do."""
        self._check()
        self._queue.put(self.folder / object_name(name, ok=ok))

    def _go_on(self) -> None:
        while True:
            path = self._queue.get()
            try:
                if self._error is None:
                    self._send(path)
            except RigError as error:
                self._error = error
            finally:
                self._queue.task_done()

    def _send(self, path: Path) -> None:
        deadline, pause_s = time.monotonic() + PATIENCE_S, PAUSE_S
        while True:
            try:
                self.store.put(path)
            except FileNotFoundError:
                return  # another shard that shares the folder has sent it
            except RigError:
                if time.monotonic() + pause_s > deadline:
                    raise
                time.sleep(pause_s)
                pause_s *= 2
            else:
                path.unlink(missing_ok=True)
                return

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
