# SPDX-License-Identifier: Apache-2.0
"""The remote part of a run: receives an attempt, returns an archive of the record.

Owns the backend of the worker process, which is opened once. Must not know how the worker was started.

Dask's scheduler and worker have no HTTP servers, which would publish the state of a study. Nor do they sample their own
stacks and watch their event loops, which takes 4 % of a CPU, and half of an emulated one.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dask.config
from distributed import Scheduler, Worker

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.execute.attempt import Attempt, Outcome, attempt_run, node_name
from longfat.execute.record.merge import pack
from longfat.execute.study import PLAN_AGAIN, require_executable
from longfat.system.errors import RigError
from longfat.system.scratch import scratch_in

END_S = 10.0  # longest time from the loss of the scheduler, or a signal, to the end of the process

dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"})


class QuietScheduler(Scheduler):
    """A scheduler whose only port is the one with TLS."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Open no port."""


class QuietWorker(Worker):
    """A worker whose only port is the one with TLS, and whose end does not wait for its runs."""

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        """Open no port."""

    async def close(self, *arguments: Any, **options: Any) -> Any:
        """Close, and end the process: a signal that comes meanwhile would make Dask wait for ever."""
        watchdog = threading.Timer(END_S, os.kill, (os.getpid(), signal.SIGKILL))
        watchdog.daemon = True
        watchdog.start()
        return await super().close(*arguments, **options)


_opened: dict[str, Backend] = {}
# A backend is opened once, and two threads of Python 3.11 cannot parse code for its digests at the same time.
_one_at_a_time = threading.Lock()


def execute_attempt(attempt: Attempt, backend_name: str, settings: Mapping[str, Any]) -> tuple[Outcome, bytes | None]:
    """Execute an attempt; return its outcome, and the archive of its record if there is one.

    ``settings`` open the backend. Raises RigError with the name of this machine if the run cannot be executed here as
    it was planned.
    """
    try:
        with _one_at_a_time:
            backend = _backend(backend_name, settings)
            require_executable(backend, [attempt.spec])
    except RigError as error:
        hint = "use the same version there" if error.hint == PLAN_AGAIN else error.hint
        raise RigError(error.message, where=node_name(), hint=hint) from error
    try:
        with scratch_in(Path(tempfile.gettempdir()), "longfat-run-") as folder:
            outcome = attempt_run(backend, attempt, folder)
            record = folder / attempt.name
            return outcome, pack(record) if record.exists() else None
    except OSError as error:
        message = f"the files of a run cannot be written: {error.strerror or error}"
        raise RigError(message, where=f"{node_name()}:{error.filename or tempfile.gettempdir()}") from error


def _backend(name: str, settings: Mapping[str, Any]) -> Backend:
    """Return the backend, opened by the first run of these settings."""
    key = repr((name, sorted(settings.items())))
    if key not in _opened:
        _opened[key] = open_backend(name, dict(settings), say=lambda line: None)
    return _opened[key]
