# SPDX-License-Identifier: Apache-2.0
"""What a worker process does: it waits for calls, does them one after the other, and ends with its parent.

Must not know what it is called for.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from longfat.parent import end_with_parent


def serve(handle: str, parent: str) -> None:
    """Do what comes through the socket with this number, until its other end closes or process ``parent`` ends.

    SIGTERM ends a call as Ctrl-C would, so that it leaves nothing behind; the parent's death sends it too.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    end_with_parent(signal.SIGTERM)
    if os.getppid() != int(parent):
        return  # it ended before this process could ask to be told
    channel: Connection[tuple[Any, Exception | None], tuple[Callable[..., Any], tuple[object, ...]]]
    channel = Connection(int(handle))
    try:
        while True:
            function, arguments = channel.recv()
            channel.send(_answer(function, arguments))
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        return


def _answer(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, Exception | None]:
    """The result of the call, or its error with the traceback as a note: frames do not cross a process border."""
    try:
        return function(*arguments), None
    except Exception as error:
        error.add_note(traceback.format_exc())
        return None, error


def _interrupt(number: int, frame: object) -> None:
    """Stop what is going on, once: what cleans up after it is left in peace."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
