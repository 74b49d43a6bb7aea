# SPDX-License-Identifier: Apache-2.0
"""Metrics of outstanding data, the plots that tcptrace draws from a capture.

A series is cut into intervals of one base RTT before anything is fitted: outstanding data jumps by a packet with each
packet and each acknowledgement, and the window rules under study are stated per RTT. A metric that the data cannot
give (too few intervals, no drop) raises NoValue with the reason.
"""

from __future__ import annotations

import numpy as np

from longfat.dataset.load import Series
from longfat.metrics.data import Array, BaseRtt, NoValue, Outstanding
from longfat.metrics.registry import metric

LEAST_INTERVALS = 4  # fewer points than this do not determine a straight line
LEAST_SEGMENT = 3  # intervals on either side of a bend
REGROWN = 0.98
RECOVERY_RTTS = 10  # fast recovery from one lost packet takes about two RTTs; ten leave room for a slow one


@metric("points", "points in the plot of outstanding data", bounds=(0, np.inf))
def points(series: Outstanding, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of points in a plot of outstanding data, one for each packet that changed it, within the window."""
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    return float(((series.t_us >= since) & (series.t_us < until)).sum())


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

    The acknowledgement that ends recovery covers all that was sent since the loss, so outstanding data falls
    to nearly nothing and takes an RTT to fill the reduced window. It is sought within ten RTTs of ``at_us``.
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


@metric("per RTT", "growth factor in slow start", bounds=(0, np.inf))
def slow_start_growth(series: Outstanding, rtt_us: BaseRtt) -> float:
    """Factor by which outstanding data grows each RTT in slow start, dimensionless.

    Slow start lasts until the peak of an RTT exceeds the peak of the previous RTT by less than a tenth.
    A straight line is fitted to the logarithm of its peaks up to half of the highest.
    """
    starts, _ = per_rtt(series, rtt_us)
    edges = np.append(starts - rtt_us / 2, starts[-1] + rtt_us / 2)
    place = np.clip(np.searchsorted(edges, series.t_us, side="right") - 1, 0, len(starts) - 1)
    peaks = np.zeros(len(starts))
    np.maximum.at(peaks, place, series.values)
    ascent = peaks[: _end_of_ascent(peaks)]
    ascent = ascent[(ascent > 0) & (ascent <= ascent.max() / 2)]
    if len(ascent) < LEAST_INTERVALS:
        raise NoValue(f"slow start lasts {len(ascent)} RTTs, at least {LEAST_INTERVALS} are needed")
    return float(np.exp(_line(np.arange(len(ascent), dtype=float), np.log(ascent))[0]))


@metric("segments per RTT", "slope of outstanding data", name="linear_growth")
def linear_growth_segments(
    series: Outstanding,
    rtt_us: BaseRtt,
    since_us: float,
    until_us: float,
    segment_bytes: float,
    lowest_bytes: float = 0.0,
    highest_bytes: float = np.inf,
) -> float:
    """Slope in segments per RTT by least squares, over the RTTs whose level lies within the two bounds."""
    t_us, levels = per_rtt(series, rtt_us, since_us, until_us)
    chosen = (levels >= lowest_bytes) & (levels <= highest_bytes)
    if chosen.sum() < LEAST_INTERVALS:
        raise NoValue(f"{chosen.sum()} RTTs lie within the bounds, at least {LEAST_INTERVALS} are needed")
    return _line(t_us[chosen] / rtt_us, levels[chosen] / segment_bytes)[0]


@metric("", "R^2 of a straight line", bounds=(0, 1))
def linearity(series: Outstanding, rtt_us: BaseRtt, since_us: float, until_us: float) -> float:
    """Coefficient of determination R^2 of a line fitted to the growth, dimensionless."""
    t_us, levels = per_rtt(series, rtt_us, since_us, until_us)
    _, _, error = _line(t_us, levels)
    scatter = float(((levels - levels.mean()) ** 2).sum())
    if scatter == 0:
        raise NoValue("the outstanding data is constant")
    return 1 - error / scatter


@metric("% per RTT", "relative growth of outstanding data after the drop", bounds=(-100, np.inf), name="regrowth")
def regrowth_percent(series: Outstanding, rtt_us: BaseRtt, at_us: float) -> float:
    """Growth in percent per RTT after a drop: slope of a straight line through the logarithm of the levels.

    Measured from the end of recovery to the last RTT below 98 % of the level before the drop: above that, the sender
    may not be limited by its congestion window.
    """
    target = REGROWN * before_drop_bytes(series, at_us, rtt_us)
    _, levels = per_rtt(series, rtt_us, recovered_us(series, at_us, rtt_us), np.inf)
    reached = np.flatnonzero(levels >= target)
    levels = levels[: reached[0]] if len(reached) else levels
    if len(levels) < LEAST_INTERVALS or levels.min() <= 0:
        raise NoValue(f"regrowth lasts {len(levels)} RTTs, at least {LEAST_INTERVALS} are needed")
    return float(100 * np.expm1(_line(np.arange(len(levels), dtype=float), np.log(levels))[0]))


def bend(
    series: Series, rtt_us: float, since_us: float, until_us: float, highest_bytes: float = np.inf
) -> tuple[float, float, float]:
    """Return the point at which growth changes its slope: time in s, level in bytes, slope after over before.

    Two straight lines are fitted to the levels of the RTTs; the break minimises their squared error.
    The first RTT above ``highest_bytes`` ends the window.
    """
    t_us, levels = per_rtt(series, rtt_us, since_us, until_us)
    above = np.flatnonzero(levels > highest_bytes)
    if len(above):
        t_us, levels = t_us[: above[0]], levels[: above[0]]
    places = range(LEAST_SEGMENT, len(levels) - LEAST_SEGMENT + 1)
    if not places:
        raise NoValue(f"{len(levels)} RTTs are too few to find a bend")

    def squared_error(k: int) -> float:
        return _line(t_us[:k], levels[:k])[2] + _line(t_us[k:], levels[k:])[2]

    best = min(places, key=squared_error)
    before, after = _line(t_us[:best], levels[:best])[0], _line(t_us[best:], levels[best:])[0]
    if before <= 0:
        raise NoValue("the outstanding data does not grow before the bend")
    t_bend = (t_us[best - 1] + t_us[best]) / 2
    return float(t_bend) / 1e6, float(levels[best - 1] + levels[best]) / 2, after / before


@metric("s", "time of the bend", bounds=(0, np.inf))
def bend_time(
    series: Outstanding, rtt_us: BaseRtt, since_us: float, until_us: float, highest_bytes: float = np.inf
) -> float:
    """Time in seconds at which growth changes its slope (``bend``)."""
    return bend(series, rtt_us, since_us, until_us, highest_bytes)[0]


@metric("bytes", "outstanding data at the bend", bounds=(0, np.inf))
def bend_level(
    series: Outstanding, rtt_us: BaseRtt, since_us: float, until_us: float, highest_bytes: float = np.inf
) -> float:
    """Outstanding data in bytes at which growth changes its slope (``bend``)."""
    return bend(series, rtt_us, since_us, until_us, highest_bytes)[1]


@metric("", "slope after over before the bend")
def bend_ratio(
    series: Outstanding, rtt_us: BaseRtt, since_us: float, until_us: float, highest_bytes: float = np.inf
) -> float:
    """Slope after over slope before the point at which growth changes (``bend``)."""
    return bend(series, rtt_us, since_us, until_us, highest_bytes)[2]


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


def _end_of_ascent(peaks: Array) -> int:
    """Return the number of intervals before the first that exceeds its predecessor by less than 10 %."""
    flat = np.flatnonzero(peaks[1:] < 1.1 * peaks[:-1])
    return int(flat[0]) + 1 if len(flat) else len(peaks)


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Return slope, intercept and squared error of the least-squares line."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx * dy).sum() / (dx * dx).sum())
    return slope, float(y.mean() - slope * x.mean()), float(((dy - slope * dx) ** 2).sum())
