# SPDX-License-Identifier: Apache-2.0
"""Packets of a program: which a filter takes, and what is counted of them, whole and in fragments."""

from __future__ import annotations

import ctypes
import random
import select
import socket
import struct

import pytest

from longfat.guest.wiretap import MORE, SO_ATTACH_FILTER, TAKEN_BYTES, UDP, Counts, instructions

SENDER, PORT, MTU = "10.0.3.1", 4433, 1500


def packet(payload: int, *, number: int = 0, fragment: int = 0, protocol: int = UDP, port: int = PORT) -> bytes:
    """Return the head of a packet with so many bytes behind its IPv4 header."""
    head = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + payload, number, fragment, 64, protocol, 0, bytes((10, 0, 3, 1)), b"\n\0\0\2"
    )
    if not fragment & 0x1FFF:
        ports = struct.pack("!HH", 40_000, port)
        head += ports + (bytes(4) if protocol == UDP else bytes(8) + bytes([0x80]) + bytes(7))
    return head[:TAKEN_BYTES]


def datagram(size: int, number: int) -> list[bytes]:
    """Return the packets of a UDP datagram with so many bytes of payload."""
    rest, step, at, found = size + 8, (MTU - 20) // 8 * 8, 0, []
    while rest > 0:
        part = min(step, rest) if rest > MTU - 20 else rest
        rest -= part
        found.append(packet(part, number=number, fragment=at // 8 | (MORE if rest else 0)))
        at += part
    return found


def taken(head: bytes, code: bytes) -> bool:
    """Return whether a socket of this machine's kernel with the filter gets a packet."""
    program = ctypes.create_string_buffer(code)
    sender, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, receiver:
        filtered = struct.pack("@HP", len(code) // 8, ctypes.addressof(program))
        receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filtered)
        sender.send(head)
        return bool(select.select([receiver], [], [], 0)[0])


def test_the_filter_takes_the_senders_packets_for_the_port_and_later_fragments() -> None:
    code = instructions(SENDER, PORT)
    first, later = datagram(2000, 1)
    assert [taken(head, code) for head in (packet(80), first, later)] == [True] * 3
    assert not taken(packet(80, port=PORT + 1), code)
    assert not taken(packet(80), instructions("10.0.3.2", PORT))
    assert not taken(later, instructions("10.0.3.2", PORT))


@pytest.mark.parametrize("size", [100, 1472, 1473, 3000, 9000, 65_507])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_datagram_of_any_length_counts_by_its_payload_in_any_order(size: int, shuffled: bool) -> None:
    counts, draw = Counts(), random.Random(size)
    for number in range(20):
        packets = datagram(size, number)
        if shuffled:
            draw.shuffle(packets)
        for one in packets:
            counts.add(one)
    assert counts.payload_bytes == 20 * size
    assert counts.packets == 20 * len(datagram(size, 0))
    assert counts.ip_bytes == 20 * (size + 8 + 20 * len(datagram(size, 0)))


def test_a_datagram_that_lacks_a_fragment_has_packets_and_no_payload() -> None:
    counts = Counts()
    first, middle, last = datagram(4000, 7)
    for one in (first, last):
        counts.add(one)
    assert (counts.packets, counts.payload_bytes) == (2, 0)
    for one in (first, middle, last):  # 65536 datagrams later one has the same number
        counts.add(one)
    assert (counts.packets, counts.payload_bytes) == (5, 4000)
