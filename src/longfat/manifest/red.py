# SPDX-License-Identifier: Apache-2.0
"""RED in a manifest's words, in packets, and in those of ``tc``, in bytes of whole frames.

Owns that conversion and the limits of the kernel's arithmetic.
"""

from __future__ import annotations

from longfat.manifest.models import Red
from longfat.network import frame_bytes
from longfat.runspec import Egress, Queue, Scalar
from longfat.units import Rate

_AVERAGE_BITS = 32  # red_check_params() in include/net/red.h: thresholds times 2^W must fit


def red_queue(queue: Red, rate: Rate, mtu_bytes: int) -> Queue:
    """The queue as ``tc`` takes it; a packet is as long as the shaper around it counts it."""
    frame = frame_bytes(mtu_bytes, Egress())
    # The formula of tc-red(8), rounded up: a value that is rounded down may have no weight at all.
    burst = queue.burst or -(-(2 * queue.min + queue.max) // 3)
    parameters: dict[str, Scalar] = {
        "min": queue.min * frame,
        "max": queue.max * frame,
        "probability": queue.probability.value / 1_000_000,
        "avpkt": frame,
        "burst": burst,
        "bandwidth": f"{rate.value}bit",
    }
    parameters |= {"ecn": True} if queue.ecn else {}
    parameters |= {"gentle": True} if queue.gentle else {}
    return Queue("red", None, queue.limit * frame, parameters)


def red_fault(queue: Queue) -> str | None:
    """Why a kernel would not take it, or None."""
    try:
        weight = queue.red_weight_log
    except ValueError as error:
        return str(error)
    size = int(queue.parameters["max"])
    if size.bit_length() + weight >= _AVERAGE_BITS:
        bits = f"{size.bit_length()} bits of max = {size} bytes and {weight} of the weight 2^-{weight}"
        return f"{bits} are {_AVERAGE_BITS} or more, but the kernel has room for fewer"
    return None
