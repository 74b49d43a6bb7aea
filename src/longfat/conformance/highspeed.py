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
LEAST_GROWTH = 8  # segments: fewer are too coarse for a slope
GROWTH_BETWEEN = 20  # segments between two losses of a walk, where an RTT does not give more

RATE_PPS = 90_000
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


def growth(
    run: Run, law: Callable[[float], float], source: Callable[[float], float] | None = None
) -> Sequence[Point]:
    """Growth each RTT between any two losses; ``source`` is what the kernel's source has in place of ``law``."""
    return [
        Point(
            epoch.middle,
            law(epoch.middle),
            growth_each_rtt(epoch.trace),
            source(epoch.middle) if source else None,
        )
        for epoch in epochs(run.trace)
        if np.ptp(epoch.trace.cwnd) >= LEAST_GROWTH
    ]


def growth_by_acks(run: Run) -> Sequence[Point]:
    """The same for a kernel that counts an acknowledgement as one segment, however many it covers."""
    return growth(run, row_a, lambda window: row_a(window) / SEGMENTS_PER_ACK)


def first_taken(run: Run) -> Sequence[Point]:
    """Share of the window that the loss which ends slow start takes."""
    before = run.trace.where(np.cumsum(~run.trace.is_open) == 0)
    window, left = float(before.cwnd[-1]), float(epochs(run.trace)[0].trace.ssthresh[0])
    return [Point(window, row_b(window), 1 - left / window, 0.5)]


def taken(run: Run, law: Callable[[float], float]) -> Sequence[Point]:
    """Share of the window that each loss takes, down to ssthresh, where recovery ends."""
    return [
        Point(epoch.window_before, law(epoch.window_before), 1 - float(epoch.trace.ssthresh[0]) / epoch.window_before)
        for epoch in epochs(run.trace)
        if epoch.window_before is not None
    ]


def chain(response: HighSpeed, largest: float, least: float) -> Iterator[int]:
    """Times in microseconds of losses that walk the window down from ``largest`` to ``least`` segments.

    The link is always full, so that a window takes window / rate to be acknowledged: this long until a loss is seen,
    and again until recovery ends. In slow start the window is that of half the time.
    """
    second = 1e6 / RATE_PPS
    window, seen_us = largest, largest * second
    yield round(seen_us / 2)
    while window > least:
        recovered_us = seen_us + 1.1 * window * second
        window *= 1 - response.b(window)
        grown = GROWTH_BETWEEN / max(response.a(window), 1)
        drop_us = recovered_us + max(grown - 1, 0.1) * window * second
        yield round(drop_us)
        seen_us = drop_us + window * second


def walk(largest: int, least: int, response: HighSpeed = HighSpeed(), **more: int) -> Scenario:
    """A run whose window walks down from ``largest`` to ``least`` segments; ``more`` are parameters besides."""
    drops_us = tuple(chain(response, largest, least))
    least_round_us = least * 1e6 / RATE_PPS
    sample_us = round(min(max(least_round_us / 10, 500), 10_000))
    parameters = {
        "low_window": round(response.low_window),
        "high_window_milli": round(response.high_window * 1e3),
        "high_p_ppb": round(response.high_p * 1e9),
        "high_decrease_ppm": round(response.high_decrease * 1e6),
        "current_window": 1,
        "count_segments": 1,
    }
    rounds_left = 2 + GROWTH_BETWEEN / max(response.a(least), 1)
    return Scenario(
        (Sender("highspeed", tuple((parameters | more).items())),),
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
    (82_447, 50_673),
    (79_066, 48_087),
    (55_553, 35_933),
    (51_090, 37_737),
    (45_329, 23_909),
    (36_112, 30_064),
    (32_620, 15_777),
    (30_910, 14_737),
    (24_625, 6_956),
    (22_919, 8_011),
    (14_988, 4_497),
    (13_701, 2_979),
    (7_623, 894),
    (4_043, 34),
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
        RFC[-1:],
        partial(growth, law=HighSpeed().a, source=row_a),
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


def _formula(response: HighSpeed, largest: int, least: int, why: str) -> tuple[Law, ...]:
    """The laws of the response function for parameters that have no table."""
    runs = (walk(largest, least, response),)
    floor = any(response.a(window) < 0.97 for window in range(least, largest))
    growth_law, deviation = partial(growth, law=response.a), None
    if floor:
        growth_law = partial(growth, law=response.a, source=lambda window: max(response.a(window), 1))
        deviation = "a is never below 1: the kernel does not grow more slowly than Standard TCP"
    return (
        law(f"the window grows by the a(w) of the response function each RTT ({why})", RFC_3649, GROWTH, runs, growth_law, deviation),
        law(f"a loss takes the b(w) of the response function ({why})", RFC_3649, TAKEN, runs, partial(taken, law=response.b)),
    )


LAWS: tuple[Law, ...] = (
    *TABLE_LAWS,
    *_formula(HighSpeed(high_window=8.3), 300, 50, "High_Window 8.3 for 1 Mb/s: Standard TCP"),
    *_formula(HighSpeed(high_window=83.3), 83, 50, "High_Window 83.3 for 10 Mb/s"),
    *_formula(HighSpeed(high_window=833.3), 830, 100, "High_Window 833.3 for 100 Mb/s"),
    *_formula(HighSpeed(high_window=8333.3), 8_300, 500, "High_Window 8333.3 for 1 Gb/s"),
    *_formula(HighSpeed(high_window=83333.3), 20_000, 1_500, "High_Window 83333.3 for 10 Gb/s"),
    *_formula(HighSpeed(31, 10_000, 1e-5, 0.2), 9_000, 200, "Low_Window 31, High_Window 10000, High_P 0.00001, High_Decrease 0.2"),
)
