# SPDX-License-Identifier: Apache-2.0
"""Listener for the last state of each TCP socket, which the kernel multicasts at its end (``ss -E``).

Samples miss short connections, and the end of every connection. A separate thread records the time of each message.
Source: net/core/sock_diag.c (sock_diag_broadcast_destroy), linux/sock_diag.h.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from longfat.guest import netlink
from longfat.guest.sysctls import GuestError

NETLINK_SOCK_DIAG = 4
TCP_DESTROYED = 1  # the multicast group SKNLGRP_INET_TCP_DESTROY
BUFFER_BYTES = 16 << 20  # for unread messages, a kilobyte for each socket
SO_RCVBUFFORCE = 33


def open_listener() -> socket.socket:
    """Open a channel with a message at the end of each TCP socket of the current network namespace."""
    channel = netlink.open_socket(NETLINK_SOCK_DIAG)
    channel.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    channel.bind((0, 1 << (TCP_DESTROYED - 1)))
    channel.setblocking(False)
    return channel


class Closings(AbstractContextManager["Closings"]):
    """Messages on some channels, and added messages, by time."""

    def __init__(self, channels: Sequence[socket.socket]) -> None:
        self._channels = channels
        self._found: deque[tuple[int, int, list[bytes]]] = deque()
        self._lost = False
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening."""
        if self._stop >= 0:
            os.close(self._stop)
            self._stop = -1
            self._thread.join()
            os.close(self._stopped)

    def until(self, t_ns: int | None = None) -> Iterator[tuple[int, int, list[bytes]]]:
        """Remove and yield the messages before ``t_ns``, or all: time (ns), number of the channel, bodies.

        Raises GuestError if the kernel had no room for a message.
        """
        if self._lost:
            raise GuestError("the kernel lost reports of closed sockets")
        while self._found and (t_ns is None or self._found[0][0] < t_ns):
            yield self._found.popleft()

    def add(self, number: int, messages: list[bytes]) -> None:
        """Add the bodies of messages that have just arrived."""
        self._found.append((time.monotonic_ns(), number, messages))

    def _listen(self) -> None:
        poll = select.poll()
        numbers = {channel.fileno(): number for number, channel in enumerate(self._channels)}
        for descriptor in (*numbers, self._stopped):
            poll.register(descriptor, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self._stopped:
                    return
                self._take(numbers[descriptor])

    def _take(self, number: int) -> None:
        try:
            while True:
                self.add(number, list(netlink.bodies(self._channels[number].recv(netlink.RECEIVE_BYTES))))
        except BlockingIOError:
            return
        except OSError as error:
            self._lost = self._lost or error.errno == errno.ENOBUFS
