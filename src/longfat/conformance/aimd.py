# SPDX-License-Identifier: Apache-2.0
"""Laws of the algorithms with constant a and b: reno, also as parallel flows, and scalable.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from longfat.conformance import published
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt, kept, rounds_to_reach, share_each_rtt, total
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

PPM = 1_000_000
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True)
SHARE = Axes("window, segments", "growth each RTT, share of the window", log_x=True)
KEPT = Axes("window, segments", "share of the window kept on a loss", log_x=True)
OWN = Axes("a", "growth each RTT, share of the window")
RECOVERY = Axes("share given up, b", "recovery time, RTTs")
HALVING = Axes("share given up, b", "time to half the rate, RTTs")
DOUBLING = Axes("a", "time to twice the rate, RTTs")

RFC_5681 = "RFC 5681, section 3.1"
KELLY = "Kelly, CCR 33(2), 2003"


def parts_per_million(**parameters: float) -> tuple[tuple[str, int], ...]:
    """Parameters as shares of 1, in the units of their sysctls."""
    return tuple((f"{name}_ppm", round(value * PPM)) for name, value in parameters.items())


def growth(run: Run, law: float) -> Sequence[Point]:
    """Growth in segments each RTT, between any two losses; after the first loss at the latest."""
    found = epochs(run.trace)
    return [Point(epoch.middle, law, growth_each_rtt(epoch.trace)) for epoch in found]


def growth_of_all(run: Run, law: float) -> Sequence[Point]:
    """The same of the sum of all windows, after the last loss of any of them."""
    last = [epochs(trace)[-1].trace for trace in run.traces.values()]
    trace = total(last)
    return [Point(float(trace.cwnd.mean()), law, growth_each_rtt(trace))]


def share(run: Run, law: float) -> Sequence[Point]:
    """Growth each RTT as a share of the window, between any two losses."""
    found = epochs(run.trace)
    return [Point(epoch.middle, law, share_each_rtt(epoch.trace)) for epoch in found]


def recovery(run: Run, a: float, b: float) -> Sequence[Point]:
    """RTTs from the end of fast recovery until the window is what it was, where no loss came in between."""
    return [
        Point(b, published.recovery_rtts(a, b), rounds_to_reach(epoch.trace, epoch.window_before))
        for epoch in epochs(run.trace)
        if epoch.window_before is not None and epoch.trace.cwnd.max() >= epoch.window_before
    ]


def halving(run: Run, b: float) -> Sequence[Point]:
    """RTTs with a loss each that halve the window, from the share that each loss leaves."""
    return [Point(b, published.halving_rtts(b), published.halving_rtts(1 - point.kernel)) for point in kept(run, 1 - b)]


def doubling(run: Run, a: float) -> Sequence[Point]:
    """RTTs in which the window after the first loss doubles."""
    first = epochs(run.trace)[0].trace
    return [Point(a, published.doubling_rtts(a), rounds_to_reach(first, 2 * first.cwnd[0]))]


def _reno(a: float, b: float) -> tuple[Law, ...]:
    # Losses close together walk the window down, so that each epoch is at another window.
    scenario = Scenario(
        (Sender("reno", parts_per_million(a=a, b=b)),),
        duration_us=2_600_000,
        segments=1500,
        rate_pps=90_000,
        drops_us=(125_000, 700_000, 1_200_000, 1_700_000, 2_100_000),
    )
    return (
        Law(
            "reno",
            f"the window grows by a = {a:g} segments each RTT",
            RFC_5681,
            GROWTH,
            (scenario,),
            partial(growth, law=a),
            least_points=5,
        ),
        Law(
            "reno",
            f"a loss takes b = {b:g} of the window",
            RFC_5681,
            KEPT,
            (scenario,),
            partial(kept, law=1 - b),
            least_points=2,
        ),
    )


def _parallel(streams: int) -> Law:
    # A queue that overflows in slow start ends it for all streams.
    scenario = Scenario((Sender("reno", streams=streams),), duration_us=1_500_000, segments=1000, queue_packets=300)
    return Law(
        "reno",
        f"{streams} parallel flows grow by {streams} segments each RTT together",
        "Hacker, Athey, Noble, IPDPS 2002",
        GROWTH,
        (scenario,),
        partial(growth_of_all, law=streams),
    )


SCALABLE_PAIRS = (
    (1 / 25, 1 / 2),
    (1 / 50, 1 / 4),
    (1 / 100, 1 / 8),
    (1 / 200, 1 / 16),
    (2 / 25, 1 / 2),
    (1 / 25, 1 / 4),
    (1 / 50, 1 / 8),
    (1 / 100, 1 / 16),
)
"""The pairs a, b of the Sandia study; the first four are also the table of Kelly's slides."""


def _scalable(a: float, b: float) -> tuple[Law, ...]:
    rtt_us = 20_000
    first = 125_000
    second = first + round((published.doubling_rtts(a) * 1.05 + 4) * rtt_us)
    third = second + round((published.recovery_rtts(a, b) * 1.05 + 4) * rtt_us)
    scenario = Scenario(
        (Sender("scalable", parts_per_million(a=a, b=b)),),
        duration_us=third + 8 * rtt_us,
        segments=1200,
        rtt_us=rtt_us,
        rate_pps=90_000,
        drops_us=(first, second, third),
    )
    pair = f"a = {a:g}, b = {b:g}"
    law = partial(Law, "scalable", reference=KELLY, scenarios=(scenario,))
    return (
        law(
            f"the window grows by the share a each RTT ({pair})",
            axes=SHARE,
            points=partial(share, law=a),
            least_points=3,
        ),
        law(
            f"a loss takes the share b of the window ({pair})",
            axes=KEPT,
            points=partial(kept, law=1 - b),
            least_points=2,
        ),
        law(
            f"a loss is made up in ln(1/(1-b))/ln(1+a) RTTs ({pair})", axes=RECOVERY, points=partial(recovery, a=a, b=b)
        ),
        law(f"losses halve the rate in ln2/ln(1/(1-b)) RTTs ({pair})", axes=RECOVERY, points=partial(halving, b=b)),
        law(f"the rate doubles in ln2/ln(1+a) RTTs ({pair})", axes=RECOVERY, points=partial(doubling, a=a)),
    )


def share_of_each(run: Run) -> Sequence[Point]:
    """Growth each RTT as a share of the window, for each sender against its own a, after the first loss."""
    points = []
    for number, sender in enumerate(run.scenario.senders, 1):
        a = dict(sender.parameters)["a_ppm"] / PPM
        points.append(Point(a, a, share_each_rtt(epochs(run.traces[f"flow{number}", 0])[0].trace)))
    return points


def _two_hosts() -> Law:
    first, second = (Sender("scalable", parts_per_million(a=a, b=0.5)) for a in (0.01, 0.05))
    # A queue that overflows in slow start ends it for both.
    scenario = Scenario((first, second), duration_us=1_000_000, segments=1500, rate_pps=90_000, queue_packets=300)
    claim = "two hosts of one run grow each by its own a, 0.01 and 0.05"
    return Law("scalable", claim, KELLY, OWN, (scenario,), share_of_each, least_points=2)


LEAST_GROWTH = 6  # segments: fewer are too coarse for a slope


def growth_below(run: Run, lwnd: int) -> Sequence[Point]:
    """Growth in segments each RTT between any two losses, while the window is at most ``lwnd``."""
    parts = [epoch.trace.where(epoch.trace.cwnd <= lwnd) for epoch in epochs(run.trace)]
    return [
        Point(float(part.cwnd.mean()), 1.0, growth_each_rtt(part))
        for part in parts
        if len(part.t_us) and np.ptp(part.cwnd) >= LEAST_GROWTH
    ]


def share_above(run: Run, lwnd: int, a: float) -> Sequence[Point]:
    """Growth each RTT as a share of the window between any two losses, while it is above ``lwnd``."""
    parts = [epoch.trace.where(epoch.trace.cwnd > lwnd) for epoch in epochs(run.trace)]
    return [
        Point(float(part.cwnd.mean()), a, share_each_rtt(part))
        for part in parts
        if len(part.t_us) and np.ptp(part.cwnd) >= LEAST_GROWTH
    ]


def kept_around(run: Run, lwnd: int, b: float) -> Sequence[Point]:
    """What each loss leaves of the window, at most ``lwnd`` or above it."""
    return [Point(point.x, 0.5 if point.x <= lwnd else 1 - b, point.kernel) for point in kept(run, 1 - b)]


def _legacy_window(a: float, b: float) -> tuple[Law, ...]:
    """The rules on both sides of lwnd: above Kelly's 16, and around one that windows of a loss can reach."""
    high, low = (
        Scenario(
            (Sender("scalable", (*parts_per_million(a=a, b=b), ("lwnd", lwnd))),),
            duration_us=drops_us[-1] + 12 * rtt_us,
            segments=1000,
            rtt_us=rtt_us,
            rate_pps=60_000,
            drops_us=drops_us,
            sample_us=rtt_us // 10,
        )
        for lwnd, rtt_us, drops_us in (
            (16, 2_000, (2_000, 40_000, 80_000, 120_000)),
            (500, 20_000, (125_000, 220_000, 320_000, 420_000, 520_000, 760_000)),
        )
    )
    law = partial(Law, "scalable", reference=KELLY)
    return (
        law(
            "above lwnd = 16 the window grows by the share a each RTT",
            axes=SHARE,
            scenarios=(high,),
            points=partial(share_above, lwnd=16, a=a),
            least_points=2,
        ),
        law(
            "up to lwnd = 500 the window grows by a segment each RTT",
            axes=GROWTH,
            scenarios=(low,),
            points=partial(growth_below, lwnd=500),
        ),
        law(
            "a loss takes a half up to lwnd = 500 and the share b above",
            axes=KEPT,
            scenarios=(low,),
            points=partial(kept_around, lwnd=500, b=b),
            least_points=4,
        ),
    )


LAWS: tuple[Law, ...] = (
    *_reno(1, 0.5),
    *_reno(0.5, 0.25),
    *_reno(4, 0.125),
    _parallel(4),
    *_legacy_window(0.01, 0.125),
    _two_hosts(),
    *(law for a, b in SCALABLE_PAIRS for law in _scalable(a, b)),
)
