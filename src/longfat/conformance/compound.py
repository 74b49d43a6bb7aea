# SPDX-License-Identifier: Apache-2.0
"""Laws of Compound TCP: growth of the delay part, its backlog, losses, burst control and tuning of gamma.

Owns their scenarios and how each law is read from the run. The formulas are in ``published``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from longfat.conformance.law import Axes, Law, Point
from longfat.conformance.measure import epochs, growth_each_rtt, kept
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
TUNED = Axes("losses so far", "backlog when the delay part gives way, segments")

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
    """The backlog at each decrease of the delay part.

    The kernel decides once each RTT on RTTs that were sampled in the one before: by then the window is up to two RTTs'
    growth above that at which gamma was reached.
    """
    step = Compound(alpha=GENTLE).growth(run.on_path + gamma)
    return [Point(gamma, (gamma, gamma + 2 * step), decision.backlog) for decision in decisions(run)]


def given_up(run: Run, eta: float) -> Sequence[Point]:
    """What each decrease takes of the window, unless the delay part has no more than that.

    Backlog and both parts of the window are whole segments to the kernel.
    """
    return [
        Point(decision.backlog, (eta * decision.backlog - 1, eta * decision.backlog + 1), decision.given)
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
    for start, end in pairwise(falls):
        part = np.arange(start + 1, end + 1)
        if inside[part].all() and np.ptp(trace.cwnd[part]) >= FALL:
            own = trace.where(np.isin(trace.t_us, trace.t_us[part]))
            points.append(Point(float(backlog[part].mean()), law, growth_each_rtt(own)))
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


def _full_path(seconds: float, alpha: float, *parameters: tuple[str, int]) -> Scenario:
    """A path that is full before the loss part fills it. The first loss comes in slow start, below that."""
    return Scenario(
        (Sender("compound", (*millionths(alpha=alpha), *parameters)),),
        duration_us=round(seconds * 1e6),
        segments=2500,
        rate_pps=20_000,
        drops_us=(105_000,),
    )


def _equilibrium(gamma: int, eta: float) -> tuple[Law, ...]:
    scenario = _full_path(8, GENTLE, ("gamma", gamma), *millionths(eta=eta))
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


def _burst(claim: str, law: float, *parameters: tuple[str, int]) -> Law:
    """Growth where burst control acts: from gamma_low to gamma segments in the queue."""
    scenario = _full_path(8, Compound().alpha, ("gamma", 200), ("gamma_low", 40), *parameters)
    points = partial(growth_in_queue, low=60, high=190, law=law)
    return Law("compound", f"from gamma_low to gamma queued, {claim}", VISTA, QUEUED, (scenario,), points)


HIGHEST = 300  # segments: gamma as it is set, above what the queue holds
LAMBDA = 0.8  # weight of a new sample
PART = 0.75  # of the backlog at a loss that a sample is


def tuned(run: Run, loss_window: bool) -> Sequence[Point]:
    """The backlog at each decrease of the delay part, against gamma as the losses so far have tuned it.

    A sample is PART of the whole queue, and with ``loss_window`` of the loss part's share in it. The loss that ends
    slow start gives none.
    """
    assert run.scenario.queue_packets is not None
    trace, gamma, points = run.trace, float(HIGHEST), []
    losses = np.flatnonzero(trace.is_open[:-1] & ~trace.is_open[1:])[1:]
    waiting = decisions(run)
    for number, at in enumerate(losses, 1):
        share = 1 - float(trace.dwnd[at] / trace.cwnd[at]) if loss_window else 1.0
        gamma = (1 - LAMBDA) * gamma + LAMBDA * PART * run.scenario.queue_packets * share
        until_us = trace.t_us[losses[number]] if number < len(losses) else np.inf
        own = [decision for decision in waiting if trace.t_us[at] < decision.t_us < until_us]
        points += [Point(number, gamma, decision.backlog) for decision in own]
    return points


def _tuning(claim: str, autotune: int) -> Law:
    scenario = Scenario(
        (Sender("compound", (("gamma", HIGHEST), ("autotune", autotune))),),
        duration_us=45_000_000,
        segments=1000,
        rtt_us=40_000,
        rate_pps=5_000,
        queue_packets=100,
        drops_us=(210_000,),
        sample_us=10_000,
    )
    points = partial(tuned, loss_window=autotune == 2)
    return Law("compound", claim, VISTA, TUNED, (scenario,), points, least_points=3)


LAWS: tuple[Law, ...] = (
    *_idle_path(),
    *_idle_path(alpha=0.05, k=0.8, beta=0.25),
    *_equilibrium(100, 1),
    *_equilibrium(60, 0.5),
    _burst("muted increments leave the growth of the loss part", 1, ("burst", 1)),
    _burst(
        "partial increments add 3 segments each RTT to that of the loss part",
        4,
        ("burst", 2),
        ("partial_increment", 3),
    ),
    _tuning("by diffwnd, gamma follows 3/4 of the backlog at a loss", 1),
    _tuning("by the loss window, gamma follows 3/4 of the loss part's backlog at a loss", 2),
)
