# SPDX-License-Identifier: Apache-2.0
"""Fairness and steadiness as the paper defines them (section 4), and its queue from round-trip times (6.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longfat.metrics.cuts import cut_times_us
from longfat.metrics.data import Bottleneck, Connection, Connections, NoValue, Samples, Together
from longfat.metrics.registry import metric
from longfat.metrics.together import rates_mbps

HIGH = 0.9  # of the highest rate; a smaller difference counts as about equal (docs/claims.md)


@metric("", "sigma fairness", bounds=(0, np.inf))
def sigma_fairness(connections: Connections, span: Together) -> float:
    """Standard deviation of the connections' mean rates over their mean (Li 2006, equation 2); 0 is fair."""
    (rates,) = rates_mbps(_several(connections), span)
    return float(rates.std() / _above_zero(rates.mean()))


@metric("", "xi fairness", bounds=(0, np.inf))
def xi_fairness(connections: Connections, span: Together, interval_us: float) -> float:
    """Root mean square over intervals of the deviation among connections, over the mean rate.

    Equation 3 of Li 2006 as its text has it: the same as ``sigma_fairness`` where no rate varies in time.
    """
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(np.sqrt((rates.std(axis=1) ** 2).mean()) / _above_zero(rates.mean()))


@metric("", "xi fairness as printed", bounds=(0, np.inf))
def xi_deviation(connections: Connections, span: Together, interval_us: float) -> float:
    """Deviation over intervals of the deviation among connections, over the mean rate: equation 3 as it is printed."""
    rates = rates_mbps(_several(connections), span, interval_us)
    return float(rates.std(axis=1).std() / _above_zero(rates.mean()))


@metric("Mb/s", "highest throughput", bounds=(0, np.inf), name="peak")
def peak_mbps(connections: Connections, span: Together, interval_us: float) -> float:
    """Highest rate of all connections together in an interval, in Mb/s."""
    return float(rates_mbps(connections, span, interval_us).sum(axis=1).max())


@metric("%", "time at 90 % of the highest throughput or more", bounds=(0, 100), name="sustained")
def sustained_percent(connections: Connections, span: Together, interval_us: float) -> float:
    """Percent of the intervals whose rate is 90 % of the highest or more."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    return float(100 * (rates >= HIGH * _above_zero(rates.max())).mean())


@metric("%", "lowest throughput after the highest, of the highest", bounds=(0, 100), name="dip")
def dip_percent(connections: Connections, span: Together, interval_us: float) -> float:
    """Lowest rate after the first interval at 90 % of the highest, in percent of the highest."""
    rates = rates_mbps(connections, span, interval_us).sum(axis=1)
    after = rates[int(np.flatnonzero(rates >= HIGH * _above_zero(rates.max()))[0]) :]
    return float(100 * after.min() / rates.max())


@metric("%", "time without a delay part of the window", bounds=(0, 100), name="reverted")
def reverted_percent(samples: Connection, since_us: float = -np.inf) -> float:
    """Percent of the samples in which the delay part of the window is 0 and only the loss part is left."""
    delay_part = samples.since(since_us).dwnd
    delay_part = delay_part[~np.isnan(delay_part)]
    if not len(delay_part):
        raise NoValue("the congestion control tells of no delay part of its window")
    return float(100 * (delay_part == 0).mean())


@metric("cuts", "cuts that follow another", bounds=(0, np.inf))
def repeated_cuts(samples: Connection, within_us: float, since_us: float | None = None) -> float:
    """Cuts of the congestion window that follow another within the time."""
    return float((np.diff(cut_times_us(samples, since_us, None)) <= within_us).sum())


@metric("packets", "queue by the variation of the RTT", name="derived_queue")
def derived_queue_packets(samples: Connection, port: Bottleneck, segment_bytes: float) -> float:
    """Packets that the bottleneck sends in the difference between the largest and the smallest RTT.

    The largest RTT is the largest that lasts for a round trip: unlike a queue, a delayed acknowledgment of a train's
    odd last segment ends with the next train.
    """
    known = samples.where((samples.srtt_us > 0) & (samples.min_rtt_us > 0))
    if not len(known.t_us):
        raise NoValue("no RTT was sampled")
    least = known.min_rtt_us.min()
    begins = np.searchsorted(known.t_us, known.t_us - least, side="right") - 1
    lasting = [known.srtt_us[begin : end + 1].min() for end, begin in enumerate(begins) if begin >= 0]
    if not lasting:
        raise NoValue("the RTT was sampled for less than a round trip")
    return float(max(lasting) - least) * port.rate_bps / 8e6 / segment_bytes


def _several(connections: Sequence[Samples]) -> Sequence[Samples]:
    if len(connections) < 2:
        raise NoValue("one connection alone is neither fair nor unfair")
    return connections


def _above_zero(rate: float) -> float:
    if rate <= 0:
        raise NoValue("nothing was acknowledged while all flows sent")
    return rate
