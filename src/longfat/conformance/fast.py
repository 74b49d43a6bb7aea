# SPDX-License-Identifier: Apache-2.0
"""Laws of FAST TCP: segments queued in equilibrium, and how quickly a window gets there.

Owns their scenarios and how each law is read from the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from longfat.conformance.delay import backlog
from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import kept
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

REFERENCE = "Jin, Wei, Low, INFOCOM 2004"
QUEUED = Axes("alpha, segments", "segments that a flow keeps in the queue", log_x=True, log_y=True)
NEARER = Axes("gamma", "share of the way to equilibrium in one update")
KEPT = Axes("window, segments", "share of the window kept on a loss")
LEAST_DISTANCE, LEAST_STEP = 80, 20  # segments: nearer windows and smaller steps are too coarse for a ratio


def queued(run: Run, alpha: int) -> Sequence[Point]:
    """Segments in the queue for each flow."""
    return [Point(alpha, alpha, backlog(run) / len(run.traces))]


def windows(run: Run) -> Sequence[Point]:
    """The share of each flow of all windows, in the last third of the run."""
    since_us = run.scenario.duration_us * 2 / 3
    means = [float(trace.between(since_us, np.inf).cwnd.mean()) for trace in run.traces.values()]
    return [Point(number, 1 / len(means), mean / sum(means)) for number, mean in enumerate(means, 1)]


def nearer(run: Run, alpha: int, gamma: float) -> Sequence[Point]:
    """The share of the distance to equilibrium that each update covers, on the way down from a full queue."""
    trace = run.trace
    goal = run.on_path + alpha
    fell = np.flatnonzero(trace.is_open[1:] & trace.is_open[:-1] & (np.diff(trace.cwnd) <= -LEAST_STEP))
    return [
        Point(gamma, gamma, (trace.cwnd[at] - trace.cwnd[at + 1]) / (trace.cwnd[at] - goal))
        for at in fell
        if trace.cwnd[at] - goal >= LEAST_DISTANCE
    ]


def _one(alpha: int, gamma: float, rate_pps: int = 25_000) -> tuple[Law, ...]:
    scenario = Scenario(
        (Sender("fast", (("alpha", alpha), ("gamma_ppm", round(gamma * 1e6)))),),
        duration_us=6_000_000,
        segments=3000,
        rate_pps=rate_pps,
        sample_us=10_000,
    )
    law = partial(Law, "fast", reference=REFERENCE, scenarios=(scenario,))
    return (
        law(f"a flow keeps alpha = {alpha} segments in the queue", axes=QUEUED, points=partial(queued, alpha=alpha)),
        law(
            f"each update covers gamma = {gamma:g} of the way there",
            axes=NEARER,
            points=partial(nearer, alpha=alpha, gamma=gamma),
        ),
    )


def _two(alpha: int) -> tuple[Law, ...]:
    sender = Sender("fast", (("alpha", alpha),))
    scenario = Scenario((sender, sender), duration_us=15_000_000, segments=3000, rate_pps=20_000, sample_us=20_000)
    law = partial(Law, "fast", reference=REFERENCE, scenarios=(scenario,))
    return (
        law(
            f"each of two flows keeps alpha = {alpha} segments in the queue",
            axes=QUEUED,
            points=partial(queued, alpha=alpha),
        ),
        law("two flows have equal windows", axes=Axes("flow", "share of both windows"), points=windows),
    )


def _loss() -> Law:
    scenario = Scenario(
        (Sender("fast", (("alpha", 50),)),),
        duration_us=3_000_000,
        segments=3000,
        rate_pps=25_000,
        drops_us=(1_500_000, 2_500_000),
        sample_us=5_000,
    )
    return Law("fast", "a loss halves the window", REFERENCE, KEPT, (scenario,), partial(kept, law=0.5))


LAWS: tuple[Law, ...] = (
    *_one(20, 0.5),
    *_one(50, 0.25),
    *_one(200, 0.1),
    *_two(100),
    _loss(),
)
