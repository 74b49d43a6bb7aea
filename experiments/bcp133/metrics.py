# SPDX-License-Identifier: Apache-2.0
"""Metrics of the report card: retransmissions in percent, and queueing delay."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import NoValue, Pings, WholeRun, inside
from longfat.metrics.registry import metric


@metric("%", "retransmitted segments", bounds=(0, 100))
def resent(data: WholeRun) -> float:
    """Retransmitted segments in percent of all sent segments: retransmitted and delivered ones."""
    again, delivered = data.at_end("retrans_total"), data.at_end("delivered_segments")
    if delivered <= 0:
        raise NoValue("nothing was delivered")
    return 100 * again / (again + delivered)


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
