# SPDX-License-Identifier: Apache-2.0
"""Signals that stop a process: none is lost, and none is heard after the first. Standard library only."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType

LATER_S = 0.01


def let_go(numbers: Iterable[signal.Signals]) -> None:
    """Be no longer interrupted by these signals, nor by one of them that has come and was not handled yet.

    They are held back and have a handler that does nothing. If they were ignored instead, Python would report one that
    came before as "ignored due to race condition". What is started from now on inherits that they are held back.
    """
    held = tuple(numbers)
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:
        signal.signal(number, _nothing)


def lose_none(again: signal.Signals, listen: Callable[[], None]) -> None:
    """Have an interrupt come again a moment later, as this signal, where Python would report it and go on.

    That is where an object is deleted, and in the callback of a weak reference. ``listen`` has the process hear the
    signal again.
    """

    def caught(found: sys.UnraisableHookArgs) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(found)
            return
        listen()
        later = threading.Timer(LATER_S, os.kill, (os.getpid(), again))
        later.daemon = True
        later.start()

    sys.unraisablehook = caught


def _nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal that has no one left to stop."""
