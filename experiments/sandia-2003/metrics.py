# SPDX-License-Identifier: Apache-2.0
"""Metrics and formulas of the report: combined throughput, cuts of parallel streams, the lead, outstanding data."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Series
from longfat.metrics.cuts import cut_times_us, cuts
from longfat.metrics.data import Array, BaseRtt, Connection, Connections, EachFlow, FlowRows, NoValue, Outstanding
from longfat.metrics.goodput import of_flows
from longfat.metrics.outstanding import LEAST_INTERVALS, before_drop_bytes, per_rtt, recovered_us
from longfat.metrics.registry import metric
from longfat.relations.formulas import formula, highspeed_rows

LEAST_CUTS = 3  # two intervals, the least that can be compared
LEAD = 0.05  # of the goodput of both flows; a smaller difference counts as equal (docs/claims.md)


@metric("Mb/s", "combined throughput", bounds=(0, np.inf))
def combined(flows: FlowRows) -> float:
    """Sum of the streams' goodputs in Mb/s, each over its own receiving time: the report adds Iperf's averages."""
    return of_flows("goodput_bps", "goodput", flows, None) / 1e6


@metric("%", "runs at or above the level", bounds=(0, 100))
def combined_reaches(flows: FlowRows, level_bps: float) -> float:
    """100 if the combined throughput is at least the level, else 0: its mean is a share of runs."""
    return 100.0 if 1e6 * combined(flows) >= level_bps else 0.0


@metric("streams", "streams whose congestion window was cut", bounds=(0, np.inf))
def streams_cut(streams: Connections, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of streams whose congestion window was cut at least once within the window of time."""
    return float(sum(cuts(samples, since_us, until_us) > 0 for samples in streams))


@metric("%", "excess of the longest interval between cuts over the shortest", bounds=(0, np.inf), name="cut_spacing")
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


@formula
def highspeed_row(increase: float) -> float:
    """Window in segments of the table's row with that increase (RFC 3649, appendix B); its last row beyond that."""
    return highspeed_rows()[min(max(math.ceil(increase), 1), len(highspeed_rows())) - 1]


LEAST_SEGMENT = 3  # intervals on either side of a bend


REGROWN = 0.98


@metric("points", "points in the plot of outstanding data", bounds=(0, np.inf))
def points(series: Outstanding, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of points in a plot of outstanding data, one for each packet that changed it, within the window."""
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    return float(((series.t_us >= since) & (series.t_us < until)).sum())


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


def _end_of_ascent(peaks: Array) -> int:
    """Return the number of intervals before the first that exceeds its predecessor by less than 10 %."""
    flat = np.flatnonzero(peaks[1:] < 1.1 * peaks[:-1])
    return int(flat[0]) + 1 if len(flat) else len(peaks)


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Return slope, intercept and squared error of the least-squares line."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx * dy).sum() / (dx * dx).sum())
    return slope, float(y.mean() - slope * x.mean()), float(((dy - slope * dx) ** 2).sum())
