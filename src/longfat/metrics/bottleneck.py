# SPDX-License-Identifier: Apache-2.0
"""Metrics of a link: utilisation of the bottleneck, and ECN marks.

Claims about the time after the flows' start-up give a window of time.
"""

from __future__ import annotations

import numpy as np

from longfat.metrics.data import Array, Bottleneck, NoValue, Received, inside
from longfat.metrics.registry import metric

FRAME_BYTES = 1 << 16  # the largest frame with segmentation offload; a frame leaves the queue before the wire


@metric("%", "link utilisation of the bottleneck", bounds=(0, 100), name="utilisation")
def utilisation_percent(port: Bottleneck, since_us: float, until_us: float | None = None) -> float:
    """Bytes that left the port, in percent of the capacity of its rate over time, in the window.

    Counted from the first to the last sample of the window, with the bytes of whole frames: a busy link is at 100.
    """
    sent_bits, capacity_bits = (
        8 * _grown(port.t_us, port.sent_bytes, since_us, until_us)[0],
        _grown(port.t_us, port.capacity_bits, since_us, until_us)[0],
    )
    if capacity_bits <= 0:
        raise NoValue("the link can carry nothing in the window")
    if capacity_bits < sent_bits < capacity_bits + 8 * FRAME_BYTES:
        return 100.0  # one frame has left the queue but not yet the wire
    return float(100 * sent_bits / capacity_bits)


@metric("ppm", "share of received packets that are marked", bounds=(0, 1e6), name="mark_rate")
def marked_ppm(arrivals: Received, since_us: float, until_us: float | None = None) -> float:
    """Share of the received packets that are marked, in parts per million, in the window."""
    packets = sum(_grown(item.t_us, item.packets, since_us, until_us)[0] for item in arrivals)
    if packets <= 0:
        raise NoValue("no packet arrived in the window")
    marked = sum(_grown(item.t_us, item.marked, since_us, until_us)[0] for item in arrivals)
    return 1e6 * marked / packets


@metric("1/s", "marked packets per second", bounds=(0, np.inf))
def marks_per_s(arrivals: Received, since_us: float, until_us: float | None = None) -> float:
    """Marked packets received per second of the window."""
    found = [_grown(item.t_us, item.marked, since_us, until_us) for item in arrivals]
    return 1e6 * float(sum(marked for marked, _ in found)) / max(span for _, span in found)


def _within(t_us: Array, values: Array, since_us: float, until_us: float | None) -> tuple[Array, Array]:
    chosen = inside(t_us, since_us, until_us)
    if chosen.sum() < 2:
        raise NoValue(f"{chosen.sum()} samples lie in the window, at least 2 are needed")
    return t_us[chosen], values[chosen]


def _grown(t_us: Array, values: Array, since_us: float, until_us: float | None) -> tuple[float, float]:
    """Return the growth of a count in the window, and the microseconds between its first and last sample."""
    times, counts = _within(t_us, values, since_us, until_us)
    return float(counts[-1] - counts[0]), float(times[-1] - times[0])
