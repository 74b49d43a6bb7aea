# SPDX-License-Identifier: Apache-2.0
"""A path between two interfaces that delays each frame, as a program: what netem does, on kernels without it.

``delaying.py ONE OTHER MICROSECONDS``: frames that arrive at one leave the other that much later. An interface that is
gone is awaited again. Must not assert anything.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress

ALL_PROTOCOLS = 0x0003  # linux/if_ether.h
SOL_PACKET, PACKET_VNET_HDR = 263, 15  # linux/socket.h, linux/if_packet.h: frames keep what is still to be computed
LONGEST_FRAME = 1 << 17
AWAITED_S = 0.02


def opened(interface: str) -> socket.socket:
    """A socket for all frames of an interface, which is brought up by who laid it; waits until it is there."""
    while True:
        channel = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
        channel.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        try:
            channel.bind((interface, ALL_PROTOCOLS))
            return channel
        except OSError:
            channel.close()
            time.sleep(AWAITED_S)


def main(one: str, other: str, delay_us: int) -> None:
    """Carry frames until the process is ended."""
    names = (one, other)
    channels = [opened(name) for name in names]
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        due = max(0.0, under_way[0][0] - time.monotonic()) if under_way else AWAITED_S
        for channel in select.select(channels, [], [], due)[0]:
            number = channels.index(channel)
            try:
                frame, (_, _, kind, _, _) = channel.recvfrom(LONGEST_FRAME)
            except OSError:  # the interface went with the namespace that had its other end
                channel.close()
                channels[number] = opened(names[number])
                continue
            if kind != socket.PACKET_OUTGOING:
                under_way.append((time.monotonic() + delay_us / 1e6, 1 - number, frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, number, frame = under_way.popleft()
            with suppress(OSError):
                channels[number].send(frame)


if __name__ == "__main__":
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # a path does not wait for what else runs
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
