# SPDX-License-Identifier: Apache-2.0
"""What a run has to do and when, in microseconds since the start of the measurement. Must not know what it is.

A heap of its own: ``sched`` of the standard library takes four times as long for each action, and locks.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count


class Timeline:
    """Actions with their times; those of one time happen in the order in which they were planned."""

    def __init__(self, end_us: int) -> None:
        self.end_us = end_us
        self.origin_ns = 0
        self.origin_epoch_us = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = count()  # unique, so that actions are never compared

    def begin(self, origin_ns: int) -> None:
        """Let the measurement start at ``origin_ns`` of CLOCK_MONOTONIC, which may still be to come."""
        self.origin_ns = origin_ns
        self.origin_epoch_us = (time.time_ns() + origin_ns - time.monotonic_ns()) // 1000

    def now_us(self) -> int:
        """Microseconds since the start."""
        return (time.monotonic_ns() - self.origin_ns) // 1000

    def at(self, t_us: int, action: Callable[[], None]) -> None:
        """Plan an action."""
        heapq.heappush(self._heap, (t_us, next(self._number), action))

    def repeat(self, interval_us: int, action: Callable[[], None]) -> None:
        """Plan ``action`` every ``interval_us`` from the first interval to just before the end."""
        for t_us in range(interval_us, self.end_us, interval_us):
            self.at(t_us, action)

    def play(self) -> None:
        """Do everything at its time, what is planned meanwhile too, then wait for the end."""
        while self._heap:
            t_us, _, action = heapq.heappop(self._heap)
            self._sleep_until(t_us)
            action()
        self._sleep_until(self.end_us)

    def _sleep_until(self, t_us: int) -> None:
        wait_us = t_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / 1e6)
