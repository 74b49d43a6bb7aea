# SPDX-License-Identifier: Apache-2.0
"""Actions of a run by their times, in microseconds since the start of the measurement.

``sched`` of the standard library takes four times as long for each action, and takes a lock.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count


class Timeline:
    """Actions with their times; actions of one time happen in the order of planning."""

    def __init__(self, end_us: int) -> None:
        self.end_us = end_us
        self.origin_ns = 0
        self.origin_epoch_us = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = count()  # unique, so that actions are never compared

    def begin(self, origin_ns: int) -> None:
        """Set the start of the measurement, ``origin_ns`` of CLOCK_MONOTONIC, which may be in the future."""
        self.origin_ns = origin_ns
        self.origin_epoch_us = (time.time_ns() + origin_ns - time.monotonic_ns()) // 1000

    def now_us(self) -> int:
        """Return the microseconds since the start."""
        return (time.monotonic_ns() - self.origin_ns) // 1000

    def at(self, t_us: int, action: Callable[[], None]) -> None:
        """Plan an action."""
        heapq.heappush(self._heap, (t_us, next(self._number), action))

    def repeat(self, interval_us: int, action: Callable[[], None]) -> None:
        """Plan ``action`` every ``interval_us`` from the first interval to just before the end."""
        for t_us in range(interval_us, self.end_us, interval_us):
            self.at(t_us, action)

    def play(self) -> None:
        """Execute all actions, including those planned meanwhile, at their times, then wait for the end."""
        while self._heap:
            t_us, _, action = heapq.heappop(self._heap)
            self._sleep_until(t_us)
            action()
        self._sleep_until(self.end_us)

    def _sleep_until(self, t_us: int) -> None:
        wait_us = t_us - self.now_us()
        if wait_us > 0:
            time.sleep(wait_us / 1e6)
