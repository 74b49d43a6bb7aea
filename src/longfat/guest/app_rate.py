# SPDX-License-Identifier: Apache-2.0
"""TCP sender limited by its application: data at a constant rate, or in on and off times.

``-b`` of iperf2 waits in steps of 4 us: 2.5 s of wall time for each second in virtual time. This program prints a line
for each connection in the form of ``-y C``. A receiving iperf2 does not count the first 4 bytes of a connection, which
it reads as a header.
"""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from longfat.guest import program

TICK_US = 1000  # shortest time between two writes
SEGMENT_BYTES = 1448  # least write: a full segment at an MTU of 1500 B (with timestamps, RFC 7323)
PIECE_BYTES = 1 << 16
SEND_TIMEOUT = struct.pack("@ll", 0, 100_000)  # struct timeval: interval at which a blocked sender checks the time
MODULE = "longfat.guest.app_rate"


def due_bytes(order: dict[str, Any], elapsed_us: int) -> int:
    """Return the bytes due at a time for all connections."""
    on_us, off_us = order["on_us"], order["off_us"]
    if off_us:
        periods, rest_us = divmod(elapsed_us, on_us + off_us)
        elapsed_us = periods * on_us + min(rest_us, on_us)
    return int(order["rate_bps"] * elapsed_us // 8_000_000)


def write_times_us(order: dict[str, Any]) -> Iterator[int]:
    """Yield the times of the writes of a connection: at equal intervals in each on time, and at its end."""
    duration_us, streams = order["duration_us"], order["streams"]
    step_us = max(TICK_US, -(-SEGMENT_BYTES * 8_000_000 * streams // order["rate_bps"]))
    on_us = order["on_us"] or duration_us
    for begin_us in range(0, duration_us, on_us + (order["off_us"] or 0)):
        end_us = min(begin_us + on_us, duration_us)
        yield from range(begin_us + step_us, end_us, step_us)
        yield end_us


def send(order: dict[str, Any]) -> None:
    """Send a flow until the end of ``duration_us``, with a process for each connection.

    Raises OSError if a connection fails.
    """
    if order["streams"] == 1:
        send_one(order)
        return
    commands = [program.command(MODULE, "send_one", {**order, "stream": k}) for k in range(order["streams"])]
    running = [subprocess.Popen(command) for command in commands]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise OSError("a connection failed")  # its process has reported the reason


def send_one(order: dict[str, Any]) -> None:
    """Send one connection of a flow, and print its line. Raises OSError if it fails."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sender:
        sent, blocked_us = _send(sender, order)
        ends = [str(part) for end in (sender.getsockname(), sender.getpeername()) for part in end]
    seconds = order["duration_us"] / 1e6
    fields = ["0", *ends, order.get("stream", 0) + 1, f"0.0-{seconds:g}", sent, round(8 * sent / seconds), blocked_us]
    sys.stdout.write(",".join(map(str, fields)) + "\n")


def _send(sender: socket.socket, order: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes that a connection accepted, and the microseconds in which it was blocked."""
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["cca"].encode())
    if order["window_bytes"] is not None:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, order["window_bytes"])
    start = time.monotonic_ns()
    sender.connect((order["address"], order["port"]))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, SEND_TIMEOUT)  # after the handshake, which may last longer
    piece, sent, now_us = memoryview(bytes(PIECE_BYTES)), 0, (time.monotonic_ns() - start) // 1000
    blocked_us = now_us  # by the handshake
    for due_us in write_times_us(order):
        if now_us > order["duration_us"]:
            break
        if due_us > now_us:
            time.sleep((due_us - now_us) / 1e6)
            now_us = (time.monotonic_ns() - start) // 1000
        due = due_bytes(order, due_us) // order["streams"]
        while sent < due:
            with suppress(BlockingIOError):  # the timeout
                sent += sender.send(piece[: due - sent])
            before_us, now_us = now_us, (time.monotonic_ns() - start) // 1000
            blocked_us += now_us - before_us
            if now_us > order["duration_us"]:
                break
    time.sleep(max(0, order["duration_us"] - now_us) / 1e6)  # the last off time
    return sent, blocked_us
