# SPDX-License-Identifier: Apache-2.0
"""Metrics of one connection's windows and of the queue that it sees, from the samples of its socket.

Samples before ``since`` do not count. The window of a CCA with a delay part is the sum of both parts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longfat.metrics.cuts import cut_places
from longfat.metrics.data import Connection, NoValue, Samples
from longfat.metrics.registry import metric


@metric("segments", "segments of the connection in queues", bounds=(0, np.inf), name="backlog")
def backlog_segments(samples: Connection, since_us: float = -np.inf) -> float:
    """Median of cwnd (1 - min RTT / RTT): the connection's own segments in queues, as Vegas estimates them."""
    samples = samples.since(since_us)
    known = (samples.srtt_us > 0) & (samples.min_rtt_us > 0)
    if not known.any():
        raise NoValue("no RTT was sampled in the window")
    window, rtt, least = (values[known] for values in (samples.cwnd, samples.srtt_us, samples.min_rtt_us))
    return float(np.median(window * np.maximum(1 - least / rtt, 0)))


@metric("", "ssthresh after a cut over the window before it", bounds=(0, np.inf))
def threshold_ratio(samples: Connection, since_us: float | None = None) -> float:
    """Ratio of ssthresh in the first sample after a cut to the window before the cut, median over the cuts.

    The window before is the larger window of this sample and the previous one, because a cut takes a round trip.
    """
    places = _cuts_since(samples, since_us)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    return float(np.median(samples.ssthresh[places] / np.maximum(samples.cwnd[places], samples.cwnd[places - 1])))


@metric("segments", "smallest ssthresh after a cut", bounds=(0, np.inf), name="least_threshold")
def least_threshold_segments(samples: Connection, since_us: float | None = None) -> float:
    """Smallest ssthresh after a cut, in segments."""
    places = _cuts_since(samples, since_us)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    return float(samples.ssthresh[places].min())


def _cuts_since(samples: Samples, since_us: float | None) -> npt.NDArray[np.intp]:
    places = cut_places(samples)
    return places[samples.t_us[places] >= (-np.inf if since_us is None else since_us)]
