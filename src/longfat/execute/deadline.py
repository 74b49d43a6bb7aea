# SPDX-License-Identifier: Apache-2.0
"""A time by which a command ends: it starts no run that would last longer, and interrupts those that do.

Owns the texts for such times. Must not know what is done with the runs that are left.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from longfat.errors import StudyError
from longfat.execute.workers import STOP_S
from longfat.runspec import RunSpec

_LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?(s|min|h)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3600}
ALLOWED = "allowed: a length of time such as 90s, 45min or 2h, or a time such as 06:30 or 2026-05-17T06:30"


class TimeIsUp(KeyboardInterrupt):
    """The deadline has come: an interrupt by the clock."""


class Deadline:
    """The end of a command, ``seconds`` from now; ``cost`` estimates a run's seconds of wall time."""

    def __init__(
        self, seconds: float, cost: Callable[[RunSpec], float], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cost = cost
        self._clock = clock
        # What ends a worker's present call may take as long as that.
        self._end = clock() + seconds - min(STOP_S, seconds / 10)
        self._estimated = self._took = 0.0

    def left_s(self) -> float:
        """Seconds until the first worker is told to end."""
        return self._end - self._clock()

    def suffices_for(self, spec: RunSpec) -> bool:
        """Whether a run that starts now would end in time, if runs take as much longer than estimated as until now."""
        pace = max(1.0, self._took / self._estimated) if self._estimated else 1.0
        return self._cost(spec) * pace <= self.left_s()

    def observe(self, spec: RunSpec, seconds: float) -> None:
        """Take in that a run has taken so long."""
        self._estimated += self._cost(spec)
        self._took += seconds

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Raise TimeIsUp in the block when the time has come. For the main thread."""
        before = signal.signal(signal.SIGALRM, _raise)
        try:
            signal.setitimer(signal.ITIMER_REAL, max(self.left_s(), 1e-3))
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def length_of(text: str) -> float | None:
    """Seconds of a text such as ``45min`` or ``2h``; None where it is not such a text."""
    match = _LENGTH.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2]] if match else None


def seconds_until(text: str, now: datetime) -> float:
    """Seconds from ``now``, which has a time zone, to the end that a text names.

    A time without a date is the next one on the local clock. Raises StudyError on a text of another form, and on a
    time that has passed.
    """
    seconds = length_of(text)
    if seconds is None:
        seconds = (_time_of(text, now) - now).total_seconds()
    if seconds <= 0:
        raise StudyError(f"{text!r} has passed; {ALLOWED}", where="--until")
    return seconds


def _time_of(text: str, now: datetime) -> datetime:
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}", text, re.ASCII):
            hour, minute = map(int, text.split(":"))
            then = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return then if then > now else then + timedelta(days=1)
        then = datetime.fromisoformat(text)
    except ValueError as error:
        raise StudyError(f"{text!r} is no time; {ALLOWED}", where="--until") from error
    return then if then.tzinfo else then.replace(tzinfo=now.tzinfo)


def _raise(number: int, frame: object) -> None:
    raise TimeIsUp("the time is up")
