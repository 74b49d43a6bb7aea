# SPDX-License-Identifier: Apache-2.0
"""UDP traffic of a constant or sinusoidal rate: sending program and receiving socket.

The filter of the receiving socket accepts nothing, so that the kernel counts each datagram and wakes no program. Also a
program, with the order of ``sender_command`` as its argument.
"""

from __future__ import annotations

import ctypes
import json
import math
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

FIRST_PORT = 9001  # entry k of the RunSpec's UDP traffic goes to FIRST_PORT + k
HEADER_BYTES = 28  # IPv4 20 (RFC 791), UDP 8 (RFC 768)
TICK_S = 0.001  # interval of the sender: four full packets at 50 Mbit/s
COLUMNS = "t_us,udp,received_packets,received_bytes"
PYTHON = ("/usr/bin/python3", "-I", "-S")

SO_ATTACH_FILTER = 26  # asm-generic/socket.h
SO_MEMINFO = 55
MEMINFO = struct.Struct("=9I")  # linux/sock_diag.h; SK_MEMINFO_DROPS is last
TAKE_NOTHING = struct.pack("=HBBI", 0x06, 0, 0, 0)  # classic BPF: BPF_RET | BPF_K, 0 bytes


def due_bytes(order: dict[str, Any], elapsed_s: float) -> float:
    """Return the bytes due at a time: the integral of mean + swing * sin(2 pi t / period)."""
    if not order["swing_bps"]:
        return float(order["mean_bps"] * elapsed_s) / 8
    period_s = order["period_us"] / 1e6
    swung = order["swing_bps"] * period_s / (2 * math.pi) * (1 - math.cos(2 * math.pi * elapsed_s / period_s))
    return float(order["mean_bps"] * elapsed_s + swung) / 8


def sender_command(order: dict[str, Any]) -> list[str]:
    """Return the command of the sender; the order has ``address``, ``port``, ``packet_bytes`` and the traffic."""
    return [*PYTHON, str(Path(__file__)), json.dumps(order)]


def open_receiver(port: int) -> socket.socket:
    """Open a socket of the current namespace that counts the datagrams to its port without reading them."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    program = ctypes.create_string_buffer(TAKE_NOTHING)
    instructions = struct.pack("@HP", 1, ctypes.addressof(program))  # struct sock_fprog
    receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, instructions)
    receiver.bind(("", port))
    return receiver


def received_packets(receiver: socket.socket) -> int:
    """Return the datagrams that have reached the socket so far."""
    return int(MEMINFO.unpack(receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))[-1])


def send(order: dict[str, Any]) -> int:
    """Send each packet when it is due until the end of ``duration_us``; return the bytes sent."""
    packet = bytes(order["packet_bytes"] - HEADER_BYTES)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect((order["address"], order["port"]))
        start, now, ticks, sent = time.monotonic(), 0.0, 0, 0
        while max(now, ticks * TICK_S) < order["duration_us"] / 1e6:
            due = due_bytes(order, ticks * TICK_S)
            while sent < due:
                sender.send(packet)
                sent += order["packet_bytes"]
            ticks += 1
            now = time.monotonic() - start  # later than the tick if send() waits for a slow link
            time.sleep(max(0.0, ticks * TICK_S - now))
    return int(sent)


if __name__ == "__main__":
    sys.stdout.write(f"{send(json.loads(sys.argv[1]))}\n")
