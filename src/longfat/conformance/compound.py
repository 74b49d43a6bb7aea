# SPDX-License-Identifier: Apache-2.0
"""Laws of Compound TCP: growth of the delay part, its backlog, losses, burst control and tuning of gamma.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, kept, slope
from longfat.conformance.published import Compound
from longfat.conformance.scenario import Scenario, Sender
from longfat.conformance.trace import Run

INFOCOM = "Tan, Song, Zhang, Sridharan, INFOCOM 2006"
VISTA = "Li, SLAC 2006"
GROWTH = Axes("window, segments", "growth, segments each RTT", log_x=True, log_y=True)
KEPT = Axes("window, segments", "share of the window kept on a loss", log_x=True)
BACKLOG = Axes("gamma, segments", "backlog when the delay part gives way, segments")
GIVEN = Axes("backlog, segments", "segments that the delay part gives up")
QUEUED = Axes("backlog, segments", "growth, segments each RTT")
TUNED = Axes("queue, segments", "backlog when the delay part gives way, segments")

STEPS = 10  # RTTs that a growth is averaged over
FALL = 5  # segments in one step down that only a decision of the delay part takes
GENTLE = 0.02  # an alpha of small steps: the backlog passes gamma by little before that is seen


@dataclass(frozen=True)
class Decision:
    """A decrease of the delay part: when, from which backlog and by how many segments."""

    t_us: float
    backlog: float
    given: float
    dwnd_left: float


def decisions(run: Run) -> list[Decision]:
    """The falls of the window without a loss, in order of time."""
    trace = run.trace
    fell = np.flatnonzero(trace.is_open[1:] & trace.is_open[:-1] & (np.diff(trace.cwnd) <= -FALL))
    return [
        Decision(
            t_us=float(trace.t_us[at]),
            backlog=float(trace.cwnd[at]) - run.on_path,
            given=float(trace.cwnd[at] - trace.cwnd[at + 1]),
            dwnd_left=float(trace.dwnd[at + 1]),
        )
        for at in fell
    ]


def growth(run: Run, response: Compound) -> Sequence[Point]:
    """Growth each RTT of both parts together, while the path has no queue."""
    rtt_us, points = run.scenario.rtt_us, []
    for epoch in epochs(run.trace):
        trace = epoch.trace
        for start_us in np.arange(trace.t_us[0] + 3 * rtt_us, trace.t_us[-1] - STEPS * rtt_us, STEPS * rtt_us):
            windows = np.interp(start_us + rtt_us * np.arange(STEPS + 1), trace.t_us, trace.cwnd)
            if windows[-1] < 0.9 * run.on_path:
                law = float(np.mean([response.growth(window) for window in windows[:-1]]))
                points.append(Point(float(windows.mean()), law, float(windows[-1] - windows[0]) / STEPS))
    return points


def gives_way(run: Run, gamma: float) -> Sequence[Point]:
    """The backlog at each decrease of the delay part."""
    return [Point(gamma, gamma, decision.backlog) for decision in decisions(run)]


def given_up(run: Run, eta: float) -> Sequence[Point]:
    """What each decrease takes of the window, unless the delay part has no more than that."""
    return [
        Point(decision.backlog, eta * decision.backlog, decision.given)
        for decision in decisions(run)
        if decision.dwnd_left
    ]


def growth_in_queue(run: Run, low: float, high: float, law: float) -> Sequence[Point]:
    """Growth each RTT of both parts together while the backlog is between ``low`` and ``high``."""
    trace = run.trace
    backlog = trace.cwnd - run.on_path
    inside = trace.is_open & (backlog > low) & (backlog < high)
    falls = np.flatnonzero(np.diff(inside.astype(int)))
    points = []
    for start, end in zip(falls, falls[1:], strict=False):
        part = np.arange(start + 1, end + 1)
        if inside[part].all() and np.ptp(trace.cwnd[part]) >= FALL:
            passed = np.cumsum(np.diff(trace.t_us[part], prepend=trace.t_us[part][0]) / trace.srtt_us[part])
            points.append(Point(float(backlog[part].mean()), law, slope(passed, trace.cwnd[part])))
    return points


def millionths(**parameters: float) -> tuple[tuple[str, int], ...]:
    """Parameters as shares of 1, in the units of their sysctls."""
    return tuple((f"{name}_ppm", round(value * 1e6)) for name, value in parameters.items())


def _idle_path(**parameters: float) -> tuple[Law, ...]:
    response = Compound(**parameters)
    scenario = Scenario(
        (Sender("compound", millionths(**parameters)),),
        duration_us=3_000_000,
        segments=2500,
        rate_pps=90_000,
        drops_us=(105_000, 1_000_000, 2_200_000),
    )
    law = partial(Law, "compound", reference=INFOCOM, scenarios=(scenario,))
    given = f"alpha = {response.alpha:g}, k = {response.k:g}, beta = {response.beta:g}"
    return (
        law(
            f"the window grows by alpha w^k each RTT ({given})",
            axes=GROWTH,
            points=partial(growth, response=response),
            least_points=5,
        ),
        law(
            f"a loss takes the share beta of the window ({given})",
            axes=KEPT,
            points=partial(kept, law=1 - response.beta),
            least_points=2,
        ),
    )


def _full_path(seconds: float, *parameters: tuple[str, int], queue_packets: int | None = None) -> Scenario:
    """A path that is full before the loss part fills it. The first loss comes in slow start, below that."""
    return Scenario(
        (Sender("compound", (*millionths(alpha=GENTLE), *parameters)),),
        duration_us=round(seconds * 1e6),
        segments=2500,
        rate_pps=20_000,
        queue_packets=queue_packets,
        drops_us=(105_000,),
    )


def _equilibrium(gamma: int, eta: float) -> tuple[Law, ...]:
    scenario = _full_path(8, ("gamma", gamma), *millionths(eta=eta))
    law = partial(Law, "compound", reference=INFOCOM, scenarios=(scenario,))
    return (
        law(
            f"the delay part gives way when gamma = {gamma} segments are queued",
            axes=BACKLOG,
            points=partial(gives_way, gamma=gamma),
        ),
        law(
            f"it gives up eta = {eta:g} of the backlog",
            axes=GIVEN,
            points=partial(given_up, eta=eta),
        ),
    )


LAWS: tuple[Law, ...] = (
    *_idle_path(),
    *_idle_path(alpha=0.05, k=0.8, beta=0.25),
    *_equilibrium(100, 1),
    *_equilibrium(60, 0.5),
)
