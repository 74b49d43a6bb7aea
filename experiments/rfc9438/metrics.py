# SPDX-License-Identifier: Apache-2.0
"""Metrics of RFC 9438's rules: the share that a loss leaves, the growth of the window after it, and its average.

Growth is measured in epochs, from the end of a recovery to the next loss. There is no queue: the RTT is constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from longfat.metrics.data import Array, Connection, NoValue, Point, Points, Samples, WholeRun
from longfat.metrics.epochs import epochs
from longfat.metrics.registry import metric
from longfat.relations.formulas import CUBIC_BETA, CUBIC_C

LEAST_SAMPLES = 10


@dataclass(frozen=True)
class Grown:
    """An epoch after a loss: its samples, the window at the loss, and whether it was below the previous one."""

    samples: Samples
    met: float
    below: bool

    @property
    def seconds(self) -> Array:
        """Seconds since its start."""
        return (self.samples.t_us - self.samples.t_us[0]) / 1e6

    @property
    def rtt_s(self) -> float:
        """The path's round-trip time in seconds."""
        return float(self.samples.min_rtt_us[-1]) / 1e6


def grown(samples: Samples) -> Iterator[Grown]:
    """Yield the epochs after losses, in order of time."""
    last = 0.0
    for epoch in epochs(samples):
        met = float(epoch.samples.ssthresh[0] + 0.5) / (717 / 1024)  # the kernel's beta, net/ipv4/tcp_cubic.c
        yield Grown(epoch.samples, met, below=met < last)
        last = met


@metric("", "share of the window that a loss leaves", over=("window",))
def cubic_keeps(samples: Connection) -> Points:
    """ssthresh after each loss in congestion avoidance, of the window just before it.

    The window is known to a segment: it may have grown since the last sample.
    """
    found = []
    for before, after in pairwise(grown(samples)):
        window = float(before.samples.cwnd[-1])
        found.append(Point(float(after.samples.ssthresh[0]) / window, {"window": window}, 1 / window))
    return found


def _cubics(samples: Samples, below: bool) -> Iterator[tuple[Grown, float, float]]:
    """Yield the epochs that pass their plateau, with the factor of the cube and the window of the plateau."""
    for epoch in grown(samples):
        length = float(epoch.seconds[-1])
        k_s = float(np.cbrt(epoch.met * ((1 + CUBIC_BETA) / 2 if below else 1) / CUBIC_C))
        if epoch.below != below or len(epoch.seconds) < LEAST_SAMPLES or length < 0.75 * k_s:
            continue
        a, b, c, d = np.polyfit(epoch.seconds, epoch.samples.cwnd, 3)
        bend = -b / (3 * a)
        yield epoch, float(a), float(np.polyval((a, b, c, d), bend))


@metric("segments/s^3", "factor of the cube", over=("window",))
def cubic_factor(samples: Connection) -> Points:
    """C of each epoch that passes its plateau: the cubic polynomial of least squares through the window over time."""
    return [
        Point(factor, {"window": epoch.met}) for below in (False, True) for epoch, factor, _ in _cubics(samples, below)
    ]


@metric("", "plateau, of the window at the loss", over=("window",))
def plateau_of(samples: Connection) -> Points:
    """Window of slowest growth over the window at the loss, unless that was below the previous one."""
    return [Point(level / epoch.met, {"window": epoch.met}) for epoch, _, level in _cubics(samples, below=False)]


@metric("", "plateau after a loss at a lower window", over=("window",))
def lower_plateau_of(samples: Connection) -> Points:
    """The same after a loss at a window below the previous one: fast convergence."""
    return [Point(level / epoch.met, {"window": epoch.met}) for epoch, _, level in _cubics(samples, below=True)]


@metric("segments", "growth each RTT, up to the window before the loss", over=("window",))
def growth_up_to(samples: Connection) -> Points:
    """Growth of the window in segments per RTT in an epoch, below the window at the loss."""
    return [_growth(epoch, epoch.samples.cwnd < epoch.met - 1) for epoch in grown(samples)]


@metric("segments", "growth each RTT, beyond the window before the loss", over=("window",))
def growth_beyond(samples: Connection) -> Points:
    """The same above the window at the loss."""
    return [_growth(epoch, epoch.samples.cwnd > epoch.met + 1) for epoch in grown(samples)]


def _growth(epoch: Grown, chosen: npt.NDArray[np.bool_]) -> Point:
    if chosen.sum() < LEAST_SAMPLES:
        raise NoValue("an epoch has too few samples there")
    seconds, window = epoch.seconds[chosen], epoch.samples.cwnd[chosen]
    slope = float(np.polyfit(seconds, window, 1)[0])
    return Point(slope * epoch.rtt_s, {"window": epoch.met})


@metric("segments", "average window", bounds=(0, np.inf))
def average_window(samples: Connection, since_us: float) -> float:
    """Mean of the congestion window over time, in segments."""
    chosen = samples.since(since_us)
    if len(chosen.cwnd) < LEAST_SAMPLES:
        raise NoValue("too few samples")
    return float(chosen.cwnd.mean())


@metric("", "average window, of Reno's for the same losses", bounds=(0, np.inf))
def of_reno(data: WholeRun, samples: Connection, since_us: float) -> float:
    """Average window over sqrt(3 / (2 p)), RFC 9438's equation 3 for AIMD(1, 0.5); p is the run's own loss rate."""
    return average_window(samples, since_us) / float(np.sqrt(1.5 / _loss_rate(data)))


@metric("", "average window, of CUBIC's for the same losses", bounds=(0, np.inf))
def of_cubic(data: WholeRun, samples: Connection, since_us: float) -> float:
    """Average window over (C 3.7 / 1.2)^(1/4) (RTT / p)^(3/4), RFC 9438's equation 6; p is the run's own loss rate."""
    rtt_s = float(samples.min_rtt_us[-1]) / 1e6
    law = (CUBIC_C * 3.7 / 1.2) ** 0.25 * (rtt_s / _loss_rate(data)) ** 0.75
    return average_window(samples, since_us) / law


def _loss_rate(data: WholeRun) -> float:
    """Return retransmitted over delivered segments. Raises NoValue without a loss."""
    again = data.at_end("retrans_total")
    if not again:
        raise NoValue("nothing was lost")
    return again / data.at_end("delivered_segments")
