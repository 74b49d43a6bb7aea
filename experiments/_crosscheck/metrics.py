# SPDX-License-Identifier: Apache-2.0
"""Metrics in which backends are compared. One run suffices: in virtual time another run is identical."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Connection, Connections, FlowRows, NoValue, WholeRun
from longfat.metrics.goodput import goodput_mbps
from longfat.metrics.registry import metric


@metric("Mb/s", "goodput of all flows", bounds=(0, np.inf))
def goodput_of_all(flows: FlowRows) -> float:
    """Aggregate goodput: the bytes of all flows over the union of their receiving times."""
    return goodput_mbps(flows)


@metric("segments", "mean window of all flows")
def window_of_all(connections: Connections, since_us: float) -> float:
    """Mean of the sum of the flows' windows: their shares of the queue are random."""
    return sum(float(samples.since(since_us).cwnd.mean()) for samples in connections)


@metric("segments", "swing of the window")
def window_swing(samples: Connection, since_us: float) -> float:
    """Range of a flow's window from its 5th to its 95th percentile."""
    low, high = np.percentile(samples.since(since_us).cwnd, (5, 95))
    return float(high - low)


@metric("packets", "mean queue at the bottleneck")
def mean_queue(run: WholeRun, since_us: float) -> float:
    """Mean of the longest queue of the run, at the bottleneck."""
    queues = [series.values[series.t_us >= since_us] for series in run.dataset.queues(run.run.run_id).values()]
    if not queues:
        raise NoValue("no queue was sampled")
    return max(float(values.mean()) for values in queues)
