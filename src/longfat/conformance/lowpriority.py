# SPDX-License-Identifier: Apache-2.0
"""Laws of the algorithms that use only what others leave: lp and hstcp_lp.

Owns their scenarios and how each law is read from the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from longfat.conformance.highspeed import LEAST_GROWTH, ROWS, TAKEN, row_b, row_of, taken
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt, slope
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

TCP_LP = "Kuzmanovic, Knightly, INFOCOM 2003"
LARGEST = Axes("queue that is no congestion yet, segments", "largest window, segments")
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True)
HALVED = Axes("window, segments", "share of the window kept on an early indication")
PAUSE = Axes("inference phase, RTTs", "RTTs without growth")
LEFT = Axes("segments on the path", "Reno's share of all bytes")
FEW_SEGMENTS = 30
TRACED_BACK = 20  # segments of growth that the end of a pause is found from
DELTA = 0.15  # share of the range of one-way delays that is an early indication of congestion


def largest(run: Run, delta: float, deviates: bool = False) -> Sequence[Point]:
    """The largest window in the last half of a run whose flow has the link for itself.

    What fills the path and the share ``delta`` of the queue; from the source of tcp_lp.c, what fills the whole queue.
    """
    queue = run.scenario.queue_packets
    assert queue is not None
    window = float(run.trace.between(run.scenario.duration_us / 2, np.inf).cwnd.max())
    law = (run.on_path, run.on_path + delta * queue)
    return [Point(delta * queue, law, window, run.on_path + queue if deviates else None)]


def growth(run: Run) -> Sequence[Point]:
    """Growth each RTT while the path has no queue.

    In a window of few segments the last one often waits for its delayed acknowledgement, and the RTT gets longer.
    """
    points = []
    for epoch in epochs(run.trace):
        window = epoch.trace.cwnd
        idle = epoch.trace.where((window >= FEW_SEGMENTS) & (window < 0.9 * run.on_path))
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
            points=partial(largest, delta=DELTA, deviates=True),
            deviation=OFFSET,
        ),
        law("the window grows by a segment each RTT while nothing is queued", axes=GROWTH, points=growth),
    )


OFFSET = (
    "the one-way delay contains the offset of the peer's timestamps, which is random, and tcp_lp_rtt_sample() keeps "
    "eight times the delay in 32 bits: the smoothed delay loses its upper bits, is not found above the threshold, and "
    "LP fills the queue as Reno does"
)


def table_growth(run: Run) -> Sequence[Point]:
    """Growth each RTT against the a(w) of HighSpeed TCP's table, while the path has no queue and nothing is cut."""
    points = []
    for epoch in epochs(run.trace):
        window = epoch.trace.cwnd
        idle = epoch.trace.where((window >= FEW_SEGMENTS) & (window < 0.9 * run.on_path))
        rows = np.array([row_of(window) for window in idle.cwnd])
        for row in sorted(set(rows.tolist())):
            part = idle.where(rows == row)
            if np.ptp(part.cwnd) >= LEAST_GROWTH and (np.diff(part.cwnd) >= 0).all():
                points.append(Point(float(part.cwnd.mean()), ROWS[row][1], growth_each_rtt(part)))
    return points


def left_to_reno(run: Run) -> Sequence[Point]:
    """The share of all bytes that the first flow, which is Reno's, gets."""
    goodput = [flow["goodput_bps"] for flow in run.flows.values()]
    return [Point(run.on_path, 1.0, goodput[0] / sum(goodput))]


@dataclass(frozen=True)
class Indication:
    """The window before and after an early indication, in segments, and the pause of its growth, in RTTs."""

    before: float
    after: float
    pause: float


def indications(run: Run) -> list[Indication]:
    """The early indications after which the window grew again.

    The growth after a pause is traced back along a straight line to the segments at which it began.
    """
    trace, found = run.trace, []
    fell = np.flatnonzero(trace.is_open[1:] & trace.is_open[:-1] & (trace.cwnd[1:] < 0.6 * trace.cwnd[:-1]))
    for at, end in pairwise((*fell, len(trace.t_us) - 1)):
        after = trace.between(trace.t_us[at + 1], trace.t_us[end])
        left = float(after.cwnd[0])
        grown = after.where((after.cwnd > left) & (after.cwnd < left + TRACED_BACK))
        if after.cwnd[-1] >= left + TRACED_BACK:
            rate = slope(grown.t_us, grown.cwnd)
            began_us = float(grown.t_us.mean()) - (float(grown.cwnd.mean()) - left - 0.5) / rate
            pause_us = began_us - float(trace.t_us[at : at + 2].mean())
            found.append(Indication(float(trace.cwnd[at]), left, pause_us / float(trace.srtt_us[at])))
    return found


def inference(run: Run, rtts: int) -> Sequence[Point]:
    """The pause after each early indication: the phase, and up to an RTT until the next window is acknowledged."""
    return [Point(rtts, (rtts, rtts + 1), indication.pause) for indication in indications(run)]


def halved(run: Run) -> Sequence[Point]:
    """What an early indication leaves of the window."""
    return [Point(indication.before, 0.5, indication.after / indication.before) for indication in indications(run)]


def _idle() -> Scenario:
    """A path of 1800 segments, on which the window is walked through by losses."""
    return Scenario(
        (Sender("hstcp_lp"),),
        duration_us=2_500_000,
        segments=2500,
        rate_pps=90_000,
        drops_us=(145_000, 1_000_000, 1_500_000, 2_000_000),
        forward_us=10_000,
    )


def _full(sender: Sender, *others: Sender, seconds: int, sample_us: int) -> Scenario:
    """A path of 200 segments with a queue for another 200."""
    return Scenario(
        (*others, sender),
        duration_us=seconds * 1_000_000,
        segments=1000,
        rtt_us=40_000,
        rate_pps=5_000,
        queue_packets=200,
        forward_us=20_000,
        sample_us=sample_us,
    )


def _hstcp_lp() -> tuple[Law, ...]:
    law = partial(Law, "hstcp_lp", reference=HSTCP_LP)
    own = Sender("hstcp_lp")
    alone = _full(own, seconds=12, sample_us=4_000)
    patient = _full(Sender("hstcp_lp", (("inference_rtts", 6),)), seconds=12, sample_us=4_000)
    tolerant = _full(Sender("hstcp_lp", (("delta_ppm", 400_000),)), seconds=12, sample_us=20_000)
    beside = _full(own, Sender("reno"), seconds=40, sample_us=40_000)
    return (
        law(
            "the window grows by the a(w) of HighSpeed TCP each RTT",
            axes=GROWTH,
            scenarios=(_idle(),),
            points=table_growth,
            least_points=3,
        ),
        law(
            "a loss takes the b(w) of HighSpeed TCP",
            axes=TAKEN,
            scenarios=(_idle(),),
            points=partial(taken, law=row_b),
            least_points=3,
        ),
        law("an early indication halves the window", axes=HALVED, scenarios=(alone,), points=halved),
        law(
            "the window stays below that which queues 15 % of the largest delay",
            axes=LARGEST,
            scenarios=(alone,),
            points=partial(largest, delta=DELTA),
        ),
        law(
            "with delta = 0.4 it stays below that which queues 40 % of the largest delay",
            axes=LARGEST,
            scenarios=(tolerant,),
            points=partial(largest, delta=0.4),
        ),
        law(
            "it does not grow for 3 RTTs after an early indication",
            axes=PAUSE,
            scenarios=(alone,),
            points=partial(inference, rtts=3),
        ),
        law(
            "it does not grow for inference_rtts = 6 after an early indication",
            axes=PAUSE,
            scenarios=(patient,),
            points=partial(inference, rtts=6),
        ),
        law("it leaves the path to Reno", axes=LEFT, scenarios=(beside,), points=left_to_reno),
    )


HSTCP_LP = "Kuzmanovic, Knightly, Cottrell, PFLDnet 2004"
LAWS: tuple[Law, ...] = (*_lp(), *_hstcp_lp())
