# SPDX-License-Identifier: Apache-2.0
"""How far the hosts' clocks are from this machine's, from exchanges over the connections.

Owns the arithmetic: of several exchanges the quickest counts, and half its round-trip time is how far the answer may
be off (Cristian, Distributed Computing 3, 1989).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

EXCHANGES = 8

Exchange = Callable[[], tuple[int, int, int]]
"""This machine's clock before, the host's clock, this machine's clock after, in nanoseconds."""


@dataclass(frozen=True)
class Clock:
    """Nanoseconds that a host's clock is ahead of this machine's, and by how many that may be wrong."""

    offset_ns: int
    uncertainty_ns: int


def read_clock(exchange: Exchange) -> Clock:
    """The offset by the quickest of several exchanges."""
    before, there, after = min((exchange() for _ in range(EXCHANGES)), key=lambda times: times[2] - times[0])
    return Clock(there - (before + after) // 2, (after - before) // 2)


def drift_ns(before: Clock, after: Clock) -> int:
    """How far the offset has certainly moved between two readings; 0 when they agree within their uncertainty."""
    moved = abs(after.offset_ns - before.offset_ns)
    return max(0, moved - before.uncertainty_ns - after.uncertainty_ns)
