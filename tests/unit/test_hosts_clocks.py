# SPDX-License-Identifier: Apache-2.0
"""How far a host's clock is off, from exchanges over its connection."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from longfat.testbed.connect.clocks import EXCHANGES, Clock, drift_ns, read_clock

DELAY = st.integers(min_value=0, max_value=10**9)


@given(st.integers(-(10**12), 10**12), st.lists(st.tuples(DELAY, DELAY), min_size=EXCHANGES, max_size=EXCHANGES))
def test_the_true_offset_is_within_the_uncertainty(offset: int, delays: list[tuple[int, int]]) -> None:
    def exchanges() -> Iterator[tuple[int, int, int]]:
        for k, (there, back) in enumerate(delays):
            sent = k * 10**10
            yield sent, sent + there + offset, sent + there + back

    following = exchanges()
    clock = read_clock(lambda: next(following))
    assert abs(clock.offset_ns - offset) <= clock.uncertainty_ns + 1


def test_the_quickest_exchange_counts() -> None:
    times = iter([(0, 900, 1000)] * (EXCHANGES - 1) + [(2000, 2105, 2010)])
    assert read_clock(lambda: next(times)) == Clock(100, 5)


def test_readings_that_agree_within_what_they_may_be_off_show_no_drift() -> None:
    assert drift_ns(Clock(100, 30), Clock(150, 30)) == 0
    assert drift_ns(Clock(100, 30), Clock(200, 30)) == 40
