# SPDX-License-Identifier: Apache-2.0
"""Metrics of the variation of the acknowledged rate between intervals, and of pings."""

from __future__ import annotations

import numpy as np

from longfat.dataset.load import Series
from longfat.metrics.data import Array, Connections, FlowRows, NoValue, Pings, Span
from longfat.metrics.registry import metric
from longfat.metrics.together import rates_mbps

LEAST_INTERVALS = 3  # fewer have no meaningful deviation


def variation(rates: Array) -> float:
    """Return the standard deviation over the mean, dimensionless: 0 is steady."""
    if len(rates) < LEAST_INTERVALS:
        raise NoValue(f"there are {len(rates)} intervals, at least {LEAST_INTERVALS} are needed")
    if rates.mean() <= 0:
        raise NoValue("nothing was carried")
    return float(rates.std() / rates.mean())


@metric("", "coefficient of variation of the acknowledged rate", bounds=(0, np.inf), source="Bullot and Cottrell 2003")
def stability(
    connections: Connections, rows: FlowRows, interval_us: float, since_us: float = 0.0, flow: str | None = None
) -> float:
    """Coefficient of variation of the data acknowledged per interval, of one flow or of all: 0 is steady."""
    own = [row for row in rows if flow in (None, row["flow"])]
    if not own:
        raise NoValue("the run has no such flow")
    start_us = max(since_us, *(float(row["start_us"]) for row in own))
    span = Span(start_us, min(row["end_us"] for row in own))
    return variation(rates_mbps(connections, span, interval_us).sum(axis=1))


@metric("ms", "mean RTT of pings", bounds=(0, np.inf))
def rtt(pings: Pings, since_us: float = 0.0) -> float:
    """Mean round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, since_us).mean()) / 1000


@metric("ms", "smallest RTT of pings", bounds=(0, np.inf))
def rtt_least(pings: Pings) -> float:
    """Smallest round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, 0.0).min()) / 1000


@metric("ms", "largest RTT of pings", bounds=(0, np.inf))
def rtt_most(pings: Pings) -> float:
    """Largest round-trip time of the answered pings in milliseconds."""
    return float(_answered(pings, 0.0).max()) / 1000


def _answered(pings: Series, since_us: float) -> Array:
    chosen = pings.values[pings.t_us >= since_us]
    if not len(chosen):
        raise NoValue("no ping was answered")
    return chosen
