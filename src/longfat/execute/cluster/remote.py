# SPDX-License-Identifier: Apache-2.0
"""The pool of attempts on other machines: each attempt is a task of the session's scheduler.

Owns the content of a task and the check of its result. Dask repeats a task whose worker was lost.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from distributed import Future as Task
from distributed import KilledWorker

from longfat.execute.attempt import Attempt, Outcome
from longfat.execute.cluster.places import Place
from longfat.execute.cluster.session import Need, Session, open_session
from longfat.execute.cluster.worker import execute_attempt
from longfat.execute.record.bundle import Bundle, RunFacts
from longfat.execute.record.merge import receive
from longfat.system.errors import RigError
from longfat.system.events import EventSink

PATIENCE_S = 10.0
_Ended = tuple[Attempt, Task[Any], Future[Outcome]]


class Remote:
    """Attempts by the workers of a session; their records arrive below ``raw``.

    ``backend`` and ``settings`` open the backend there.
    """

    slots = sys.maxsize  # the scheduler queues the attempts that its workers cannot execute yet

    def __init__(self, session: Session, raw: Path, backend: str, settings: Mapping[str, Any]) -> None:
        self._session = session
        self._raw = raw
        self._backend = backend
        self._settings = settings
        self._tasks: set[Task[Any]] = set()  # Dask cancels a task without references
        self._closed = False
        self._ended: SimpleQueue[_Ended | None] = SimpleQueue()
        # A daemon thread, so that a connection lost in the middle of a result does not keep the process alive.
        self._receiver = threading.Thread(target=self._receive_all, daemon=True)
        self._receiver.start()

    def submit(self, attempt: Attempt) -> Future[Outcome]:
        """Hand an attempt to the scheduler."""
        received: Future[Outcome] = Future()
        # Keys of one prefix: the scheduler keeps such tasks until a worker is free.
        work = execute_attempt, attempt, self._backend, self._settings
        task = self._session.client.submit(*work, key=f"run-{uuid.uuid4().hex}")
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended.put((attempt, done, received)))
        return received

    def check(self) -> None:
        """Raise RigError if no worker is left."""
        self._session.check()

    def close(self) -> None:
        """Stop receiving records; a record that is being written is completed."""
        self._closed = True
        self._ended.put(None)
        self._receiver.join(PATIENCE_S)

    def _receive_all(self) -> None:
        while (ended := self._ended.get()) is not None and not self._closed:
            attempt, task, received = ended
            try:
                received.set_result(self._outcome(attempt, task))
            except BaseException as error:
                received.set_exception(error)
            finally:
                self._tasks.discard(task)

    def _outcome(self, attempt: Attempt, task: Task[Any]) -> Outcome:
        """Return the outcome, once the record is in the results folder."""
        try:
            returned = task.result()
        except KilledWorker:
            return self._record_death(attempt)
        outcome, archive = _understood(returned, attempt.name)
        if archive is None:
            return outcome
        record = receive(archive, self._raw, attempt.name, attempt.spec.run_id)
        return Outcome(record.reason, outcome.wall_seconds)

    def _record_death(self, attempt: Attempt) -> Outcome:
        """Record a run as failed after several workers died during it."""
        reason = "its workers died, each during this run (killed, or out of memory)"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        run_id = attempt.spec.run_id
        with Bundle(self._raw, attempt.name, attempt.spec) as bundle:
            bundle.commit(RunFacts(run_id, "failed", reason, attempt.number, self._backend, 0.0, now))
        return Outcome(reason, 0.0)


def _understood(returned: object, name: str) -> tuple[Outcome, bytes | None]:
    """Return the answer of a worker. Raises RigError if it is malformed."""
    if isinstance(returned, tuple) and len(returned) == 2:
        outcome, archive = returned
        plain = isinstance(outcome, Outcome) and isinstance(outcome.reason, str | None)
        if plain and isinstance(outcome.wall_seconds, int | float) and isinstance(archive, bytes | None):
            return outcome, archive
    raise RigError("a worker sent something other than the record of a run", where=name)


@contextmanager
def open_remote(
    place: Place, need: Need, raw: Path, backend: str, settings: Mapping[str, Any], events: EventSink
) -> Iterator[Remote]:
    """Open a pool at a place; its workers end with the block. Raises RigError if none can be started."""
    with open_session(place, need, events) as session, closing(Remote(session, raw, backend, settings)) as remote:
        yield remote
