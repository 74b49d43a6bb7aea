# SPDX-License-Identifier: Apache-2.0
"""Metrics of the report: cuts of parallel streams, their spacing, and changes of the lead."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longfat.metrics.cuts import cut_times_us, cuts
from longfat.metrics.data import Array, Connection, Connections, EachFlow, NoValue
from longfat.metrics.registry import metric

LEAST_CUTS = 3  # two intervals, the least that can be compared
LEAD = 0.05  # of the goodput of both flows; a smaller difference counts as equal (docs/claims.md)


@metric("streams", "streams whose congestion window was cut", bounds=(0, np.inf))
def streams_cut(streams: Connections, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of streams whose congestion window was cut at least once within the window of time."""
    return float(sum(cuts(samples, since_us, until_us) > 0 for samples in streams))


@metric("%", "longest over shortest interval between cuts", bounds=(0, np.inf), name="cut_spacing")
def cut_spacing_percent(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """By how many percent the longest interval between successive cuts exceeds the shortest; 0 is a clockwork.

    The time before the first cut is not an interval.
    """
    times = cut_times_us(samples, since_us, until_us)
    if len(times) < LEAST_CUTS:
        counted = f"the congestion window was cut {len(times)} times"
        raise NoValue(f"{counted}, at least {LEAST_CUTS} are needed to compare intervals")
    intervals = np.diff(times)
    return float(100 * (intervals.max() / intervals.min() - 1))


@metric("changes", "changes of the lead", bounds=(0, np.inf))
def lead_changes(flows: EachFlow, interval_us: float) -> float:
    """Number of times the lead passes from one of two flows to the other.

    Both flows' acknowledged bytes are compared over successive whole intervals from the first sample of the
    later flow to the last sample of the earlier to end, each flow's read at the samples nearest to the edges.
    A flow leads when it is ahead by more than 5 % of the sum of both; an interval that neither leads is passed
    over.
    """
    if len(flows) != 2:
        raise NoValue(f"the lead is one of two flows, the samples are of {len(flows)}")
    start = max(float(samples.t_us[0]) for samples in flows.values())
    end = min(float(samples.t_us[-1]) for samples in flows.values())
    count = int((end - start) // interval_us)
    if count < 1:
        raise NoValue(f"both flows send for {max(end - start, 0) / 1e6:.1f} s, less than an interval")
    edges: Array = start + interval_us * np.arange(count + 1, dtype=np.float64)
    one, other = (np.diff(samples.acked[_nearest(samples.t_us, edges)]) for samples in flows.values())
    ahead = np.sign(one - other)[np.abs(one - other) > LEAD * (one + other)]
    return float((np.diff(ahead) != 0).sum())


def _nearest(t_us: Array, wanted_us: Array) -> npt.NDArray[np.intp]:
    """Place of the sample nearest in time to each of the wanted moments; the earlier of two equally near."""
    later = np.clip(np.searchsorted(t_us, wanted_us), 1, len(t_us) - 1)
    return later - (wanted_us - t_us[later - 1] <= t_us[later] - wanted_us)
