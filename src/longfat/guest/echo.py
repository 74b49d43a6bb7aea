# SPDX-License-Identifier: Apache-2.0
"""Round-trip times by ICMP echo requests (RFC 792) at an interval, to the nanosecond of the kernel's clock.

``probe`` is a program that prints the table ``pings.csv``. It waits only in blocking calls: for the time of the next
request, and at the end for the last reply. The kernel records the arrival of a reply, so replies are read only when the
next request is due.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from longfat.guest import program

MODULE = "longfat.guest.echo"
COLUMNS = "t_us,rtt_us"
LINGER_NS = 10_000_000_000  # longest wait for the last reply, as in iputils

ECHO_REPLY, ECHO_REQUEST = 0, 8
IDENTIFIER = 0x4C46
HEADER = struct.Struct("!BBHHHQ")  # type, code, checksum, identifier, sequence number, and the number in 64 bits
DATA_BYTES = 56  # as in ping: a packet of 84 bytes
IHL_UNIT = 4
BUFFER_BYTES = 1 << 24  # for a burst of replies or requests

SOL_RAW, ICMP_FILTER = 255, 1  # linux/icmp.h; each bit of the filter blocks a type
ONLY_REPLIES = struct.pack("=I", ~(1 << ECHO_REPLY) & 0xFFFFFFFF)
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35  # asm-generic/socket.h
SIOCINQ = 0x541B  # linux/sockios.h: length of the next packet
TIMESPEC = struct.Struct("@ll")


def command(address: str, interval_us: int, origin_ns: int, end_us: int, linger_ns: int = LINGER_NS) -> list[str]:
    """Return the command line of the program.

    Requests go to ``address`` every ``interval_us`` from ``origin_ns`` (CLOCK_MONOTONIC) to before ``end_us`` after it.
    The program waits up to ``linger_ns`` for the last reply.
    """
    when = {"interval_us": interval_us, "origin_ns": origin_ns, "end_us": end_us, "linger_ns": linger_ns}
    return program.command(MODULE, "probe", {"address": address, **when})


def request(number: int) -> bytes:
    """Return the ICMP message of request ``number``, whose data are the number and zeros."""
    sequence = number & 0xFFFF
    unsummed = HEADER.pack(ECHO_REQUEST, 0, 0, IDENTIFIER, sequence, number)
    words = struct.unpack("!8H", unsummed)  # zeros add nothing to the sum (RFC 1071)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header = HEADER.pack(ECHO_REQUEST, 0, ~total & 0xFFFF, IDENTIFIER, sequence, number)
    return header.ljust(DATA_BYTES + 8, b"\0")


def reply_number(packet: bytes) -> int | None:
    """Return the number of the answered request in an IPv4 packet; None for any other packet."""
    start = IHL_UNIT * (packet[0] & 0xF)
    if len(packet) < start + HEADER.size:
        return None
    kind, _, _, identifier, sequence, number = HEADER.unpack_from(packet, start)
    own = kind == ECHO_REPLY and identifier == IDENTIFIER and sequence == number & 0xFFFF
    return number if own else None


def rows(sent_ns: list[int], rtt_ns: dict[int, int], origin_ns: int) -> Iterator[str]:
    """Yield a line of ``pings.csv`` for each request: its time, and its round-trip time if there was a reply."""
    for number, at_ns in enumerate(sent_ns):
        rtt = rtt_ns.get(number)
        yield f"{(at_ns - origin_ns) // 1000},{'' if rtt is None else f'{rtt / 1000:.3f}'}"


def next_ns(at_ns: int, now_ns: int, interval_ns: int) -> int:
    """Return the time of the request after ``at_ns``, skipping past times."""
    return at_ns + interval_ns * max(1, -((at_ns - now_ns) // interval_ns))


class Echo:
    """Requests to an address from the current network namespace, and the replies."""

    def __init__(self, address: str) -> None:
        self.sent_ns: list[int] = []  # CLOCK_MONOTONIC
        self.rtt_ns: dict[int, int] = {}
        self._address = (address, 0)
        self._sent_epoch_ns: list[int] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        self._socket.setsockopt(SOL_RAW, ICMP_FILTER, ONLY_REPLIES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self) -> None:
        """Send the next request; it counts as lost if the kernel cannot send it."""
        message = request(len(self.sent_ns))
        self.sent_ns.append(time.monotonic_ns())
        self._sent_epoch_ns.append(time.time_ns())
        with suppress(OSError):
            self._socket.sendto(message, self._address)

    def read(self) -> None:
        """Read every reply that has arrived."""
        while int.from_bytes(fcntl.ioctl(self._socket, SIOCINQ, bytes(4)), sys.byteorder):
            self._receive()

    def await_last(self, until_ns: int) -> None:
        """Wait for the reply to the last request, at most until ``until_ns`` (CLOCK_MONOTONIC)."""
        last = len(self.sent_ns) - 1
        with suppress(TimeoutError):
            while last not in self.rtt_ns and (left_ns := until_ns - time.monotonic_ns()) > 0:
                self._socket.settimeout(left_ns / 1e9)
                self._receive()

    def _receive(self) -> None:
        packet, ancillary, _, _ = self._socket.recvmsg(2048, socket.CMSG_SPACE(TIMESPEC.size))
        number = reply_number(packet)
        if number is None or number >= len(self.sent_ns) or number in self.rtt_ns:
            return
        stamps = (data for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS))
        seconds, nanoseconds = TIMESPEC.unpack(next(stamps))
        self.rtt_ns[number] = 1_000_000_000 * seconds + nanoseconds - self._sent_epoch_ns[number]


def probe(order: dict[str, Any]) -> None:
    """Send every request at its time, wait for the last reply, and print the table."""
    Path("/proc/self/timerslack_ns").write_text("1")
    origin_ns, interval_ns = order["origin_ns"], 1000 * order["interval_us"]
    at_ns, end_ns = origin_ns, origin_ns + 1000 * order["end_us"]
    with closing(Echo(order["address"])) as echo:
        while at_ns < end_ns:
            time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
            echo.read()
            echo.send()
            at_ns = next_ns(at_ns, time.monotonic_ns(), interval_ns)
        echo.await_last(end_ns + order["linger_ns"])
        echo.read()
    table = rows(echo.sent_ns, echo.rtt_ns, origin_ns)
    sys.stdout.writelines(f"{line}\n" for line in (COLUMNS, *table))
