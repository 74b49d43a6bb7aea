# SPDX-License-Identifier: Apache-2.0
"""Probe of the packets that reach a receiver, and of the marked ones among them: /proc/net/netstat, IpExt.

Owns where marks are counted. A sender's tcp_info cannot tell: with classic ECN its tcpi_delivered_ce takes a whole
round trip of acknowledgments for each mark (RFC 3168: the receiver repeats itself until it is heard).
"""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

COLUMNS = "t_us,node,packets,marked_packets"
MARKED = "InCEPkts"
ALL = ("InNoECTPkts", "InECT1Pkts", "InECT0Pkts", MARKED)


def open_probe() -> TextIO:
    """The counters of the current network namespace; reading them again from the start gives the present values."""
    return Path("/proc/self/net/netstat").open()


def read_arrivals(counters: TextIO) -> tuple[int, int]:
    """IPv4 packets received so far by the counters' namespace, and those of them marked CE.

    Raises ValueError when the kernel does not count them.
    """
    counters.seek(0)
    lines = [line.split() for line in counters if line.startswith("IpExt:")]
    if len(lines) != 2:
        raise ValueError("the kernel has no counters IpExt")
    found = dict(zip(*lines, strict=True))
    try:
        return sum(int(found[name]) for name in ALL), int(found[MARKED])
    except KeyError as error:
        raise ValueError(f"the kernel does not count {error}") from error


def row(t_us: int, node: str, packets: int, marked: int) -> str:
    """One line of arrivals.csv."""
    return f"{t_us},{node},{packets},{marked}"
