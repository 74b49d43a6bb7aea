# SPDX-License-Identifier: Apache-2.0
"""Reader of the records and TCP packets of a capture (pcap of Ethernet frames). Must not assert anything."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_HEADER_BYTES = 24
RECORD = struct.Struct("=IIII")  # seconds, microseconds, captured length, length
ETHERNET_BYTES = 14
TCP = struct.Struct("!HHIIBBH")  # ports, sequence, acknowledgement, data offset, flags, window
SYN = 0x02


@dataclass(frozen=True)
class Packet:
    """One TCP packet: its time (us of the epoch), the fields that TCP decides, its length on the link, its payload."""

    time_us: int
    source_port: int
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    length: int
    payload: int


def records(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the time (us), the length on the link and the kept bytes from the IP header on of each packet."""
    data, offset = path.read_bytes(), FILE_HEADER_BYTES
    while offset < len(data):
        seconds, micros, captured, length = RECORD.unpack_from(data, offset)
        start = offset + RECORD.size
        offset = start + captured
        yield seconds * 1_000_000 + micros, length, data[start + ETHERNET_BYTES : offset]


def read_packets(path: Path) -> list[Packet]:
    """Return all TCP packets of a capture in its order."""
    packets = []
    for time_us, length, ip in records(path):
        header = 4 * (ip[0] & 15)
        source, destination, sequence, acknowledgement, data_offset, flags, window = TCP.unpack_from(ip, header)
        payload = int.from_bytes(ip[2:4], "big") - header - 4 * (data_offset >> 4)
        packets.append(Packet(time_us, source, destination, sequence, acknowledgement, flags, window, length, payload))
    return packets
