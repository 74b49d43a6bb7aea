# SPDX-License-Identifier: Apache-2.0
"""Dask's scheduler and worker without their HTTP servers, which would publish the state of a study."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from distributed import Scheduler, Worker

END_S = 10.0  # longest time from the loss of the scheduler, or a signal, to the end of the process


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
