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


def read_packets(path: Path) -> list[Packet]:
    """All packets of a capture in its order."""
    data, offset, packets = path.read_bytes(), FILE_HEADER_BYTES, []
    while offset < len(data):
        seconds, micros, captured, length = RECORD.unpack_from(data, offset)
        ip = offset + RECORD.size + ETHERNET_BYTES
        tcp = ip + 4 * (data[ip] & 15)
        source, destination, sequence, acknowledgement, data_offset, flags, window = TCP.unpack_from(data, tcp)
        time_us = seconds * 1_000_000 + micros
        payload = int.from_bytes(data[ip + 2 : ip + 4], "big") - (tcp - ip) - 4 * (data_offset >> 4)
        packets.append(Packet(time_us, source, destination, sequence, acknowledgement, flags, window, length, payload))
        offset += RECORD.size + captured
    return packets
