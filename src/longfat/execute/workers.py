# SPDX-License-Identifier: Apache-2.0
"""The worker processes that execute runs: children of this process, or workers of a Dask scheduler.

Owns how they are started, called and ended. Calls and results go through a socket pair of each child, which has no
name: nobody else on the machine can send a call. Must not know what a run is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing import connection as connections
from typing import Any, Protocol

from longfat.errors import RigError

STOP_S = 10.0  # time for a worker to end the programs that it started
START = "import sys; sys.path[:] = sys.argv[3:]; from longfat.execute.worker import serve; serve(*sys.argv[1:3])"


class WorkerDied(Exception):
    """The process that executed a call is gone, killed or out of memory."""


class Workers(Protocol):
    """Calls of functions in other processes, each known by a tag."""

    @property
    def slots(self) -> int:
        """How many calls may go on at once."""

    def __len__(self) -> int:
        """How many calls have been started and not yet been waited for."""

    def start(self, tag: object, function: Callable[..., Any], *arguments: object) -> None:
        """Have a worker call ``function``, which must tolerate being called again."""

    def wait(self) -> tuple[Any, Callable[[], Any]]:
        """Block until a call has ended: its tag, and a function that returns its result or raises its error.

        The error is WorkerDied when the worker process did not survive the call.
        """


@contextmanager
def open_workers(jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """``jobs`` processes on this machine, or those of an existing Dask scheduler.

    ``scheduler`` is an address such as ``tcp://host:8786``, whose workers must see the same file system and have
    ``longfat`` installed. Local workers end, with their present calls, when the block ends, and also when this process
    does, however it ends. Raises RigError when a scheduler does not answer or has no workers.
    """
    if scheduler is not None:
        # Dask takes a second to import: only who asks for it pays for it.
        from longfat.execute.dask_workers import open_dask

        with open_dask(scheduler) as workers:
            yield workers
        return
    own = _Children(jobs)
    try:
        yield own
    finally:
        own.close()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold SIGINT back, which a process started within inherits: Python would report it while it reads modules."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class _Child:
    """One worker process and this end of its socket pair."""

    def __init__(self) -> None:
        self.channel, other = Pipe()
        try:
            # A separate session: Ctrl-C in a terminal is for the process that commands the workers.
            with _interrupts_held():
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", START, str(other.fileno()), str(os.getpid()), *sys.path],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[other.fileno()],
                    start_new_session=True,
                )
        except OSError as error:
            self.channel.close()
            raise RigError(f"a worker process cannot be started: {error.strerror}", where=sys.executable) from error
        finally:
            other.close()

    def end(self) -> None:
        """Wait until the process has ended, with everything it started."""
        self.channel.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class _Children:
    """Workers that are processes of this one, started when there is something to do for them."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._idle: list[_Child] = []
        self._busy: list[tuple[_Child, object]] = []

    def __len__(self) -> int:
        return len(self._busy)

    def start(self, tag: object, function: Callable[..., Any], *arguments: object) -> None:
        child = self._idle.pop() if self._idle else _Child()
        if child.process.poll() is not None:  # killed while it had nothing to do
            child.end()
            child = _Child()
        self._busy.append((child, tag))
        try:
            child.channel.send((function, arguments))
        except (BrokenPipeError, ConnectionResetError):
            return  # it died; ``wait`` finds that out

    def wait(self) -> tuple[Any, Callable[[], Any]]:
        ready = connections.wait([child.channel for child, _ in self._busy])
        child, tag = next(entry for entry in self._busy if entry[0].channel in ready)
        self._busy.remove((child, tag))
        try:
            result, error = child.channel.recv()
        except (EOFError, ConnectionResetError):
            child.process.kill()
            child.end()
            result, error = None, WorkerDied()
        else:
            self._idle.append(child)

        def answer() -> Any:
            if error is not None:
                raise error
            return result

        return tag, answer

    def close(self) -> None:
        """End all processes; a call that one of them is at is ended as by Ctrl-C."""
        children = [*self._idle, *(child for child, _ in self._busy)]
        for child in children:
            child.process.terminate()
        for child in children:
            child.end()
