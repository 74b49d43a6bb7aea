# SPDX-License-Identifier: Apache-2.0
"""What the report card measures beside the metrics of the project: losses in percent and what waits in the queue."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Connections, FlowRows, NoValue, Pings, inside
from longfat.metrics.registry import metric


@metric("%", "segments sent again", bounds=(0, 100))
def resent(rows: FlowRows, connections: Connections) -> float:
    """Segments that were sent again, in percent of all that were sent: those and the ones that arrived."""
    again = [row["retrans_segments"] for row in rows]
    delivered = sum(float(samples.delivered[-1]) for samples in connections)
    if None in again or delivered <= 0:
        raise NoValue("nothing was delivered, or no count of what was sent again")
    total = float(sum(count for count in again if count is not None))
    return 100 * total / (total + delivered)


@metric("ms", "delay of the queue", bounds=(0, np.inf))
def waiting(pings: Pings, since_us: float, until_us: float | None = None) -> float:
    """Mean round-trip time of the pings above the smallest of the run, in milliseconds."""
    chosen = inside(pings.t_us, since_us, until_us)
    if not chosen.any():
        raise NoValue("no ping was answered in the window")
    return float(pings.values[chosen].mean() - pings.values.min()) / 1000


@metric("ms", "delay of the queue that one ping of twenty exceeds", bounds=(0, np.inf))
def long_waiting(pings: Pings, since_us: float) -> float:
    """The 95th percentile of what ``waiting`` is the mean of."""
    chosen = inside(pings.t_us, since_us, None)
    if not chosen.any():
        raise NoValue("no ping was answered in the window")
    return float(np.percentile(pings.values[chosen], 95) - pings.values.min()) / 1000
