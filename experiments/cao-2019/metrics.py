# SPDX-License-Identifier: Apache-2.0
"""Retransmitted share of the segments, and the loss rate at which BBR's estimate of the bandwidth decays."""

from __future__ import annotations

from longfat.metrics.data import Connections, FlowRows, NoValue
from longfat.metrics.registry import metric
from longfat.relations.formulas import formula


@metric("%", "retransmissions in percent of the segments sent", bounds=(0, 100))
def retransmitted(rows: FlowRows, connections: Connections) -> float:
    """Retransmitted segments in percent of all sent segments, the retransmitted and the delivered ones."""
    again = [row["retrans_segments"] for row in rows]
    delivered = sum(float(samples.delivered[-1]) for samples in connections if len(samples.delivered))
    if None in again or delivered <= 0:
        raise NoValue("nothing was delivered, or retransmissions were not counted")
    total = float(sum(again))
    return 100 * total / (total + delivered)


@formula
def cliff(gain: float) -> float:
    """Loss rate in percent beyond which BBR's estimate of the bandwidth decays: 1 - 1/gain (Cao 2019, eq. 3)."""
    return 100 * (1 - 1 / gain)
