# SPDX-License-Identifier: Apache-2.0
"""Round-trip times by ping (iputils): its command line and what it prints. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

COLUMNS = "t_us,rtt_us"
_REPLY = re.compile(r"^\[(\d+\.\d+)\] \d+ bytes from .* time=([\d.]+) ms", re.MULTILINE)


def ping_command(address: str, interval_us: int) -> list[str]:
    """Ask every interval until it is interrupted, and print when each reply came (``-D``).

    In the first second of a guest's uptime iputils asks as soon as a reply is there: it takes a clock at 0 s for one
    that it has not read yet.
    """
    return ["ping", "-n", "-D", "-i", f"{interval_us / 1e6:g}", address]


def parse_replies(text: str, origin_epoch_us: int) -> Iterator[tuple[int, int]]:
    """When each answered request was sent, in microseconds since the origin, and its round-trip time."""
    for arrived_s, rtt_ms in _REPLY.findall(text):
        rtt_us = round(1000 * float(rtt_ms))
        yield round(1e6 * float(arrived_s)) - origin_epoch_us - rtt_us, rtt_us
