# SPDX-License-Identifier: Apache-2.0
"""Web traffic and the time of a recovery, as the slides have them."""

from __future__ import annotations

import math

import numpy as np

from longfat.metrics.cuts import OPEN, cut_places
from longfat.metrics.data import Connection, NoValue, WebRows
from longfat.metrics.goodput import require_length
from longfat.metrics.registry import metric
from longfat.relations.formulas import (
    formula,
    scalable_doubling_rtts,
    scalable_halving_rtts,
    scalable_recovery_rtts,
)


@metric("GB", "content received by web users", bounds=(0, np.inf), name="web_bytes")
def web_gigabytes(web: WebRows, within_us: float | None = None) -> float:
    """Content received by all web users of a run in GB (10^9 bytes), including interrupted transfers.

    With ``within_us``, the users must have been active for exactly this time.
    """
    require_length(web, within_us)
    return _web_bytes(web) / 1e9


@metric("Mb/s", "content received by web users per second", bounds=(0, np.inf), name="web_rate")
def web_mbps(web: WebRows) -> float:
    """The same in Mb/s (10^6 bit/s): over the time from the first users' start to the last users' end."""
    total = _web_bytes(web)
    return float(8 * total / (max(row["end_us"] for row in web) - min(row["start_us"] for row in web)))


@metric("s", "time of growth back to the window before the first cut")
def grown_back(samples: Connection) -> float:
    """Seconds of growth after the first fast recovery, until the congestion window is back at its value before the cut.

    Growth begins with the first sample after fast recovery that has new acknowledgments. The formulas of the slides
    contain neither fast recovery nor the round trip after it without acknowledgments: if the receiver's window is the
    limit, no new data leave during fast recovery. As for ``first_recovery``, a window one segment smaller counts.
    """
    places = cut_places(samples)
    if not len(places):
        raise NoValue("the congestion window was never cut")
    cut = int(places[0])
    before = samples.cwnd[cut - 1]
    is_open = np.flatnonzero(samples.ca_state[cut:] == OPEN)
    if not len(is_open):
        raise NoValue("the run ends in the first recovery")
    ended = cut + int(is_open[0])
    if samples.cwnd[ended] >= before - 1:
        raise NoValue(f"the first cut left no window below the {before:.0f} segments sampled before it")
    acknowledged = np.flatnonzero(samples.acked[ended:] > samples.acked[ended])
    if not len(acknowledged):
        raise NoValue("nothing is acknowledged after the first recovery")
    start = ended + int(acknowledged[0])
    back = np.flatnonzero(samples.cwnd[start:] >= before - 1)
    if not len(back):
        grown = (samples.t_us[-1] - samples.t_us[start]) / 1e6
        raise NoValue(
            f"the window is not back at {before:.0f} segments when the run ends after {grown:.1f} s of growth"
        )
    return float(samples.t_us[start + back[0]] - samples.t_us[start]) / 1e6


def _web_bytes(web: WebRows) -> float:
    if not web:
        raise NoValue("the run has no web traffic")
    return float(sum(row["bytes_received"] for row in web))


@formula
def window_of_path(rate: float, rtt: float, mtu: float) -> float:
    """Packets of ``mtu`` bytes in flight that fill the path: rate in bit/s, RTT in microseconds."""
    return rate * rtt / 8e6 / mtu


@formula
def standard_recovery(rate: float, rtt: float, mtu: float) -> float:
    """Seconds until Standard TCP is back at a window it halved, w/2 RTTs, where the path holds w (Kelly 2003)."""
    return window_of_path(rate, rtt, mtu) / 2 * rtt / 1e6


@formula
def standard_loss_rate(window: float) -> float:
    """Loss rate at which Standard TCP keeps an average window: 1.5 / w^2 (Mathis et al. 1997)."""
    return 1.5 / window**2


@formula
def loss_rate_of_path(rate: float, rtt: float, mtu: float) -> float:
    """Loss rate at which Standard TCP fills a path (Kelly 2003)."""
    return standard_loss_rate(window_of_path(rate, rtt, mtu))


@formula
def scalable_loss_rate(window: float, a: float, b: float, lwnd: float) -> float:
    """Loss rate at which Scalable TCP keeps an average window: a / (b w), Standard TCP's up to lwnd (Kelly 2003)."""
    return standard_loss_rate(window) if window <= lwnd else a / b / window


@formula
def scalable_recovery(a: float, b: float, rtt: float) -> float:
    """Seconds until Scalable TCP is back at the window before a loss."""
    return scalable_recovery_rtts(a, b) * rtt / 1e6


@formula
def scalable_halving(b: float, rtt: float) -> float:
    """Seconds in which Scalable TCP halves its rate with a loss in each RTT."""
    return scalable_halving_rtts(b) * rtt / 1e6


@formula
def scalable_doubling(a: float, rtt: float) -> float:
    """Seconds in which Scalable TCP doubles its rate without a loss."""
    return scalable_doubling_rtts(a) * rtt / 1e6


@formula
def rate_variation(b: float) -> float:
    """Coefficient of variation of Scalable TCP's rate, of no unit: sqrt(b/2) (Kelly 2003, its table)."""
    return math.sqrt(b / 2)


@formula
def stability_bound(packets: float) -> float:
    """The a below which Scalable TCP is locally stable at a link, p / (y p'(y)) (Kelly 2003, after Vinnicombe).

    For a loss rate p(y) = (y/c)^B, that of a queue with random arrivals and room for B packets, it is 1/B. The paper
    does not state which loss rate it means.
    """
    return 1 / packets
