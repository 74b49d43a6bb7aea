# SPDX-License-Identifier: Apache-2.0
"""The metrics: each a pure function of rows of flows or web traffic, of one series of outstanding data, or of samples
of sockets.

Owns every definition that a figure or claim rests on. Knows neither files nor claims. A series is cut into
intervals of one base RTT before anything is fitted: outstanding data jumps by a packet with each packet and
each acknowledgement, and the window rules under study are stated per RTT. Events of the congestion window are
timed by the sample that shows them first. A metric that the data cannot give (too few intervals, no drop)
raises NoValue with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longfat.dataset.load import Series

Array = npt.NDArray[np.float64]

LEAST_INTERVALS = 4  # fewer points than this say nothing about a straight line
LEAST_SEGMENT = 3  # intervals on either side of a bend
REGROWN = 0.98
RECOVERY_RTTS = 10  # fast recovery from one lost packet takes about two RTTs; ten leave room for a slow one

# Of enum tcp_ca_state (linux/tcp.h): what tcp_info gives as tcpi_ca_state.
OPEN = 0
CUT_STATES = (2, 3, 4)  # CWR, Recovery, Loss; a window is cut on the way into them
LEAST_CUTS = 3  # two intervals, the least that can be compared
LEAD = 0.05  # of the goodput of both flows; what differs by less is alike (docs/claims.md)


@dataclass(frozen=True)
class Samples:
    """What the kernel said of one sending socket (tcp_info), by time in microseconds, ascending.

    ``ca_state`` has the kernel's numbers, ``cwnd`` and ``ssthresh`` are in segments, ``acked`` is the sum of
    bytes acknowledged so far.
    """

    t_us: Array
    ca_state: Array
    cwnd: Array
    ssthresh: Array
    acked: Array


class NoValue(Exception):
    """The data cannot give the metric; the text says why."""


def goodput_mbps(flows: Sequence[Mapping[str, Any]], flow: str | None = None) -> float:
    """Goodput in Mb/s (10^6 bit/s) as iperf2's receiving end reports it: one flow's, or the sum of all."""
    return of_flows("goodput_bps", "goodput", flows, flow) / 1e6


def share_percent(flows: Sequence[Mapping[str, Any]], flow: str) -> float:
    """One flow's part of the goodput of all, in percent: 100 * x / sum of x."""
    total = goodput_mbps(flows)
    if total <= 0:
        raise NoValue("no flow received anything")
    return 100 * goodput_mbps(flows, flow) / total


def reaches_percent(flows: Sequence[Mapping[str, Any]], level_bps: float, flow: str | None = None) -> float:
    """100 when the goodput of one flow, or of all, is at least the level, else 0: a mean of it is a share of runs."""
    return 100.0 if of_flows("goodput_bps", "goodput", flows, flow) >= level_bps else 0.0


def retransmissions(flows: Sequence[Mapping[str, Any]], flow: str | None = None) -> float:
    """Segments that the sending sockets sent again (tcp_info tcpi_total_retrans): one flow's, or the sum of all."""
    return of_flows("retrans_segments", "count of retransmissions", flows, flow)


def points(series: Series, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of points in a plot of outstanding data: one for each packet that moved it, within the window."""
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    return float(((series.t_us >= since) & (series.t_us < until)).sum())


def plateau_bytes(series: Series, since_us: float, until_us: float) -> float:
    """Level of outstanding data in bytes: the median over a window of time."""
    return float(np.median(_cut(series, since_us, until_us).values))


def before_drop_bytes(series: Series, at_us: float, rtt_us: float) -> float:
    """Outstanding data in bytes just before a drop: the median over the RTT that ends at ``at_us``."""
    return plateau_bytes(series, at_us - rtt_us, at_us)


def recovered_us(series: Series, at_us: float, rtt_us: float) -> float:
    """When a flow is back at its own pace after a drop, in microseconds: an RTT after the emptiest moment.

    The acknowledgement that ends recovery covers all that was sent since the loss, so outstanding data falls
    to nearly nothing and takes an RTT to fill the reduced window. Sought within ten RTTs of ``at_us``.
    """
    recovery = _cut(series, at_us, at_us + RECOVERY_RTTS * rtt_us)
    return float(recovery.t_us[int(recovery.values.argmin())]) + rtt_us


def after_drop_bytes(series: Series, at_us: float, rtt_us: float) -> float:
    """Outstanding data in bytes after a drop: the median over the first RTT after recovery."""
    since_us = recovered_us(series, at_us, rtt_us)
    return plateau_bytes(series, since_us, since_us + rtt_us)


def drop_ratio(series: Series, at_us: float, rtt_us: float) -> float:
    """Outstanding data after a drop as a fraction of that before: 1 - b, of no unit."""
    return after_drop_bytes(series, at_us, rtt_us) / before_drop_bytes(series, at_us, rtt_us)


def slow_start_growth(series: Series, rtt_us: float) -> float:
    """Factor by which outstanding data grows each RTT in slow start, of no unit.

    Slow start is taken to last until the peak of an RTT no longer exceeds that of the one before by a tenth.
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


def linear_growth_segments(
    series: Series,
    rtt_us: float,
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


def linearity(series: Series, rtt_us: float, since_us: float, until_us: float) -> float:
    """How straight the growth is: the coefficient of determination R^2 of the fitted line, of no unit."""
    t_us, levels = per_rtt(series, rtt_us, since_us, until_us)
    _, _, error = _line(t_us, levels)
    scatter = float(((levels - levels.mean()) ** 2).sum())
    if scatter == 0:
        raise NoValue("the outstanding data is constant")
    return 1 - error / scatter


def regrowth_percent(series: Series, rtt_us: float, at_us: float) -> float:
    """Growth in percent per RTT after a drop: slope of a straight line through the logarithm of the levels.

    Taken from the end of recovery to the last RTT below 98 % of the level before the drop: there something
    else than its congestion window may hold the sender.
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
    """Where growth changes its slope: time in s, level in bytes, and slope after over slope before.

    Two straight lines are fitted to the levels of the RTTs; the break is where their squared error is least.
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


def cuts(samples: Samples, since_us: float | None = None, until_us: float | None = None) -> float:
    """How many times the congestion window was cut within the window of time.

    A cut is a step of ca_state from Open or Disorder into CWR, Recovery or Loss, or a fall of ssthresh between
    two samples that both are outside of these: a cut that began and ended in between. A CCA that lowers
    ssthresh to leave slow start early (CUBIC's HyStart, Vegas) has that counted, too.
    """
    return float(len(cut_times_us(samples, since_us, until_us)))


def streams_cut(streams: Sequence[Samples], since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of streams whose congestion window was cut at least once within the window of time."""
    return float(sum(cuts(samples, since_us, until_us) > 0 for samples in streams))


def cut_spacing_percent(samples: Samples, since_us: float | None = None, until_us: float | None = None) -> float:
    """By how many percent the longest interval between successive cuts exceeds the shortest; 0 is a clockwork.

    What lies before the first cut is no interval.
    """
    times = cut_times_us(samples, since_us, until_us)
    if len(times) < LEAST_CUTS:
        counted = f"the congestion window was cut {len(times)} times"
        raise NoValue(f"{counted}, at least {LEAST_CUTS} are needed to compare intervals")
    intervals = np.diff(times)
    return float(100 * (intervals.max() / intervals.min() - 1))


def after_first_cut_segments(samples: Samples) -> float:
    """Smallest congestion window in segments from the first cut until ca_state is back in Open, or to the end."""
    return float(samples.cwnd[_lowest_after_first_cut(samples)[1]])


def first_recovery_s(samples: Samples) -> float:
    """Seconds from the first cut until the congestion window is again what it was in the sample before the cut.

    A segment less counts as well: where the receiver limits the window, the last one is a matter of rounding.
    The way back begins at the smallest window after the cut: in its first moments the cut is still under way.
    """
    cut, lowest = _lowest_after_first_cut(samples)
    before = samples.cwnd[cut - 1]
    if samples.cwnd[lowest] >= before:
        raise NoValue(f"the first cut left no window below the {before:.0f} segments sampled before it")
    back = np.flatnonzero(samples.cwnd[lowest:] >= before - 1)
    if not len(back):
        ended = (samples.t_us[-1] - samples.t_us[cut]) / 1e6
        raise NoValue(f"the window is not back at {before:.0f} segments when the run ends {ended:.1f} s after the cut")
    return float(samples.t_us[lowest + back[0]] - samples.t_us[cut]) / 1e6


def window_at_segments(samples: Samples, at_us: float) -> float:
    """Congestion window in segments in the last sample before ``at_us``."""
    before = np.flatnonzero(samples.t_us < at_us)
    if not len(before):
        raise NoValue(f"there is no sample before {at_us / 1e6:g} s")
    return float(samples.cwnd[before[-1]])


def lead_changes(flows: Mapping[str, Samples], interval_us: float) -> float:
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


def per_rtt(
    series: Series, rtt_us: float, since_us: float | None = None, until_us: float | None = None
) -> tuple[Array, Array]:
    """Middle of each whole RTT of the window in microseconds, and the median level in it in bytes.

    An RTT without a packet keeps the level of the one before. Without a window the whole series is taken.
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


def of_flows(column: str, what: str, flows: Sequence[Mapping[str, Any]], flow: str | None) -> float:
    """Sum of a column over one flow's rows, or over all."""
    chosen = [row[column] for row in flows if flow in (None, row["flow"])]
    if not chosen or None in chosen:
        raise NoValue(f"no {what} of flow {flow!r}" if flow else f"no {what} of {'every' if chosen else 'any'} flow")
    return float(sum(chosen))


def _cut(series: Series, since_us: float | None, until_us: float | None) -> Series:
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    chosen = (series.t_us >= since) & (series.t_us < until)
    if not chosen.any():
        raise NoValue("no outstanding data was recorded in the window")
    return Series(series.t_us[chosen], series.values[chosen])


def cut_places(samples: Samples) -> npt.NDArray[np.intp]:
    """Places of the samples that show a cut first; each has a sample before it."""
    within = np.isin(samples.ca_state, CUT_STATES)
    entered = ~within[:-1] & within[1:]
    between = ~within[:-1] & ~within[1:] & (np.diff(samples.ssthresh) < 0)
    return np.flatnonzero(entered | between) + 1


def cut_times_us(samples: Samples, since_us: float | None, until_us: float | None) -> Array:
    """When the congestion window was cut within the window of time, in microseconds; ``cuts`` has the definition."""
    times = samples.t_us[cut_places(samples)]
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    return times[(times >= since) & (times < until)]


def _lowest_after_first_cut(samples: Samples) -> tuple[int, int]:
    """Places of the first cut and of the smallest window from there to the first sample that is Open again."""
    places = cut_places(samples)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    cut = int(places[0])
    is_open = np.flatnonzero(samples.ca_state[cut:] == OPEN)
    end = cut + int(is_open[0]) + 1 if len(is_open) else len(samples.cwnd)
    return cut, cut + int(samples.cwnd[cut:end].argmin())


def _nearest(t_us: Array, wanted_us: Array) -> npt.NDArray[np.intp]:
    """Place of the sample nearest in time to each of the wanted moments; the earlier of two equally near."""
    later = np.clip(np.searchsorted(t_us, wanted_us), 1, len(t_us) - 1)
    return later - (wanted_us - t_us[later - 1] <= t_us[later] - wanted_us)


def _end_of_ascent(peaks: Array) -> int:
    """Number of intervals up to the first that does not exceed the one before by 10 % or more."""
    flat = np.flatnonzero(peaks[1:] < 1.1 * peaks[:-1])
    return int(flat[0]) + 1 if len(flat) else len(peaks)


def _line(x: Array, y: Array) -> tuple[float, float, float]:
    """Slope, intercept and squared error of the least-squares line."""
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx * dy).sum() / (dx * dx).sum())
    return slope, float(y.mean() - slope * x.mean()), float(((dy - slope * dx) ** 2).sum())
