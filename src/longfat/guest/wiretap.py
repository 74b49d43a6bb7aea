# SPDX-License-Identifier: Apache-2.0
"""Counter of the packets that reach an interface from an address for a port, without waking a program for each.

A packet socket with a ring (Documentation/networking/packet_mmap.rst): the kernel stores the head of each packet that
passes the filter, and ``read`` counts them.
"""

from __future__ import annotations

import ctypes
import mmap
import socket
import struct
from dataclasses import dataclass
from types import TracebackType

SOL_PACKET = 263  # linux/socket.h
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10  # linux/if_packet.h
TPACKET_V2 = 1
SO_ATTACH_FILTER = 26  # asm-generic/socket.h
ETH_P_IP = 0x0800
FRAME_BYTES = 128  # frame of the ring: its own header, addresses, then IPv4 and TCP without options
BLOCK_BYTES = 1 << 16
BLOCKS = 128  # room for 65536 packets: a tenth of a second of 1 Gbit/s in packets of 190 bytes
STATUS_USER = 1
HEAD = struct.Struct("=IIIHH")  # status, length, length in the ring, offsets of link layer and network
UDP, TCP = 17, 6
UDP_HEADER_BYTES = 8
# Classic BPF: IPv4 source, then a fragment after the first, or the destination port behind a header of any length.
LD_W, LD_H, LDX_IHL, LD_H_X, JEQ, JSET, RET = 0x20, 0x28, 0xB1, 0x48, 0x15, 0x45, 0x06
SOURCE_AT, FRAGMENT_AT, PORT_AT, TAKEN_BYTES = 12, 6, 2, 40
OFFSET, MORE = 0x1FFF, 0x2000  # offset in units of 8 bytes, and the flag of further fragments (RFC 791)


def instructions(address: str, port: int) -> bytes:
    """Return the filter, which starts at the IPv4 header; fragments after the first have no port."""
    source = int.from_bytes(socket.inet_aton(address), "big")
    lines = (
        (LD_W, 0, 0, SOURCE_AT),
        (JEQ, 0, 6, source),
        (LD_H, 0, 0, FRAGMENT_AT),
        (JSET, 3, 0, OFFSET),
        (LDX_IHL, 0, 0, 0),
        (LD_H_X, 0, 0, PORT_AT),
        (JEQ, 0, 1, port),
        (RET, 0, 0, TAKEN_BYTES),
        (RET, 0, 0, 0),
    )
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


@dataclass
class _Datagram:
    """The fragments of a datagram so far; ``headers`` is None until the first fragment, which has the port."""

    packets: int = 0
    ip_bytes: int = 0
    carried: int = 0
    whole: int | None = None
    headers: int | None = None


class Counts:
    """Packets, their bytes with IPv4 header, and the payload of UDP or TCP in whole datagrams."""

    def __init__(self) -> None:
        self.packets = self.ip_bytes = self.payload_bytes = 0
        self._begun: dict[bytes, _Datagram] = {}

    def add(self, head: bytes) -> None:
        """Count a packet by its head; the payload of a fragmented datagram counts after its last fragment."""
        length, ihl, fragment = int.from_bytes(head[2:4], "big"), 4 * (head[0] & 0xF), int.from_bytes(head[6:8], "big")
        offset, more = 8 * (fragment & OFFSET), bool(fragment & MORE)
        headers = None if offset else _header_bytes(head, ihl)
        if headers is not None and not more:
            self._count(1, length, length - ihl - headers)
            return
        key = head[4:6] + head[9:10]  # identification and protocol; sender and receiver are fixed
        begun = self._begun.setdefault(key, _Datagram())
        if headers is not None and begun.headers is not None:  # an earlier datagram with this number stayed incomplete
            begun = self._begun[key] = _Datagram()
        begun.packets, begun.ip_bytes = begun.packets + 1, begun.ip_bytes + length
        begun.carried += length - ihl
        begun.headers = headers if headers is not None else begun.headers
        begun.whole = begun.whole if more else offset + length - ihl
        if begun.headers is None:
            return
        self._count(begun.packets, begun.ip_bytes, 0)
        begun.packets = begun.ip_bytes = 0
        if begun.carried == begun.whole:
            self._count(0, 0, begun.whole - begun.headers)
            del self._begun[key]

    def _count(self, packets: int, ip_bytes: int, payload_bytes: int) -> None:
        self.packets += packets
        self.ip_bytes += ip_bytes
        self.payload_bytes += payload_bytes


def _header_bytes(head: bytes, ihl: int) -> int:
    """Return the length of the header after the IPv4 header."""
    if head[9] == TCP:
        return 4 * (head[ihl + 12] >> 4)
    return UDP_HEADER_BYTES if head[9] == UDP else 0


class Wiretap:
    """Counts of the packets at an interface of the current namespace."""

    def __init__(self, interface: str, address: str, port: int) -> None:
        self.counts = Counts()
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
        """Count the packets since the last call, and free their room."""
        while True:
            status, _, size, _, at = HEAD.unpack_from(self._ring, self._next)
            if not status & STATUS_USER:
                return
            start = self._next + at
            self.counts.add(self._ring[start : start + size])
            struct.pack_into("=I", self._ring, self._next, 0)
            self._next = (self._next + FRAME_BYTES) % len(self._ring)

    def lost(self) -> int:
        """Return the packets without room so far."""
        counted = self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)  # since the last call
        self._lost += struct.unpack("=II", counted)[1]
        return self._lost
