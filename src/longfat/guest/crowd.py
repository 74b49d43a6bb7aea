# SPDX-License-Identifier: Apache-2.0
"""Senders and receivers of many flows: one process for each host, with a thread for each connection.

A process for each flow takes 20 ms of CPU time at either end, most of it for the start of iperf2. Each thread blocks in
system calls that move whole blocks, so threads rarely run. Output lines have the form of iperf2's ``-y C``.
``longfat.guest.traffic`` has the commands.
"""

from __future__ import annotations

import mmap
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

BLOCK_BYTES = 1 << 20
STACK_BYTES = 1 << 17
BACKLOG = 1024
TIMEVAL = struct.Struct("@ll")


def send(order: dict[str, Any]) -> None:
    """Send all flows of a host, and wait until their receivers have everything. Raises OSError if one fails."""
    block = memoryview(mmap.mmap(-1, BLOCK_BYTES))

    def one(order: dict[str, Any], origin_ns: int, number: int) -> None:
        start_us, duration_us, _, cca = order["flow"]
        wait_ns = origin_ns + 1000 * start_us - time.monotonic_ns()
        time.sleep(max(0, wait_ns) / 1e9)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cca.encode())
            if order["window"] is not None:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, order["window"])
            start_ns = time.monotonic_ns()
            sender.connect(tuple(order["to"]))
            ends = _ends(sender)
            sent, end_ns = 0, start_ns + 1000 * duration_us
            while (left_us := (end_ns - time.monotonic_ns()) // 1000) > 0:
                sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, TIMEVAL.pack(*divmod(left_us, 1_000_000)))
                try:
                    sent += sender.send(block)
                except BlockingIOError:
                    break
            sender.shutdown(socket.SHUT_WR)
            sender.recv(1)  # the receiver has closed
            _report(ends, number, sent, time.monotonic_ns() - start_ns)

    _threads(
        (one, (flow, order["origin_ns"], number)) for flow in order["flows"] for number in range(1, flow["flow"][2] + 1)
    )


def receive(order: dict[str, Any]) -> None:
    """Receive all flows of a host until their senders have closed. Raises OSError if one fails."""
    buffer = memoryview(mmap.mmap(-1, BLOCK_BYTES))

    def one(listener: socket.socket, number: int) -> None:
        receiver, _ = listener.accept()
        start_ns, received = time.monotonic_ns(), 0
        with receiver:
            ends = _ends(receiver)
            while some := receiver.recv_into(buffer, BLOCK_BYTES, socket.MSG_TRUNC):  # copies nothing
                received += some
            _report(ends, number, received, time.monotonic_ns() - start_ns)

    listeners = [(_listener(flow), flow["streams"]) for flow in order["flows"]]
    _threads((one, (listener, number)) for listener, streams in listeners for number in range(1, streams + 1))


def _listener(flow: dict[str, Any]) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if flow["cca"]:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, flow["cca"].encode())
    if flow["window"] is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, flow["window"])
    listener.bind(("", flow["port"]))
    listener.listen(BACKLOG)
    return listener


def _threads(calls: Iterable[tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
    """Make each call in its own thread. Raises the first error."""
    errors: list[BaseException] = []

    def guarded(call: Callable[..., None], given: tuple[Any, ...]) -> None:
        try:
            call(*given)
        except BaseException as error:  # raised below
            errors.append(error)

    threading.stack_size(STACK_BYTES)
    threads = [threading.Thread(target=guarded, args=one) for one in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def _ends(connected: socket.socket) -> list[str]:
    """Return address and port of both ends of a connection, its own end first."""
    return [str(part) for end in (connected.getsockname(), connected.getpeername()) for part in end]


def _report(ends: list[str], number: int, amount: int, took_ns: int) -> None:
    """Print the line of a connection: its ends, number, interval, bytes, bits per second."""
    rate = 8_000_000_000 * amount // max(took_ns, 1)
    sys.stdout.write(",".join(map(str, ["0", *ends, number, f"0.0-{took_ns / 1e9:g}", amount, rate])) + "\n")
