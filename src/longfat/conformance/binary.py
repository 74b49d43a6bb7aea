# SPDX-License-Identifier: Apache-2.0
"""Laws of the algorithms that search for the window of the last loss: bic and cubic.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from longfat.conformance import published
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt, kept, rounds, slope
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

BIC = "Xu, Harfoush, Rhee, INFOCOM 2004"
CUBIC = "RFC 9438"
KEPT = Axes("window, segments", "share of the window kept on a loss", log_x=True)
DISTANCE = Axes("distance to the window of the last loss, segments", "growth, segments each RTT", log_x=True)
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True)
SHARE = Axes("window, segments", "growth each RTT, share of the distance", log_x=True)
CURVE = Axes("time since the loss, share of K", "share regained of what the loss took")


def targets(run: Run, beta: float) -> list[float]:
    """The window that each epoch searches for: that of the loss before it, as ssthresh tells it (ssthresh = beta w).

    With fast convergence, a loss below the target before it sets the target at (1 + beta) / 2 of the loss's window.
    """
    found: list[float] = []
    for epoch in epochs(run.trace):
        lost_at = (float(epoch.trace.ssthresh[0]) + 0.5) / beta
        found.append(lost_at * (1 + beta) / 2 if found and lost_at < found[-1] else lost_at)
    return found


BIC_KERNEL_BETA = 819 / 1024
BIC_KERNEL_PART = 4


def bic_linear(run: Run) -> Sequence[Point]:
    """Growth each RTT while the target is farther than two S_max."""
    points = []
    for epoch, target in zip(epochs(run.trace), targets(run, BIC_KERNEL_BETA), strict=True):
        far = epoch.trace.where(target - epoch.trace.cwnd > 2.1 * published.BIC_S_MAX)
        if len(far.t_us) >= 10:
            law = published.bic_increase(target - float(far.cwnd.mean()))
            points.append(Point(float(far.cwnd.mean()), law, growth_each_rtt(far)))
    return points


def bic_search(run: Run) -> Sequence[Point]:
    """Share of the distance that an RTT covers near the target, from the exponential that this gives."""
    points = []
    for epoch, target in zip(epochs(run.trace), targets(run, BIC_KERNEL_BETA), strict=True):
        distance = target - epoch.trace.cwnd
        near = (distance < 1.9 * published.BIC_S_MAX) & (distance > 20)
        if near.sum() >= 10:
            rate = -slope(rounds(epoch.trace)[near], np.log(distance[near]))
            middle = float(distance[near].mean())
            # Twice: see TWICE.
            source = float(np.mean(2 * (distance[near] // BIC_KERNEL_PART) / distance[near]))
            law = published.bic_increase(middle) / middle
            points.append(Point(float(epoch.trace.cwnd[near].mean()), law, rate, source))
    return points


TWICE = (
    "the source has max_increment = 16 and a quarter of the distance, and applies both twice with delayed ACKs: it "
    "divides by the ACK ratio (bictcp_update) and counts segments (tcp_cong_avoid_ai)"
)


def _bic() -> tuple[Law, ...]:
    scenario = Scenario(
        (Sender("bic"),),
        duration_us=2_000_000,
        segments=2000,
        rate_pps=90_000,
        # The second loss comes above the target, the others below: these set the next one by fast convergence.
        drops_us=(145_000, 1_100_000, 1_350_000, 1_550_000, 1_750_000),
    )
    law = partial(Law, "bic", reference=BIC, scenarios=(scenario,))
    return (
        law(
            "the window grows by S_max = 32 segments each RTT far from its target",
            axes=GROWTH,
            points=bic_linear,
            least_points=4,
            note=TWICE,
        ),
        law(
            "the window grows by half the distance each RTT near its target",
            axes=SHARE,
            points=bic_search,
            deviation="the quarter of the distance is cut to whole segments (bictcp_update); " + TWICE,
            least_points=4,
        ),
        law(
            "a loss takes an eighth of the window",
            axes=KEPT,
            points=partial(kept, law=published.BIC_BETA, source=BIC_KERNEL_BETA),
            deviation="beta is 819/1024, so that a loss takes a fifth (net/ipv4/tcp_bic.c)",
            least_points=3,
        ),
    )


def cubic_curve(run: Run) -> Sequence[Point]:
    """Share of the loss that is made up, at quarters of K after it; K itself is the law's."""
    points = []
    for epoch, target in zip(epochs(run.trace), targets(run, CUBIC_KERNEL_BETA), strict=True):
        k_s, start = published.cubic_k(target), float(epoch.trace.t_us[0])
        lost = (1 - published.CUBIC_BETA) * target
        for share in np.arange(0.25, 1.51, 0.25):
            at_us = start + share * k_s * 1e6
            if at_us < epoch.trace.t_us[-1]:
                window = float(np.interp(at_us, epoch.trace.t_us, epoch.trace.cwnd))
                law = (published.cubic_window(target, share * k_s) - (target - lost)) / lost
                points.append(Point(share, law, (window - (target - lost)) / lost))
    return points


def _cubic(first_us: int, seconds: float) -> tuple[Law, ...]:
    """Two epochs of half of ``seconds`` each, the first after a loss at ``first_us`` in slow start."""
    scenario = Scenario(
        (Sender("cubic"),),
        duration_us=first_us + int(seconds * 1e6),
        segments=2500,
        rtt_us=50_000,
        rate_pps=30_000,
        drops_us=(first_us, first_us + int(seconds * 5e5)),
        sample_us=10_000,
    )
    law = partial(Law, "cubic", reference=CUBIC, scenarios=(scenario,))
    size = f"loss after {first_us // 1000} ms"
    return (
        law(f"the window follows C (t - K)^3 + W_max ({size})", axes=CURVE, points=cubic_curve, least_points=6),
        law(
            f"a loss takes three tenths of the window ({size})",
            axes=KEPT,
            points=partial(kept, law=published.CUBIC_BETA),
        ),
    )


CUBIC_KERNEL_BETA = 717 / 1024
LAWS: tuple[Law, ...] = (*_bic(), *_cubic(300_000, 24), *_cubic(350_000, 30))
