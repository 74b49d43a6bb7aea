# SPDX-License-Identifier: Apache-2.0
"""Laws of H-TCP: growth by the time since the last loss, and a backoff by the RTTs that the path has shown.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from longfat.conformance import published
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt
from longfat.conformance.scenario import SEGMENTS_PER_ACK, Scenario, Sender
from longfat.conformance.trace import Run

REFERENCE = "Leith, Shorten, PFLDnet 2004"
REFERENCE_RTT_US = 100_000
ALPHA = Axes("time since the last loss, s", "growth, segments each RTT")
KEPT = Axes("window, segments", "share of the window kept on a loss", log_x=True)


def alpha(run: Run, deviates: bool = False) -> Sequence[Point]:
    """Growth each RTT, over the half second around each time since the end of the last recovery.

    The second in which alpha begins to rise is left out: the kernel has a new alpha with each segment added.
    """
    trace, rtt_us = epochs(run.trace)[-1].trace, run.scenario.rtt_us
    points = []
    for since_s in np.concatenate(([0.5], np.arange(2, (trace.t_us[-1] - trace.t_us[0]) / 1e6 - 0.25, 0.5))):
        middle_us = trace.t_us[0] + since_s * 1e6
        part = trace.between(middle_us - 250_000, middle_us + 250_000)
        law = published.htcp_alpha(since_s) * rtt_us / REFERENCE_RTT_US
        source = None
        if deviates:
            times = np.linspace(since_s - 0.25, since_s + 0.25, 101)
            window = float(part.cwnd.mean())
            source = float(np.mean([from_source(time, rtt_us, window) for time in times]))
        points.append(Point(since_s, law, growth_each_rtt(part), source))
    return points


def from_source(since_s: float, rtt_us: int, window: float) -> float:
    """Segments each RTT as net/ipv4/tcp_htcp.c computes them.

    alpha is a whole number before it is scaled to the RTT (htcp_alpha_update), and after it; and the acknowledgement
    that adds a segment to the window is not counted towards the next one (htcp_cong_avoid).
    """
    scale = min(max(8 * REFERENCE_RTT_US // rtt_us, 4), 80)
    whole = max(8 * int(published.htcp_alpha(since_s)) // scale, 1)
    acks = math.ceil(window / whole / SEGMENTS_PER_ACK) + 1
    return window / (acks * SEGMENTS_PER_ACK)


def backoff(run: Run) -> Sequence[Point]:
    """What is kept on a loss of a queue that was full, once two epochs had the same throughput."""
    scenario = run.scenario
    assert scenario.queue_packets is not None
    largest_us = scenario.rtt_us + 1e6 * scenario.queue_packets / scenario.rate_pps
    law = published.htcp_kept(scenario.rtt_us, largest_us)
    return [
        Point(epoch.window_before, law, float(epoch.trace.ssthresh[0]) / epoch.window_before)
        for epoch in epochs(run.trace)[3:]
        if epoch.window_before is not None
    ]


UNCOUNTED = (
    "the ACK that adds a segment is not counted towards the next one (htcp_cong_avoid), which matters when alpha is "
    "not small against the window; alpha is cut to a whole number before and after it is scaled to the RTT"
)


def _growth(rtt_us: int, first_us: int, deviation: str | None = None) -> Law:
    scenario = Scenario(
        (Sender("htcp"),),
        duration_us=first_us + 5_000_000,
        segments=16_000,
        rtt_us=rtt_us,
        rate_pps=90_000,
        drops_us=(first_us,),
        sample_us=rtt_us // 5,
    )
    size = "" if deviation is None else ", at a small window"
    return Law(
        "htcp",
        f"the window grows by alpha(time since the loss) each RTT of {rtt_us // 1000} ms{size}",
        REFERENCE,
        ALPHA,
        (scenario,),
        partial(alpha, deviates=deviation is not None),
        deviation,
        least_points=6,
    )


def _backoff() -> Law:
    # The kernel counts RTTs in ticks of 10 ms, rounded up: the base RTT of 195 ms is one of 200 ms to it.
    scenario = Scenario(
        (Sender("htcp"),),
        duration_us=40_000_000,
        segments=1500,
        rtt_us=195_000,
        rate_pps=2_500,
        queue_packets=200,
        sample_us=20_000,
    )
    return Law(
        "htcp", "a loss leaves RTTmin/RTTmax of the window", REFERENCE, KEPT, (scenario,), backoff, least_points=3
    )


LAWS: tuple[Law, ...] = (_growth(100_000, 1_060_000), _growth(50_000, 400_000, UNCOUNTED), _backoff())
