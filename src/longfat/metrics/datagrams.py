# SPDX-License-Identifier: Apache-2.0
"""Metrics of UDP traffic: what came of it."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from longfat.dataset.load import Columns
from longfat.metrics.data import Array, NoValue, columns_of
from longfat.metrics.registry import metric

UdpRows = Annotated[Columns, columns_of("udp")]

HEADER_BYTES = 28  # IPv4 20 (RFC 791), UDP 8 (RFC 768)


@metric("Mb/s", "goodput of UDP", bounds=(0, np.inf))
def udp_goodput(udp: UdpRows) -> float:
    """Payload of all UDP traffic of a run that arrived in its time, over that time, in Mb/s."""
    lasted = _column(udp, "end_us") - _column(udp, "start_us")
    payload = _column(udp, "received_packets") * (_column(udp, "packet_bytes") - HEADER_BYTES)
    return float((8 * payload / lasted).sum())


@metric("%", "packets of UDP that were lost", bounds=(0, 100))
def udp_loss(udp: UdpRows) -> float:
    """Share of the packets of all UDP traffic of a run that never arrived, in percent."""
    return float(100 * (1 - _column(udp, "arrived_packets").sum() / _column(udp, "sent_packets").sum()))


def _column(udp: UdpRows, name: str) -> Array:
    found: Array = udp[name].astype(np.float64)
    if not len(found):
        raise NoValue("the run has no UDP traffic")
    return found
