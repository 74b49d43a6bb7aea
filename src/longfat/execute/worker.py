# SPDX-License-Identifier: Apache-2.0
"""The worker process: it waits for calls, executes them one after the other, and ends with its parent.

Must not know the purpose of a call.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from longfat.interrupts import let_go, lose_none
from longfat.parent import end_with_parent

STOPS = (signal.SIGTERM, signal.SIGINT)


def serve(handle: str, parent: str) -> None:
    """Execute calls from the socket with this number, until its other end closes or process ``parent`` ends.

    SIGTERM ends a call as Ctrl-C would, and the call leaves nothing behind; the parent's death sends SIGTERM too.
    SIGINT, which the process is started with held back, does the same.
    """
    try:
        lose_none(signal.SIGTERM, listen)
        listen()
        end_with_parent(signal.SIGTERM)
        if os.getppid() != int(parent):
            return  # it ended before this process could ask for the signal
        channel: Connection[tuple[Any, Exception | None], tuple[Callable[..., Any], tuple[object, ...]]]
        channel = Connection(int(handle))
        while True:
            function, arguments = channel.recv()
            channel.send(_answer(function, arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        let_go(STOPS)


def _answer(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, Exception | None]:
    """The result of the call, or its error with the traceback as a note: frames do not cross a process border."""
    try:
        return function(*arguments), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        return None, error


def listen() -> None:
    """Be stopped by the signals, and by one of them that was held back."""
    for number in STOPS:
        signal.signal(number, _interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Stop the present call, once: its clean-up is not interrupted."""
    let_go(STOPS)
    raise KeyboardInterrupt
