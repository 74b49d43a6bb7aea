# SPDX-License-Identifier: Apache-2.0
"""Congestion-avoidance epochs, from one loss to the next, and the growth of the window in them.

Recovery and slow start, in which the window is below ssthresh, belong to no epoch. Metrics of studies use this module.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longfat.metrics.data import Array, NoValue, Samples

OPEN_STATES = (0, 1)  # TCP_CA_Open and TCP_CA_Disorder (linux/tcp.h): no reduction is under way


@dataclass(frozen=True)
class Epoch:
    """The samples between two losses, and the window at the preceding loss, None for the first epoch."""

    samples: Samples
    window_before: float | None

    @property
    def left(self) -> float:
        """Share of the window that the preceding loss left: ssthresh, at which recovery ends, over the window."""
        assert self.window_before is not None
        return float(self.samples.ssthresh[0]) / self.window_before


def is_open(samples: Samples) -> npt.NDArray[np.bool_]:
    """Return the mask of the samples without a reduction of the window."""
    return np.isin(samples.ca_state, OPEN_STATES)


def epochs(samples: Samples) -> list[Epoch]:
    """Return the epochs in order of time. Raises NoValue without any."""
    growing = is_open(samples) & (samples.cwnd >= samples.ssthresh)
    starts = np.flatnonzero(growing & ~np.concatenate(([False], growing[:-1])))
    ends = np.flatnonzero(growing & ~np.concatenate((growing[1:], [False]))) + 1
    found: list[Epoch] = []
    for start, end in zip(starts, ends, strict=True):
        chosen = np.zeros(len(growing), dtype=bool)
        chosen[start:end] = True
        before = float(found[-1].samples.cwnd[-1]) if found else None
        found.append(Epoch(samples.where(chosen), before))
    if not found:
        raise NoValue("the window was never in congestion avoidance")
    return found


def after_losses(samples: Samples) -> list[tuple[Epoch, float]]:
    """Return the epochs that follow a loss in congestion avoidance, each with the window at this loss."""
    return [(epoch, epoch.window_before) for epoch in epochs(samples) if epoch.window_before is not None]


def slope(x: Array, y: Array) -> float:
    """Return the slope of the least-squares line."""
    return float(np.polyfit(x - x.mean(), y, 1)[0])


def rounds(samples: Samples) -> Array:
    """Return the RTTs since the first sample; an RTT ends when the window at its start is acknowledged.

    On a path without a queue this is the time in RTTs, except for pauses and bursts after a loss.
    """
    ends = [samples.delivered[0]]
    while ends[-1] < samples.delivered[-1]:
        at = int(np.searchsorted(samples.delivered, ends[-1], side="right")) - 1
        ends.append(ends[-1] + samples.cwnd[at])
    return np.interp(samples.delivered, ends, np.arange(len(ends)))


def rtts_to_reach(samples: Samples, window: float) -> float:
    """Return the RTTs until the window reaches a size, by interpolation. Raises NoValue if it never does."""
    above = np.flatnonzero(samples.cwnd >= window)
    if not len(above):
        raise NoValue(f"the window does not reach {window:.0f} segments")
    pair = slice(max(int(above[0]) - 1, 0), int(above[0]) + 1)
    return float(np.interp(window, samples.cwnd[pair], rounds(samples)[pair]))
