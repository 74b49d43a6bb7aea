# SPDX-License-Identifier: Apache-2.0
"""Dask's scheduler and worker without their HTTP servers, which would publish the state of a study.

Nor do they sample their own stacks and watch their event loops, which takes 4 % of a CPU, and half of an emulated one.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import dask.config
from distributed import Scheduler, Worker

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
