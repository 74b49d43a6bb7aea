# SPDX-License-Identifier: Apache-2.0
"""Metrics of cuts of the congestion window, and of how it grows between them, from the samples of sockets.

Events of the congestion window are timed by the sample that shows them first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longfat.metrics.data import Array, Connection, Connections, EachFlow, NoValue, Samples, inside
from longfat.metrics.registry import metric

# Of enum tcp_ca_state (linux/tcp.h): the values of tcp_info's tcpi_ca_state.
OPEN = 0
CUT_STATES = (2, 3, 4)  # CWR, Recovery, Loss; a window is cut on entering them
LEAST_CUTS = 3  # two intervals, the least that can be compared
LEAD = 0.05  # of the goodput of both flows; a smaller difference counts as equal (docs/claims.md)


@metric("cuts", "cuts of the congestion window", bounds=(0, np.inf))
def cuts(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """How many times the congestion window was cut within the window of time.

    A cut is a step of ca_state from Open or Disorder into CWR, Recovery or Loss, or a fall of ssthresh between
    two samples that both are outside of these: a cut that began and ended in between. A CCA that lowers
    ssthresh to leave slow start early (CUBIC's HyStart, Vegas) has that counted, too.
    """
    return float(len(cut_times_us(samples, since_us, until_us)))


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


@metric("segments", "smallest congestion window after the first cut", bounds=(0, np.inf), name="after_first_cut")
def after_first_cut_segments(samples: Connection) -> float:
    """Smallest congestion window in segments from the first cut until ca_state is back in Open, or to the end."""
    return float(samples.cwnd[_lowest_after_first_cut(samples)[1]])


@metric("s", "time from the first cut back to the window before it", bounds=(0, np.inf), name="first_recovery")
def first_recovery_s(samples: Connection) -> float:
    """Seconds from the first cut until the congestion window is back at its value in the sample before the cut.

    A segment less counts as well: where the receiver limits the window, the last one depends on rounding.
    The recovery begins at the smallest window after the cut: in its first moments the cut is still under way.
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


@metric("segments", "congestion window", bounds=(0, np.inf), name="window_at")
def window_at_segments(samples: Connection, at_us: float) -> float:
    """Congestion window in segments in the last sample before ``at_us``."""
    before = np.flatnonzero(samples.t_us < at_us)
    if not len(before):
        raise NoValue(f"there is no sample before {at_us / 1e6:g} s")
    return float(samples.cwnd[before[-1]])


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


@metric("segments/s", "growth of the congestion window", bounds=(0, np.inf))
def window_growth(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """Segments a second by which the window grows in congestion avoidance, over the time that it spends there.

    Taken over pairs of samples of which neither is in a cut, with no cut between them, at or above ssthresh.
    """
    chosen = inside(samples.t_us, since_us, until_us)
    calm = chosen & ~np.isin(samples.ca_state, CUT_STATES) & (samples.cwnd >= samples.ssthresh)
    step = np.diff(samples.cwnd)
    pairs = calm[:-1] & calm[1:] & (step >= 0) & (np.diff(samples.ssthresh) >= 0)
    time_us = float(np.diff(samples.t_us)[pairs].sum())
    if time_us <= 0:
        raise NoValue("the window was in congestion avoidance in no two samples")
    return 1e6 * float(step[pairs].sum()) / time_us


@metric("s", "time from one cut of the congestion window to the next", bounds=(0, np.inf), name="cut_interval")
def cut_interval_s(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """Mean time from one cut of the congestion window to the next, in seconds."""
    times = cut_times_us(samples, since_us, until_us)
    if len(times) < 2:
        raise NoValue(f"the congestion window was cut {len(times)} times, at least 2 are needed for an interval")
    return float(times[-1] - times[0]) / 1e6 / (len(times) - 1)
