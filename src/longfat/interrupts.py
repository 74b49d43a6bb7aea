# SPDX-License-Identifier: Apache-2.0
"""Signals that a process no longer hears, because one of them has already stopped it. Standard library only."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from types import FrameType


def let_go(numbers: Iterable[signal.Signals]) -> None:
    """Be no longer interrupted by these signals, nor by one of them that has come and was not handled yet.

    They are held back and have a handler that does nothing. If they were ignored instead, Python would report one that
    came before as "ignored due to race condition". What is started from now on inherits that they are held back.
    """
    held = tuple(numbers)
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:
        signal.signal(number, _nothing)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Handle a signal that has no one left to stop."""
