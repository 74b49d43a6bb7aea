# SPDX-License-Identifier: Apache-2.0
"""Socket buffers as the kernel has them: SO_SNDBUF and SO_RCVBUF of all TCP sockets of a namespace, by inet_diag."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longfat.guest import netlink, sockets

INET_DIAG_SKMEMINFO = 7  # linux/inet_diag.h
SKMEMINFO = struct.Struct("=4I")  # enum sk_meminfo_vars in linux/sock_diag.h: memory, buffer, memory, buffer
ALL_BUT_TIME_WAIT = 0xFFF & ~(1 << 6)


@dataclass(frozen=True)
class Buffers:
    """The ports of a TCP socket and its buffers in bytes; the destination port of one that listens is 0."""

    source_port: int
    destination_port: int
    receive: int
    send: int


def request() -> bytes:
    """Return the body of the request for the buffers of every IPv4 TCP socket of a namespace."""
    extensions = 1 << (INET_DIAG_SKMEMINFO - 1)
    return sockets.REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, extensions, 0, ALL_BUT_TIME_WAIT, b"")


def parse(messages: Iterable[bytes]) -> Iterator[Buffers]:
    """Yield the buffers of the sockets of a dump; a connection that has no socket yet has none."""
    for message in messages:
        ports = sockets.SOCKET_ID.unpack_from(message, sockets.ID_OFFSET)
        told = dict(netlink.attributes(message, sockets.MESSAGE_BYTES)).get(INET_DIAG_SKMEMINFO)
        if told:
            source, destination = ports
            _, receive, _, send = SKMEMINFO.unpack_from(told)
            yield Buffers(source, destination, receive, send)


def read_buffers() -> list[Buffers]:
    """Return the buffers of every IPv4 TCP socket of the current network namespace."""
    with sockets.open_probe() as channel:
        return list(parse(netlink.dump(channel, sockets.SOCK_DIAG_BY_FAMILY, request())))
