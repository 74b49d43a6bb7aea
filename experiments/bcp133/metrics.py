# SPDX-License-Identifier: Apache-2.0
"""Metrics of the report card: retransmissions in percent, and queueing delay."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Connections, FlowRows, NoValue, Pings, inside
from longfat.metrics.registry import metric


@metric("%", "retransmitted segments", bounds=(0, 100))
def resent(rows: FlowRows, connections: Connections) -> float:
    """Retransmitted segments in percent of all sent segments: retransmitted and delivered ones."""
    again = [row["retrans_segments"] for row in rows]
    delivered = sum(float(samples.delivered[-1]) for samples in connections)
    if None in again or delivered <= 0:
        raise NoValue("nothing was delivered, or no count of what was sent again")
    total = float(sum(count for count in again if count is not None))
    return 100 * total / (total + delivered)


@metric("ms", "mean queueing delay", bounds=(0, np.inf))
def waiting(pings: Pings, since_us: float, until_us: float | None = None) -> float:
    """Mean RTT of the pings minus the smallest RTT of the run, in milliseconds."""
    chosen = inside(pings.t_us, since_us, until_us)
    if not chosen.any():
        raise NoValue("no ping was answered in the window")
    return float(pings.values[chosen].mean() - pings.values.min()) / 1000


@metric("ms", "95th-percentile queueing delay", bounds=(0, np.inf))
def long_waiting(pings: Pings, since_us: float) -> float:
    """95th percentile of the queueing delay whose mean is ``waiting``."""
    chosen = inside(pings.t_us, since_us, None)
    if not chosen.any():
        raise NoValue("no ping was answered in the window")
    return float(np.percentile(pings.values[chosen], 95) - pings.values.min()) / 1000
