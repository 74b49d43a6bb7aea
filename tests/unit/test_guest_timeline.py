# SPDX-License-Identifier: Apache-2.0
"""The time line of a run: everything in the order of its time, whatever falls together."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from longfat.guest import timeline
from longfat.guest.timeline import Timeline


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves when somebody sleeps, as that of a guest does."""
    clock = Clock()
    monkeypatch.setattr(timeline, "time", clock)
    return clock


class Clock:
    """The part of the module ``time`` that the time line uses."""

    def __init__(self) -> None:
        self.ns = 5_000_000_000

    def monotonic_ns(self) -> int:
        return self.ns

    def time_ns(self) -> int:
        return self.ns + 10**18

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


def test_what_has_the_same_time_happens_in_the_order_of_planning(clock: Clock) -> None:
    planned, happened = Timeline(100_000), list[str]()
    planned.begin(clock.ns)

    def note(name: str) -> Callable[[], None]:
        return lambda: happened.append(name)

    def plan_more() -> None:
        happened.append("planner")
        planned.at(50_000, note("planned meanwhile"))

    planned.at(20_000, plan_more)
    for number in range(20):
        planned.at(50_000, note(f"{number}"))
    planned.at(10_000, note("first"))
    planned.play()
    assert happened == ["first", "planner", *(f"{number}" for number in range(20)), "planned meanwhile"]


def test_a_start_that_is_still_to_come_is_waited_for(clock: Clock) -> None:
    planned, times = Timeline(10), list[int]()
    planned.begin(clock.ns + 7_000_000)
    planned.at(0, lambda: times.append(clock.ns))
    assert (planned.now_us(), planned.origin_epoch_us) == (-7_000, (5_007_000_000 + 10**18) // 1000)
    planned.play()
    assert times == [5_007_000_000]
