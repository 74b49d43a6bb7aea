# SPDX-License-Identifier: Apache-2.0
"""Laws of the algorithms that go by delay or rate: vegas and westwood.

Owns their scenarios and how each law is read from the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

BRAKMO = "Brakmo, Peterson, JSAC 13(8), 1995"
MASCOLO = "Mascolo et al., MobiCom 2001"
BACKLOG = Axes("rate times base RTT, segments", "segments that a flow keeps in the queue", log_x=True)
AFTER_LOSS = Axes("window, segments", "window after a loss, segments")

VEGAS_ALPHA, VEGAS_BETA = 2, 4
FILTER_US = 5e6  # the low-pass filter of the rate has settled so long after a loss


def backlog(run: Run) -> float:
    """Segments of all flows that wait in the queue of a busy link, the mean of the last third of the run."""
    since_us = run.scenario.duration_us * 2 / 3
    windows = sum(float(trace.between(since_us, np.inf).cwnd.mean()) for trace in run.traces.values())
    return windows - run.on_path


def vegas(run: Run) -> Sequence[Point]:
    """The backlog of a flow that has the link for itself."""
    product = run.scenario.rate_pps * run.scenario.rtt_us / 1e6
    return [Point(product, (VEGAS_ALPHA, VEGAS_BETA), backlog(run))]


def westwood(run: Run) -> Sequence[Point]:
    """What is left of a window after each loss: the measured rate times the least RTT."""
    points = []
    for before, after in zip(epochs(run.trace), epochs(run.trace)[1:], strict=False):
        trace = before.trace
        if trace.t_us[-1] - trace.t_us[0] < FILTER_US:
            continue
        last = trace.between(trace.t_us[-1] - 1e6, trace.t_us[-1] + 1)
        rate_pps = (last.delivered[-1] - last.delivered[0]) / (last.t_us[-1] - last.t_us[0]) * 1e6
        law = rate_pps * last.min_rtt_us[-1] / 1e6
        points.append(Point(float(trace.cwnd[-1]), law, float(after.trace.cwnd[0])))
    return points


def _vegas(rate_pps: int) -> Law:
    # The short queue ends slow start, from which Vegas would come back by one segment each RTT.
    scenario = Scenario(
        (Sender("vegas"),),
        duration_us=9_000_000,
        segments=600,
        rate_pps=rate_pps,
        queue_packets=30,
        sample_us=20_000,
    )
    product = rate_pps * scenario.rtt_us // 1_000_000
    claim = f"between alpha = 2 and beta = 4 segments wait in the queue (rate times base RTT: {product} segments)"
    return Law("vegas", claim, BRAKMO, BACKLOG, (scenario,), vegas)


def _westwood(rate_pps: int) -> Scenario:
    # The kernel counts RTTs in ticks of 10 ms, rounded up: the base RTT of 98 ms is one of 100 ms to it.
    return Scenario(
        (Sender("westwood"),),
        duration_us=60_000_000,
        segments=1000,
        rtt_us=98_000,
        rate_pps=rate_pps,
        queue_packets=rate_pps // 20,
        sample_us=10_000,
    )


LAWS: tuple[Law, ...] = (
    _vegas(2_500),
    _vegas(5_000),
    _vegas(10_000),
    Law(
        "westwood",
        "a loss leaves the measured rate times the least RTT",
        MASCOLO,
        AFTER_LOSS,
        (_westwood(1_500), _westwood(2_500)),
        westwood,
        least_points=2,
    ),
)
