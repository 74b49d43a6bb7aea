# SPDX-License-Identifier: Apache-2.0
"""How the paper derives a bottleneck's queue from the round-trip times of a transfer (section 6.3)."""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Bottleneck, Connection, NoValue
from longfat.metrics.registry import metric


@metric("packets", "queue that the RTT tells of", name="derived_queue")
def derived_queue_packets(samples: Connection, port: Bottleneck, segment_bytes: float) -> float:
    """Packets whose sending takes as long as the RTT varies: highest less smallest, at the bottleneck's rate.

    The highest RTT is the highest that lasts for a round trip. That by which a receiver delays the acknowledgment of a
    train's odd last segment is gone with the next train; a queue is not.
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
