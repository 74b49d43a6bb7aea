# SPDX-License-Identifier: Apache-2.0
"""Counts the packets that an interface gets from an address for a port, without waking a program for each of them.

A packet socket with a ring (Documentation/networking/packet_mmap.rst): the kernel notes the head of each packet that
its filter passes, and ``read`` counts them when it is called.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from types import TracebackType

SOL_PACKET = 263  # linux/socket.h
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10  # linux/if_packet.h
TPACKET_V2 = 1
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
ETH_P_IP = 0x0800
FRAME_BYTES = 128  # a packet's head in the ring: that of the ring's own, addresses, then IPv4 and TCP without options
BLOCK_BYTES = 1 << 16
BLOCKS = 128  # room for 65536 packets: a tenth of a second of 1 Gbit/s in packets of 190 bytes
STATUS_USER = 1
HEAD = struct.Struct("=IIIHH")  # status, length, length in the ring, offsets of link layer and network
UDP, TCP = 17, 6
UDP_HEADER_BYTES = 8
# Classic BPF: IPv4 source, then the destination port behind a header of any length.
LD_W, LDX_IHL, LD_H_X, JEQ, RET = 0x20, 0xB1, 0x48, 0x15, 0x06
SOURCE_AT, PORT_AT, TAKEN_BYTES = 12, 2, 40


def instructions(address: str, port: int) -> bytes:
    """The filter, which sees packets from their IPv4 header on."""
    source = int.from_bytes(socket.inet_aton(address), "big")
    lines = (
        (LD_W, 0, 0, SOURCE_AT),
        (JEQ, 0, 4, source),
        (LDX_IHL, 0, 0, 0),
        (LD_H_X, 0, 0, PORT_AT),
        (JEQ, 0, 1, port),
        (RET, 0, 0, TAKEN_BYTES),
        (RET, 0, 0, 0),
    )
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def payload_bytes(head: bytes) -> tuple[int, int]:
    """Length of the packet whose head this is, and of what UDP or TCP carry in it."""
    length, ihl, protocol = int.from_bytes(head[2:4], "big"), 4 * (head[0] & 0xF), head[9]
    if protocol == TCP:
        return length, length - ihl - 4 * (head[ihl + 12] >> 4)
    return length, length - ihl - (UDP_HEADER_BYTES if protocol == UDP else 0)


class Wiretap:
    """What came to an interface of the current namespace: ``packets``, and bytes with IPv4 header and without any."""

    def __init__(self, interface: str, address: str, port: int) -> None:
        self.packets = self.ip_bytes = self.payload_bytes = 0
        self._lost = self._next = 0
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        frames = BLOCKS * BLOCK_BYTES // FRAME_BYTES
        self._socket.setsockopt(
            SOL_PACKET, PACKET_RX_RING, struct.pack("=IIII", BLOCK_BYTES, BLOCKS, FRAME_BYTES, frames)
        )
        code = instructions(address, port)
        buffer = ctypes.create_string_buffer(code)
        filtered = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))  # struct sock_fprog
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, filtered)
        self._ring = mmap.mmap(self._socket.fileno(), BLOCKS * BLOCK_BYTES)
        self._socket.bind((interface, ETH_P_IP))

    def __enter__(self) -> Wiretap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ring.close()
        self._socket.close()

    def read(self) -> None:
        """Count what has come since the last time, and make room for more."""
        while True:
            status, _, size, _, at = HEAD.unpack_from(self._ring, self._next)
            if not status & STATUS_USER:
                return
            start = self._next + at
            length, payload = payload_bytes(self._ring[start : start + size])
            self.packets += 1
            self.ip_bytes += length
            self.payload_bytes += payload
            struct.pack_into("=I", self._ring, self._next, 0)
            self._next = (self._next + FRAME_BYTES) % len(self._ring)

    def lost(self) -> int:
        """Packets for which there was no room, so far."""
        told = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)  # since it was last asked for
        self._lost += struct.unpack("=II", told)[1]
        return self._lost
