# SPDX-License-Identifier: Apache-2.0
"""The round trip over a cable by echoes of ICMP (RFC 792), before there is any traffic."""

from __future__ import annotations

import os
import socket
import struct
import time

REQUEST, REPLY = 8, 0  # types of ICMP
ECHOES = 10
PATIENCE_S = 3.0  # for one echo, longer than any path here
IP_HEADER_BYTES = 20  # an echo has no options


def round_trip_us(address: str) -> int | None:
    """The shortest of some round trips to a neighbour, in microseconds; None without an answer. Needs root."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as channel:
        trips = [_echo_ns(channel, address, number) for number in range(ECHOES)]
    answered = [trip for trip in trips if trip is not None]
    return min(answered) // 1000 if answered else None


def _echo_ns(channel: socket.socket, address: str, number: int) -> int | None:
    own = struct.pack("!HH", os.getpid() & 0xFFFF, number)
    sent = time.monotonic_ns()
    channel.sendto(packet(own), (address, 0))
    while (left := PATIENCE_S - (time.monotonic_ns() - sent) / 1e9) > 0:
        channel.settimeout(left)
        try:
            told = channel.recv(1 << 10)[IP_HEADER_BYTES:]
        except TimeoutError:
            return None
        if told[0] == REPLY and told[4:8] == own:
            return time.monotonic_ns() - sent
    return None


def packet(own: bytes) -> bytes:
    """A request with an identifier and a number of its own, two bytes each."""
    words = struct.unpack("!2H", own)
    folded = (REQUEST << 8) + sum(words)
    while folded >> 16:
        folded = (folded & 0xFFFF) + (folded >> 16)
    return struct.pack("!BBH", REQUEST, 0, ~folded & 0xFFFF) + own
