# SPDX-License-Identifier: Apache-2.0
"""Metrics of cuts of the congestion window, and of its growth between cuts, from the samples of sockets.

The time of an event is the time of the first sample that shows it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longfat.metrics.data import Array, Connection, NoValue, Samples, inside
from longfat.metrics.registry import metric

# Values of tcpi_ca_state in tcp_info (enum tcp_ca_state, linux/tcp.h)
OPEN = 0
CUT_STATES = (2, 3, 4)  # CWR, Recovery, Loss; a window is cut on entering them


@metric("cuts", "cuts of the congestion window", bounds=(0, np.inf))
def cuts(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """Number of cuts of the congestion window within the window of time.

    A cut is a change of ca_state from Open or Disorder to CWR, Recovery or Loss, or a decrease of ssthresh between two
    samples in Open or Disorder: a cut that began and ended between them. If a CCA reduces ssthresh to leave slow start
    early (CUBIC's HyStart, Vegas), this counts, too.
    """
    return float(len(cut_times_us(samples, since_us, until_us)))


@metric("segments", "smallest congestion window after the first cut", bounds=(0, np.inf), name="after_first_cut")
def after_first_cut_segments(samples: Connection) -> float:
    """Smallest congestion window in segments from the first cut until ca_state is Open again, or until the end."""
    return float(samples.cwnd[_lowest_after_first_cut(samples)[1]])


@metric("s", "time from the first cut back to the window before it", bounds=(0, np.inf), name="first_recovery")
def first_recovery_s(samples: Connection) -> float:
    """Seconds from the first cut until the congestion window is back at its value in the sample before the cut.

    A window one segment smaller counts as recovered: if the receiver limits the window, the last segment depends on
    rounding. The search begins at the smallest window after the cut, because a cut is not instantaneous.
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


def cut_places(samples: Samples) -> npt.NDArray[np.intp]:
    """Return the index of the first sample after each cut; a sample precedes each."""
    within = np.isin(samples.ca_state, CUT_STATES)
    entered = ~within[:-1] & within[1:]
    between = ~within[:-1] & ~within[1:] & (np.diff(samples.ssthresh) < 0)
    return np.flatnonzero(entered | between) + 1


def cut_times_us(samples: Samples, since_us: float | None, until_us: float | None) -> Array:
    """Return the times in microseconds of cuts within the window of time, as ``cuts`` defines them."""
    times = samples.t_us[cut_places(samples)]
    since = -np.inf if since_us is None else since_us
    until = np.inf if until_us is None else until_us
    return times[(times >= since) & (times < until)]


def _lowest_after_first_cut(samples: Samples) -> tuple[int, int]:
    """Return the indices of the first cut, and of the smallest window from there to the first sample in Open."""
    places = cut_places(samples)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    cut = int(places[0])
    is_open = np.flatnonzero(samples.ca_state[cut:] == OPEN)
    end = cut + int(is_open[0]) + 1 if len(is_open) else len(samples.cwnd)
    return cut, cut + int(samples.cwnd[cut:end].argmin())


@metric("segments/s", "growth of the congestion window", bounds=(0, np.inf))
def window_growth(samples: Connection, since_us: float | None = None, until_us: float | None = None) -> float:
    """Growth of the window in segments per second of congestion avoidance.

    Measured over pairs of consecutive samples at or above ssthresh, without a cut at or between them.
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
