# SPDX-License-Identifier: Apache-2.0
"""Segmentation and receive offloads that a manifest may turn on. Plain data only.

All are off by default: an offload sends bursts as one packet, so queue limits in packets lose their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping

OFFLOADS: Mapping[str, str] = {
    "tso": "TCP segmentation in the interface: one packet of up to 64 KiB crosses the qdisc",
    "gso": "segmentation in software, just before the driver",
    "gro": "coalescing of received packets before the protocol sees them",
}

SEGMENTING = frozenset({"tso", "gso"})
"""Offloads with which a host sends segments of up to LONGEST_SEGMENT_BYTES, which stay whole on the path."""
LONGEST_SEGMENT_BYTES = 1 << 16
