# SPDX-License-Identifier: Apache-2.0
"""What the slides call the time of a recovery: that in which the window grows, as their formulas reckon it."""

from __future__ import annotations

import numpy as np

from longfat.metrics.cuts import OPEN, cut_places
from longfat.metrics.data import Connection, NoValue
from longfat.metrics.registry import metric


@metric("s", "time of growth back to the window before the first cut")
def grown_back(samples: Connection) -> float:
    """Seconds of growth after the first fast recovery, until the congestion window is what it was before the cut.

    Growth begins with the first acknowledgement after fast recovery, as the sample shows it that has it first. No
    formula of the slides has fast recovery, nor the round trip after it in which nothing is acknowledged: where the
    receiver's window is the limit, nothing new leaves during fast recovery. As for ``first_recovery``, the window
    before is that of the sample before the cut, and a segment less counts as well.
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
