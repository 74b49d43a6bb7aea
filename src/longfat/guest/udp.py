# SPDX-License-Identifier: Apache-2.0
"""UDP traffic of a constant rate, or one that swings about a mean as a sine: sending program and receiving socket.

Owns how much is sent when, and how arrivals are counted: the receiving socket's filter takes nothing, so that the
kernel counts each datagram and no program is woken for it. Also a program: reads the order that ``sender_order`` makes.
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
TICK_S = 0.001  # what is due is sent so often: at 50 Mbit/s four full packets
COLUMNS = "t_us,udp,received_packets,received_bytes"
PYTHON = ("/usr/bin/python3", "-I", "-S")

SO_ATTACH_FILTER = 26  # asm-generic/socket.h
SO_MEMINFO = 55
MEMINFO = struct.Struct("=9I")  # linux/sock_diag.h; the last is SK_MEMINFO_DROPS
TAKE_NOTHING = struct.pack("=HBBI", 0x06, 0, 0, 0)  # one instruction of classic BPF: BPF_RET | BPF_K, 0 bytes


def due_bytes(order: dict[str, Any], elapsed_s: float) -> float:
    """Bytes of packets that are to be sent by then: the integral of mean + swing * sin(2 pi t / period)."""
    if not order["swing_bps"]:
        return float(order["mean_bps"] * elapsed_s) / 8
    period_s = order["period_us"] / 1e6
    swung = order["swing_bps"] * period_s / (2 * math.pi) * (1 - math.cos(2 * math.pi * elapsed_s / period_s))
    return float(order["mean_bps"] * elapsed_s + swung) / 8


def sender_command(order: dict[str, Any]) -> list[str]:
    """The sending program with what it is to do: ``address``, ``port``, ``packet_bytes``, and the traffic's own."""
    return [*PYTHON, str(Path(__file__)), json.dumps(order)]


def open_receiver(port: int) -> socket.socket:
    """A socket of the current namespace that counts what is sent to its port, and reads nothing of it."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    program = ctypes.create_string_buffer(TAKE_NOTHING)
    instructions = struct.pack("@HP", 1, ctypes.addressof(program))  # struct sock_fprog
    receiver.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, instructions)
    receiver.bind(("", port))
    return receiver


def received_packets(receiver: socket.socket) -> int:
    """Datagrams that have come to the socket so far."""
    return int(MEMINFO.unpack(receiver.getsockopt(socket.SOL_SOCKET, SO_MEMINFO, MEMINFO.size))[-1])


def send(order: dict[str, Any]) -> int:
    """Send until ``duration_us`` is over, each packet as soon as it is due; return the bytes sent."""
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
            now = time.monotonic() - start  # later than the tick where the host's link is too slow: send() has to wait
            time.sleep(max(0.0, ticks * TICK_S - now))
    return int(sent)


if __name__ == "__main__":
    sys.stdout.write(f"{send(json.loads(sys.argv[1]))}\n")
