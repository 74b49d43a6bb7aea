# SPDX-License-Identifier: Apache-2.0
"""Just enough netlink to read sockets and qdiscs often: one request, one dump, no process started.

``ss`` and ``tc`` show the same data, but starting them for each sample would cost more than the run.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

NLM_F_REQUEST = 0x1
NLM_F_DUMP = 0x300
NLMSG_ERROR = 2
NLMSG_DONE = 3
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")  # length, type
RECEIVE_BYTES = 1 << 18


def open_socket(protocol: int) -> socket.socket:
    """A netlink socket of ``protocol`` in the current network namespace."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)


def dump(channel: socket.socket, message_type: int, body: bytes) -> Iterator[bytes]:
    """The bodies of all answers to a dump request. Raises OSError on the kernel's error message."""
    length = HEADER.size + len(body)
    channel.send(HEADER.pack(length, message_type, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body)
    while True:
        data = channel.recv(RECEIVE_BYTES)
        offset = 0
        while offset < len(data):
            length, kind, _flags, _sequence, _port = HEADER.unpack_from(data, offset)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                (error,) = struct.unpack_from("=i", data, offset + HEADER.size)
                raise OSError(-error, "netlink request refused")
            yield data[offset + HEADER.size : offset + length]
            offset += (length + 3) & ~3


def attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Type and payload of each attribute from ``offset`` to the end of ``data``."""
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        yield kind & 0x3FFF, data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
