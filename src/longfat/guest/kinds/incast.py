# SPDX-License-Identifier: Apache-2.0
"""Incast of one run while it happens: a receiver that asks many senders at once, and waits for the slowest of them.

The servers are those of requests, one for each sender, over connections that last.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from longfat.guest.files import write_json
from longfat.guest.kinds import requests
from longfat.runspec import Incast, RunSpec

FIRST_PORT = 7601  # entry k of the RunSpec's incast is served at FIRST_PORT + k
WAKE_BYTES = 32 << 10  # as in requests
COLUMNS = "t_us,incast,senders,block_bytes,fastest_us,completion_us"
ASKING = {"users": 1, "request_bytes": 8, "keep": True}


class Traffic(requests.Traffic):
    """All incast of a run: a server for each sender, and one asking program for each group of them."""

    kind = "incast"
    module = "longfat.guest.kinds.incast"
    first_port = FIRST_PORT
    served = ASKING

    def plan(self) -> None:
        """Put the start of each group's receiver on the time line."""
        for group in groups(self.stage.spec).values():
            servers = [(self.stage.network.topology.address(one.sender), self.ports[one.name]) for one in group]
            first = group[0]
            order = {"servers": servers, "name": first.group}
            self.stage.timeline.at(first.start_us, partial(self.start_users, first, order))


def groups(spec: RunSpec) -> dict[str, list[Incast]]:
    """The senders of each group, in their order."""
    found: dict[str, list[Incast]] = {}
    for one in spec.incast:
        found.setdefault(one.group, []).append(one)
    return found


def report(spec: RunSpec, folder: Path) -> None:
    """Write incast.json, and incast_rounds.csv in the order in which the rounds began."""
    reports, rows = [], []
    for name, group in groups(spec).items():
        one, told = group[0], requests.said(folder, "incast", f"{name}.ask")
        completed = [us for *_, us in told["rounds"]]
        reports.append(
            {
                "incast": name,
                "receiver": one.receiver,
                "cca": one.cca,
                "senders": len(group),
                "start_us": one.start_us,
                "end_us": one.start_us + one.duration_us,
                "rounds": len(completed),
                "mean_completion_us": round(sum(completed) / len(completed)) if completed else None,
            }
        )
        rows += [(t_us, name, len(group), one.block_bytes, *rest) for t_us, *rest in told["rounds"]]
    write_json(folder / "incast.json", reports)
    with (folder / "incast_rounds.csv").open("w") as table:
        print(COLUMNS, file=table)
        for row in sorted(rows):
            print(*row, sep=",", file=table)


class Receiver:
    """The receiver of one group, connected with all its senders."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._connections = {}
        self._poll = select.epoll()
        self._buffer = bytearray(1 << 18)
        for address, port in order["servers"]:
            connection = socket.create_connection((address, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setblocking(False)
            self._connections[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)

    def rounds(self) -> list[tuple[int, int, int]]:
        """Ask until the end: when, how long the fastest and the slowest took, in microseconds of each round.

        A round under way at the end is cut off.
        """
        origin, done = self._order["origin_ns"] / 1e9, []
        end = origin + (self._order["start_us"] + self._order["duration_us"]) / 1e6
        while (begin := time.monotonic()) < end:
            times = self._one_round(begin, end)
            if times is None:
                break
            done.append((round(1e6 * (begin - origin)), round(1e6 * times[0]), round(1e6 * times[1])))
            time.sleep(max(0.0, min(self._order["pause_us"] / 1e6, end - time.monotonic())))
        for connection in self._connections.values():
            connection.close()
        return done

    def _one_round(self, begin: float, end: float) -> tuple[float, float] | None:
        """Seconds until the first and the last sender had sent its block; None when the end came before."""
        block = self._order["block_bytes"]
        left = dict.fromkeys(self._connections, block)
        for descriptor, connection in self._connections.items():
            self._expect(descriptor, block)
            connection.sendall(block.to_bytes(8, "big"))
        fastest = None
        while left:
            if (rest := end - time.monotonic()) <= 0:
                return None
            for descriptor, _ in self._poll.poll(rest):
                if not self._take_in(descriptor, left):
                    del left[descriptor]
                    fastest = fastest or time.monotonic() - begin
        return fastest or 0.0, time.monotonic() - begin

    def _take_in(self, descriptor: int, left: dict[int, int]) -> int:
        """Read what has come from a sender; the bytes that are left."""
        try:
            while left[descriptor]:
                came = self._connections[descriptor].recv_into(self._buffer, min(left[descriptor], len(self._buffer)))
                if not came:
                    raise ConnectionError("a sender has ended its connection")
                left[descriptor] -= came
        except BlockingIOError:
            self._expect(descriptor, left[descriptor])
        return left[descriptor]

    def _expect(self, descriptor: int, count: int) -> None:
        """Be woken when enough has come."""
        connection = self._connections[descriptor]
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(count, WAKE_BYTES))


def ask(order: dict[str, Any]) -> None:
    """Be the receiver, then write how long each round took."""
    json.dump({"rounds": Receiver(order).rounds()}, sys.stdout)
