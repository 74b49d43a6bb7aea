# SPDX-License-Identifier: Apache-2.0
"""Web traffic and the time of a recovery, as the slides have them."""

from __future__ import annotations

import numpy as np

from longfat.metrics.cuts import OPEN, cut_places
from longfat.metrics.data import Connection, NoValue, WebRows
from longfat.metrics.goodput import require_length
from longfat.metrics.registry import metric


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
