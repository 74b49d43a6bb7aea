# SPDX-License-Identifier: Apache-2.0
"""Laws of HighSpeed TCP: the response table of RFC 3649, and the response function for other parameters.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from longfat.conformance import published
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt, rounds, slope
from longfat.conformance.published import HighSpeed
from longfat.conformance.scenario import SEGMENTS_PER_ACK, Scenario, Sender
from longfat.conformance.trace import Run

RFC_3649 = "RFC 3649, section 5"
TABLE = "RFC 3649, appendix B"
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True, log_y=True)
TAKEN = Axes("window, segments", "share of the window that a loss takes", log_x=True)
ROWS = published.highspeed_table()
WINDOWS = [row[0] for row in ROWS]
LEAST_GROWTH = 10  # segments: fewer are too coarse for a slope
RESPONSE = HighSpeed()

RATE_PPS = 90_000
LEAST_GAP_US = 5_000  # one deliberate loss is over before the next begins
LEAST_RTT_US = 400  # a window of 36 segments fills the link, so that losses come when they are asked for


def row_of(window: float) -> int:
    """The row of the RFC's table that holds at a window: the first that is not below it."""
    return min(bisect_left(WINDOWS, window), len(ROWS) - 1)


def row_a(window: float) -> float:
    """Segments each RTT that the table gives for a window."""
    return ROWS[row_of(window)][1]


def row_b(window: float) -> float:
    """Share that the table takes of a window on a loss."""
    return ROWS[row_of(window)][2]


def growth_by_row(run: Run) -> Sequence[Point]:
    """Growth each RTT in each row of the table that an epoch passes."""
    points = []
    for epoch in epochs(run.trace):
        trace, passed = epoch.trace, rounds(epoch.trace)
        rows = np.array([row_of(window) for window in trace.cwnd])
        for row in sorted(set(rows.tolist())):
            inside = rows == row
            if np.ptp(trace.cwnd[inside]) >= LEAST_GROWTH:
                window, a, _ = ROWS[row]
                points.append(Point(window, a, slope(passed[inside], trace.cwnd[inside])))
    return points


def growth(run: Run, law: Callable[[float], float], source: Callable[[float], float] | None = None) -> Sequence[Point]:
    """Growth each RTT between any two losses; ``source`` is what the kernel's source has in place of ``law``."""
    points = []
    for epoch in epochs(run.trace):
        windows = epoch.trace.cwnd
        if np.ptp(windows) >= LEAST_GROWTH:
            expected = float(np.mean([source(window) for window in windows])) if source else None
            stated = float(np.mean([law(window) for window in windows]))
            points.append(Point(epoch.middle, stated, growth_each_rtt(epoch.trace), expected))
    return points


def growth_by_acks(run: Run) -> Sequence[Point]:
    """The same for a kernel that counts an acknowledgement as one segment, however many it covers."""
    return growth(run, row_a, lambda window: row_a(window) / SEGMENTS_PER_ACK)


def first_taken(run: Run) -> Sequence[Point]:
    """Share of the window that the loss which ends slow start takes."""
    before = run.trace.where(np.cumsum(~run.trace.is_open) == 0)
    window, left = float(before.cwnd[-1]), float(epochs(run.trace)[0].trace.ssthresh[0])
    return [Point(window, row_b(window), 1 - left / window, 0.5)]


def taken(run: Run, law: Callable[[float], float]) -> Sequence[Point]:
    """Share of the window that each loss takes, down to ssthresh, where recovery ends.

    The kernel takes whole segments, and the window before may be one of the segments that came since the last sample.
    """
    points = []
    for epoch in epochs(run.trace):
        if (window := epoch.window_before) is not None:
            share, segment = law(window), 1 / window
            ends = (share - segment, share + segment)
            points.append(Point(window, ends, 1 - float(epoch.trace.ssthresh[0]) / window))
    return points


def chain(response: HighSpeed, largest: float, least: float, grown: float, first: float) -> Iterator[int]:
    """Times in microseconds of losses that walk the window down from ``largest`` to ``least`` segments.

    The link is always full, so that a window takes window / rate to be acknowledged: this long until a loss is seen,
    and again until recovery ends. In slow start the window is that of half the time. A window grows by ``grown``
    segments, or for an RTT, until the next loss is seen. The loss that ends slow start takes ``first``.
    """
    second = 1e6 / RATE_PPS
    window, seen_us = largest, largest * second
    drop_us = seen_us / 2
    yield round(drop_us)
    taken = first
    while window > least:
        recovered_us = seen_us + 1.1 * window * second
        window *= 1 - taken
        growing = grown / max(response.a(window), 1)
        drop_us = max(recovered_us + max(growing - 1, 0.1) * window * second, drop_us + LEAST_GAP_US)
        yield round(drop_us)
        seen_us = drop_us + window * second
        taken = response.b(window)


def walk(
    largest: int, least: int, grown: int = 24, response: HighSpeed = RESPONSE, *, current_window: bool = True
) -> Scenario:
    """A run whose window walks down from ``largest`` to ``least`` segments and grows by ``grown`` between losses.

    Without ``current_window`` the loss that ends slow start halves the window.
    """
    first = response.b(largest) if current_window else 0.5
    drops_us = tuple(chain(response, largest, least, grown, first))
    least_round_us = least * 1e6 / RATE_PPS
    sample_us = round(min(max(least_round_us / 10, 200), 10_000))
    parameters = {
        "low_window": round(response.low_window),
        "high_window_milli": round(response.high_window * 1e3),
        "high_p_ppb": round(response.high_p * 1e9),
        "high_decrease_ppm": round(response.high_decrease * 1e6),
        "current_window": int(current_window),
        "count_segments": 1,
    }
    rounds_left = 2 + 20 / max(response.a(least), 1)
    return Scenario(
        (Sender("highspeed", tuple(parameters.items())),),
        duration_us=drops_us[-1] + round(rounds_left * least_round_us) + 4 * sample_us,
        segments=largest * 6 // 5,
        rtt_us=LEAST_RTT_US,
        rate_pps=RATE_PPS,
        drops_us=drops_us,
        mtu_bytes=576,
        sample_us=sample_us,
    )


# Together these walks pass every row of the table.
WALKS = (
    (105_996, 77_162),
    (90_200, 60_000),
    (79_066, 48_087),
    (62_000, 36_000),
    (52_400, 52_000),
    (51_090, 37_737),
    (48_200, 41_000),
    (45_329, 23_909),
    (36_112, 30_064),
    (32_620, 15_777),
    (30_910, 14_737),
    (26_000, 15_000),
    (24_625, 6_956),
    (22_919, 8_011),
    (14_988, 4_497),
    (13_701, 2_979),
    (7_623, 894),
    (4_043, 114),
    (130, 36, 4),
)
RFC = tuple(walk(*ends) for ends in WALKS)
SLOW_START = Scenario((Sender("highspeed"),), duration_us=1_500_000, segments=2000, drops_us=(145_000,), sample_us=500)

law = partial(Law, "highspeed")
TABLE_LAWS: tuple[Law, ...] = (
    law(
        "in each of the 73 rows of the RFC's table the window grows by its a(w) each RTT",
        TABLE,
        GROWTH,
        RFC,
        growth_by_row,
        least_points=len(ROWS),
        note="with count_segments = 1 and current_window = 1",
    ),
    law(
        "a loss takes the b(w) of the RFC's table",
        TABLE,
        TAKEN,
        RFC,
        partial(taken, law=row_b),
        least_points=30,
        note="with current_window = 1",
    ),
    law(
        "between two rows the window grows by the a(w) of the response function",
        RFC_3649,
        GROWTH,
        (RFC[-2],),
        partial(growth, law=RESPONSE.a, source=row_a),
        "with the RFC's parameters the table is used, and a window between two rows has the a of the upper one",
        least_points=5,
    ),
    law(
        "the window grows by a(w) each RTT, as it comes",
        TABLE,
        GROWTH,
        (SLOW_START,),
        growth_by_acks,
        "without count_segments an ACK counts as one segment, and the receiver acknowledges every second one",
    ),
    law(
        "the loss that ends slow start takes b(w), as it comes",
        TABLE,
        TAKEN,
        (SLOW_START,),
        first_taken,
        "without current_window b is that of the last growth outside of slow start: at the first loss, 1/2",
    ),
)


def _formula(run: Scenario, response: HighSpeed, why: str) -> tuple[Law, ...]:
    """The laws of the response function for parameters that have no table."""
    points, deviation = partial(growth, law=response.a), None
    if response.a(response.high_window) < 1:
        points = partial(growth, law=response.a, source=lambda window: max(response.a(window), 1))
        deviation = "a is never below 1: the kernel does not grow more slowly than Standard TCP"
    return (
        law(
            f"the window grows by the a(w) of the response function each RTT ({why})",
            RFC_3649,
            GROWTH,
            (run,),
            points,
            deviation,
        ),
        law(
            f"a loss takes the b(w) of the response function ({why})",
            RFC_3649,
            TAKEN,
            (run,),
            partial(taken, law=response.b),
        ),
    )


MBPS_1, MBPS_10, MBPS_100 = (HighSpeed(high_window=window) for window in (8.3, 83.3, 833.3))
GBPS_1, GBPS_10 = (HighSpeed(high_window=window) for window in (8333.3, 83333.3))
STEEP = HighSpeed(31, 10_000, 1e-5, 0.2)
LAWS: tuple[Law, ...] = (
    *TABLE_LAWS,
    *_formula(walk(300, 50, 11, MBPS_1), MBPS_1, "High_Window 8.3 for 1 Mb/s: Standard TCP"),
    *_formula(walk(126, 62, 9, MBPS_10, current_window=False), MBPS_10, "High_Window 83.3 for 10 Mb/s"),
    *_formula(walk(830, 150, 11, MBPS_100), MBPS_100, "High_Window 833.3 for 100 Mb/s"),
    *_formula(walk(8_300, 1_500, 11, GBPS_1), GBPS_1, "High_Window 8333.3 for 1 Gb/s"),
    *_formula(walk(20_000, 1_500, response=GBPS_10), GBPS_10, "High_Window 83333.3 for 10 Gb/s"),
    *_formula(
        walk(9_000, 200, response=STEEP),
        STEEP,
        "Low_Window 31, High_Window 10000, High_P 0.00001, High_Decrease 0.2",
    ),
)
