# SPDX-License-Identifier: Apache-2.0
"""Reads the TCP packets of a capture (pcap of Ethernet frames). Must not assert anything."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

FILE_HEADER_BYTES = 24
RECORD = struct.Struct("=IIII")  # seconds, microseconds, captured length, length
ETHERNET_BYTES = 14
TCP = struct.Struct("!HHIIBBH")  # ports, sequence, acknowledgement, data offset, flags, window
SYN = 0x02


@dataclass(frozen=True)
class Packet:
    """One TCP packet: its time (us of the epoch), the fields that TCP decides, and its length on the link."""

    time_us: int
    source_port: int
    destination_port: int
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    length: int


def read_packets(path: Path) -> list[Packet]:
    """All packets of a capture in its order."""
    data, offset, packets = path.read_bytes(), FILE_HEADER_BYTES, []
    while offset < len(data):
        seconds, micros, captured, length = RECORD.unpack_from(data, offset)
        tcp = offset + RECORD.size + ETHERNET_BYTES + 4 * (data[offset + RECORD.size + ETHERNET_BYTES] & 15)
        source, destination, sequence, acknowledgement, _data_offset, flags, window = TCP.unpack_from(data, tcp)
        time_us = seconds * 1_000_000 + micros
        packets.append(Packet(time_us, source, destination, sequence, acknowledgement, flags, window, length))
        offset += RECORD.size + captured
    return packets
