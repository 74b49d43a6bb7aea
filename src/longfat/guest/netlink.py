# SPDX-License-Identifier: Apache-2.0
"""The part of netlink that makes links and reads sockets and qdiscs, without starting a program.

Starts of ``ip``, ``ss`` and ``tc`` for each node and sample would cost more than the run.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_DUMP = 0x300
NLM_F_REPLACE = 0x100
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLA_F_NESTED = 0x8000
NLMSG_ERROR = 2
NLMSG_DONE = 3
HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")  # length, type
RECEIVE_BYTES = 1 << 15  # the kernel never sends more at once; a larger buffer would be mapped each time


@dataclass(frozen=True)
class Request:
    """A change for the kernel: type, flags and body, and a description for the message if it is refused."""

    what: str
    message_type: int
    flags: int
    body: bytes


def open_socket(protocol: int) -> socket.socket:
    """Open a netlink socket of ``protocol`` in the current network namespace."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)


def dump(channel: socket.socket, message_type: int, body: bytes) -> Iterator[bytes]:
    """Yield the bodies of all answers to a dump request. Raises OSError on the kernel's error message."""
    channel.send(dump_request(message_type, body))
    while True:
        data = channel.recv(RECEIVE_BYTES)
        yield from bodies(data)
        if complete(data):
            return


def dump_request(message_type: int, body: bytes) -> bytes:
    """Return the request of ``dump``."""
    return HEADER.pack(HEADER.size + len(body), message_type, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body


def bodies(data: bytes) -> Iterator[bytes]:
    """Yield the bodies of the messages in ``data`` up to the end of the dump. Raises OSError on an error message."""
    for kind, body in _messages(data):
        if kind == NLMSG_DONE:
            return
        if kind == NLMSG_ERROR:
            (error,) = struct.unpack_from("=i", body)
            raise OSError(-error, "netlink request refused")
        yield body


def complete(data: bytes) -> bool:
    """Return whether a dump ends in ``data``."""
    return any(kind == NLMSG_DONE for kind, _ in _messages(data))


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset < len(data):
        length, kind, _flags, _sequence, _port = HEADER.unpack_from(data, offset)
        yield kind, data[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def change(channel: socket.socket, requests: Sequence[Request]) -> None:
    """Send all requests at once, and wait for the last. Raises OSError with the first request that was refused."""
    if not requests:
        return
    messages = []
    for number, request in enumerate(requests):
        last = number == len(requests) - 1
        flags = NLM_F_REQUEST | request.flags | (NLM_F_ACK if last else 0)  # the kernel always reports errors
        header = HEADER.pack(HEADER.size + len(request.body), request.message_type, flags, number, 0)
        messages.append(header + request.body + bytes(-len(request.body) % 4))
    channel.send(b"".join(messages))
    while True:
        answer = channel.recv(RECEIVE_BYTES)
        (error,) = struct.unpack_from("=i", answer, HEADER.size)
        number = HEADER.unpack_from(answer, HEADER.size + 4)[3]
        if error:
            raise OSError(-error, f"{requests[number].what}: {os.strerror(-error)}")
        if number == len(requests) - 1:
            return


def attribute(kind: int, payload: bytes) -> bytes:
    """Return an attribute with its padding; the payload may be attributes."""
    length = ATTRIBUTE.size + len(payload)
    return ATTRIBUTE.pack(length, kind) + payload + bytes(-length % 4)


def attributes(data: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    """Yield type and payload of each attribute from ``offset`` to the end of ``data``."""
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        yield kind & 0x3FFF, data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
