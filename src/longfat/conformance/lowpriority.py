# SPDX-License-Identifier: Apache-2.0
"""Laws of the algorithms that use only what others leave: lp and hstcp_lp.

Owns their scenarios and how each law is read from the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from longfat.conformance.highspeed import LEAST_GROWTH, ROWS, TAKEN, row_b, row_of, taken
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

TCP_LP = "Kuzmanovic, Knightly, INFOCOM 2003"
LARGEST = Axes("queue, segments", "largest window, segments")
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True)
DELTA = 0.15  # share of the range of one-way delays that is an early indication of congestion


def largest(run: Run, deviates: bool = False) -> Sequence[Point]:
    """The largest window in the last half of a run whose flow has the link for itself.

    What fills the path and the share DELTA of the queue; from the source of tcp_lp.c, what fills the whole queue.
    """
    scenario = run.scenario
    assert scenario.queue_packets is not None
    path = scenario.rate_pps * scenario.rtt_us / 1e6
    window = float(run.trace.between(scenario.duration_us / 2, np.inf).cwnd.max())
    law = (path, path + DELTA * scenario.queue_packets)
    return [Point(scenario.queue_packets, law, window, path + scenario.queue_packets if deviates else None)]


def growth(run: Run) -> Sequence[Point]:
    """Growth each RTT while the path has no queue."""
    path = run.scenario.rate_pps * run.scenario.rtt_us / 1e6
    points = []
    for epoch in epochs(run.trace):
        idle = epoch.trace.where(epoch.trace.cwnd < 0.9 * path)
        if len(idle.t_us) >= 50:
            points.append(Point(float(idle.cwnd.mean()), 1.0, growth_each_rtt(idle)))
    return points


def _lp() -> tuple[Law, ...]:
    scenario = Scenario(
        (Sender("lp"),),
        duration_us=40_000_000,
        segments=1000,
        rtt_us=40_000,
        rate_pps=5_000,
        queue_packets=100,
        forward_us=20_000,
        sample_us=20_000,
    )
    law = partial(Law, "lp", reference=TCP_LP, scenarios=(scenario,))
    return (
        law(
            "the window stays below that which queues 15 % of the largest delay",
            axes=LARGEST,
            points=partial(largest, deviates=True),
            deviation=CLOCK,
        ),
        law("the window grows by a segment each RTT while nothing is queued", axes=GROWTH, points=growth),
    )


CLOCK = (
    "tcp_lp_owd_calculator() multiplies the peer's timestamp by 1000 / remote_hz as a whole number, which is 0 or 1 as "
    "the estimate of the peer's clock passes 1000 Hz: the one-way delay is lost, and LP fills the queue as Reno does"
)


def table_growth(run: Run) -> Sequence[Point]:
    """Growth each RTT against the a(w) of HighSpeed TCP's table, while the path has no queue."""
    points = []
    for epoch in epochs(run.trace):
        idle = epoch.trace.where(epoch.trace.cwnd < 0.9 * run.on_path)
        rows = np.array([row_of(window) for window in idle.cwnd])
        for row in sorted(set(rows.tolist())):
            part = idle.where(rows == row)
            if np.ptp(part.cwnd) >= LEAST_GROWTH:
                points.append(Point(float(part.cwnd.mean()), ROWS[row][1], growth_each_rtt(part)))
    return points


def left_to_reno(run: Run) -> Sequence[Point]:
    """The share of all bytes that the first flow, which is Reno's, gets."""
    goodput = [flow["goodput_bps"] for flow in run.flows.values()]
    return [Point(run.on_path, 1.0, goodput[0] / sum(goodput))]


def pauses(run: Run, rtts: int) -> Sequence[Point]:
    """RTTs without growth after each early indication: from the fall of the window to where its next growth began."""
    trace, points = run.trace, []
    fell = np.flatnonzero(trace.is_open[1:] & trace.is_open[:-1] & (trace.cwnd[1:] < 0.6 * trace.cwnd[:-1]))
    for at, end in zip(fell, [*fell[1:], len(trace.t_us) - 1], strict=True):
        after = trace.where((np.arange(len(trace.t_us)) > at) & (np.arange(len(trace.t_us)) <= end))
        grown = after.where(after.cwnd > after.cwnd[0])
        print(at, trace.t_us[at], trace.cwnd[at], trace.cwnd[at+1], grown.t_us[:3], trace.srtt_us[at])
    return points


def _hstcp_lp() -> tuple[Law, ...]:
    idle = Scenario(
        (Sender("hstcp_lp"),),
        duration_us=2_500_000,
        segments=2500,
        rate_pps=90_000,
        drops_us=(125_000, 1_000_000, 1_500_000, 1_900_000),
        forward_us=10_000,
    )
    full = Scenario(
        (Sender("hstcp_lp"),),
        duration_us=20_000_000,
        segments=1000,
        rtt_us=40_000,
        rate_pps=5_000,
        queue_packets=200,
        forward_us=20_000,
        sample_us=10_000,
    )
    shared = Scenario(
        (Sender("reno"), Sender("hstcp_lp")),
        duration_us=40_000_000,
        segments=1000,
        rtt_us=40_000,
        rate_pps=5_000,
        queue_packets=200,
        forward_us=20_000,
        sample_us=40_000,
    )
    law = partial(Law, "hstcp_lp", reference=HSTCP_LP)
    return (
        law("the window grows by the a(w) of HighSpeed TCP each RTT", axes=GROWTH, scenarios=(idle,), points=table_growth),
        law("a loss takes the b(w) of HighSpeed TCP", axes=TAKEN, scenarios=(idle,), points=partial(taken, law=row_b)),
        law("largest", axes=LARGEST, scenarios=(full,), points=largest),
        law("pause", axes=LARGEST, scenarios=(full,), points=partial(pauses,rtts=3)),
        law("left", axes=LARGEST, scenarios=(shared,), points=left_to_reno),
    )


HSTCP_LP = "Kuzmanovic, Knightly, Cottrell, PFLDnet 2004"
LAWS: tuple[Law, ...] = (*_lp(), *_hstcp_lp())
