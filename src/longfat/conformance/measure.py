# SPDX-License-Identifier: Apache-2.0
"""What a trace says of a window: how it grows each RTT, what a loss leaves of it, how long it takes to come back.

Owns the measures that several laws share. Knows no law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longfat.conformance.law import Point
from longfat.conformance.trace import Numbers, Run, Trace


@dataclass(frozen=True)
class Epoch:
    """The growth between two losses: the samples in congestion avoidance, and the window that the loss before met.

    ``window_before`` is None for the first epoch, which slow start leads into.
    """

    trace: Trace
    window_before: float | None

    @property
    def middle(self) -> float:
        """The mean window in segments."""
        return float(self.trace.cwnd.mean())


def epochs(trace: Trace) -> list[Epoch]:
    """The epochs of congestion avoidance, in order of time; none is empty.

    A window in recovery belongs to no epoch, nor does one below ssthresh, which is slow start.
    """
    found: list[Epoch] = []
    growing = trace.is_open & (trace.cwnd >= trace.ssthresh)
    starts = np.flatnonzero(growing & ~np.concatenate(([False], growing[:-1])))
    ends = np.flatnonzero(growing & ~np.concatenate((growing[1:], [False]))) + 1
    for start, end in zip(starts, ends, strict=True):
        chosen = np.zeros(len(trace.t_us), dtype=bool)
        chosen[start:end] = True
        before = float(found[-1].trace.cwnd[-1]) if found else None
        found.append(Epoch(trace.where(chosen), before))
    return found


def slope(x: Numbers, y: Numbers) -> float:
    """Of the straight line through the points with the least squared error."""
    return float(np.polyfit(x - x.mean(), y, 1)[0])


def rounds(trace: Trace) -> Numbers:
    """RTTs since the first sample, as TCP counts them: one ends when the window at its start is acknowledged.

    On a path without a queue this is the time in RTTs, but for pauses and bursts that a loss leaves behind.
    """
    ends = [trace.delivered[0]]
    while ends[-1] < trace.delivered[-1]:
        at = int(np.searchsorted(trace.delivered, ends[-1], side="right")) - 1
        ends.append(ends[-1] + trace.cwnd[at])
    return np.interp(trace.delivered, ends, np.arange(len(ends)))


def growth_each_rtt(trace: Trace) -> float:
    """Segments that the window grows each RTT: the slope of the window over the rounds."""
    return slope(rounds(trace), trace.cwnd)


def share_each_rtt(trace: Trace) -> float:
    """Share by which the window grows each RTT: 0.01 when it is 1.01 times as large an RTT later."""
    return float(np.expm1(slope(rounds(trace), np.log(trace.cwnd))))


def rounds_to_reach(trace: Trace, window: float) -> float:
    """RTTs until the window reaches ``window`` segments, between two samples by a straight line; NaN if never."""
    above = np.flatnonzero(trace.cwnd >= window)
    if not len(above):
        return float("nan")
    pair = slice(max(int(above[0]) - 1, 0), int(above[0]) + 1)
    return float(np.interp(window, trace.cwnd[pair], rounds(trace)[pair]))


def kept(run: Run, law: float, source: float | None = None) -> Sequence[Point]:
    """What each loss leaves of the window, down to ssthresh, where recovery ends, against ``law``."""
    return [
        Point(epoch.window_before, law, float(epoch.trace.ssthresh[0]) / epoch.window_before, source)
        for epoch in epochs(run.trace)
        if epoch.window_before is not None
    ]


def total(traces: list[Trace]) -> Trace:
    """The sum of the windows of connections that were sampled at the same times and all grew."""
    times = set.intersection(*(set(trace.t_us.tolist()) for trace in traces))
    parts = [trace.where(np.isin(trace.t_us, list(times))) for trace in traces]
    summed = {name: sum(getattr(part, name) for part in parts) for name in ("cwnd", "delivered", "dwnd")}
    return Trace(**{**vars(parts[0]), **summed})
