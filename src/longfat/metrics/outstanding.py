# SPDX-License-Identifier: Apache-2.0
"""Metrics of outstanding data, from tcptrace's series of a capture.

Fits use the median level of each base RTT: outstanding data changes with each packet and each acknowledgement, and the
window rules under study are defined per RTT.
"""

from __future__ import annotations

import numpy as np

from longfat.dataset.load import Series
from longfat.metrics.data import Array, BaseRtt, NoValue, Outstanding
from longfat.metrics.registry import metric

LEAST_INTERVALS = 4  # points for a straight line
RECOVERY_RTTS = 10  # fast recovery from one lost packet takes about two RTTs


@metric("bytes", "level of outstanding data", bounds=(0, np.inf), name="plateau")
def plateau_bytes(series: Outstanding, since_us: float, until_us: float) -> float:
    """Level of outstanding data in bytes: the median over a window of time."""
    return float(np.median(_cut(series, since_us, until_us).values))


@metric("bytes", "outstanding data before the drop", bounds=(0, np.inf), name="before_drop")
def before_drop_bytes(series: Outstanding, at_us: float, rtt_us: BaseRtt) -> float:
    """Outstanding data in bytes just before a drop: the median over the RTT that ends at ``at_us``."""
    return plateau_bytes(series, at_us - rtt_us, at_us)


def recovered_us(series: Series, at_us: float, rtt_us: float) -> float:
    """Return the end of recovery after a drop, in microseconds: an RTT after the minimum of outstanding data.

    The acknowledgement that ends recovery covers all data sent since the loss, so that outstanding data falls to nearly
    zero and then fills the reduced window within an RTT. The minimum lies within ten RTTs of ``at_us``.
    """
    recovery = _cut(series, at_us, at_us + RECOVERY_RTTS * rtt_us)
    return float(recovery.t_us[int(recovery.values.argmin())]) + rtt_us


@metric("bytes", "outstanding data after the drop", bounds=(0, np.inf), name="after_drop")
def after_drop_bytes(series: Outstanding, at_us: float, rtt_us: BaseRtt) -> float:
    """Outstanding data in bytes after a drop: the median over the first RTT after recovery."""
    since_us = recovered_us(series, at_us, rtt_us)
    return plateau_bytes(series, since_us, since_us + rtt_us)


@metric("", "outstanding data after over before the drop", bounds=(0, np.inf))
def drop_ratio(series: Outstanding, at_us: float, rtt_us: BaseRtt) -> float:
    """Outstanding data after a drop as a fraction of the level before: 1 - b, dimensionless."""
    return after_drop_bytes(series, at_us, rtt_us) / before_drop_bytes(series, at_us, rtt_us)


def per_rtt(
    series: Series, rtt_us: float, since_us: float | None = None, until_us: float | None = None
) -> tuple[Array, Array]:
    """Return the middle of each whole RTT of the window in microseconds, and its median level in bytes.

    An RTT without a packet keeps the previous level. Without a window, the whole series is used.
    """
    cut = _cut(series, since_us, until_us)
    start = float(cut.t_us[0]) if since_us is None else since_us
    last = float(series.t_us[-1])
    end = last if until_us is None else min(until_us, last)
    count = int((end - start) // rtt_us)
    if rtt_us <= 0 or count < LEAST_INTERVALS:
        raise NoValue(f"the window holds {max(count, 0)} RTTs, at least {LEAST_INTERVALS} are needed")
    edges = np.searchsorted(cut.t_us, start + rtt_us * np.arange(count + 1))
    levels = np.full(count, cut.values[0])
    for k in range(count):
        inside = cut.values[edges[k] : edges[k + 1]]
        levels[k] = np.median(inside) if len(inside) else levels[max(k - 1, 0)]
    middles: Array = start + rtt_us * (np.arange(count, dtype=np.float64) + 0.5)
    return middles, levels


def _cut(series: Series, since_us: float | None, until_us: float | None) -> Series:
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    chosen = (series.t_us >= since) & (series.t_us < until)
    if not chosen.any():
        raise NoValue("no outstanding data was recorded in the window")
    return Series(series.t_us[chosen], series.values[chosen])
