# SPDX-License-Identifier: Apache-2.0
"""Short flows of one run while it happens: each is a request of a size of its own, which begins at a time of its own.

The server is that of requests; the program at the receiver begins flows without regard to those under way.
"""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left
from pathlib import Path
from random import Random
from typing import Any

from longfat.guest.files import write_json
from longfat.guest.kinds import requests
from longfat.network import least_time_us
from longfat.runspec import RunSpec, ShortFlows

FIRST_PORT = 7301  # entry k of the RunSpec's short flows is served at FIRST_PORT + k
MOST_FLOWS = 16_000  # under way at once
REQUEST_BYTES = 8  # the wanted size and nothing else
MILLION = 1_000_000
COLUMNS = "t_us,short_flows,size_bytes,completion_us,ideal_us"
ASKING = {"users": MOST_FLOWS, "request_bytes": REQUEST_BYTES}


class Traffic(requests.Traffic):
    """All short flows of a run."""

    kind = "short_flows"
    module = "longfat.guest.kinds.short_flows"
    first_port = FIRST_PORT
    served = ASKING

    def start_users(self, one: ShortFlows, order: dict[str, Any]) -> None:
        """Start the program that begins the flows."""
        super().start_users(one, order | ASKING)


def report(spec: RunSpec, folder: Path) -> None:
    """Write short_flows.json, and completions.csv in the order in which the flows began."""
    reports, rows = [], []
    for one in spec.short_flows:
        told = requests.said(folder, "short_flows", f"{one.name}.ask")
        reports.append(
            {
                "short_flows": one.name,
                "sender": one.sender,
                "receiver": one.receiver,
                "cca": one.cca,
                "start_us": one.start_us,
                "end_us": one.start_us + one.duration_us,
                "bytes_received": told["bytes_received"],
                "completed": len(told["responses"]),
                "unfinished": told["unfinished"],
                "errors": told["errors"],
            }
        )
        rows += [(t_us, one.name, size, us, least_time_us(spec, one, size)) for t_us, _, size, us in told["responses"]]
    write_json(folder / "short_flows.json", reports)
    with (folder / "completions.csv").open("w") as table:
        print(COLUMNS, file=table)
        for row in sorted(rows):
            print(*row, sep=",", file=table)


def size_bytes(order: dict[str, Any], random: Random) -> int:
    """The size of a flow: whole bytes, at least one."""
    mean, shape, sizes = order["size_bytes"], order["shape"], order["sizes"]
    if sizes == "exponential":
        size = random.expovariate(1 / mean)
    elif sizes == "pareto":
        size = mean * (shape - 1) / shape * random.paretovariate(shape)
    elif sizes == "lognormal":
        size = random.lognormvariate(math.log(mean) - shape**2 / 2, shape)
    elif sizes == "table":
        size = at_share(order["table"], random.random() * MILLION)
    else:
        size = mean
    return max(1, round(size))


def at_share(table: list[tuple[int, int]], share_ppm: float) -> float:
    """The size that so many millionths of the flows do not exceed, on the line between two points of the table."""
    k = bisect_left(table, share_ppm, key=lambda point: point[1])
    if k == 0:
        return table[0][0]
    (low, below), (high, above) = table[k - 1], table[k]
    return low + (high - low) * (share_ppm - below) / (above - below)


def gap_s(order: dict[str, Any], random: Random) -> float:
    """Seconds from the beginning of a flow to that of the next one."""
    mean_s = order["every_us"] / 1e6
    return random.expovariate(1 / mean_s) if order["arrivals"] == "poisson" else mean_s


class Arrivals(requests.Crowd):
    """The flows of one entry. The number of a flow takes the place of that of a user."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__({**order, "users": 0})
        self._times = Random(f"{order['seed']} {order['name']} times")
        self._sizes = Random(f"{order['seed']} {order['name']} sizes")
        self._next_ns = self.begin_ns

    def begin(self) -> None:
        """Plan the first flow."""
        self._follow(0)

    def ask(self, user: int) -> None:
        """Begin a flow, and plan the next one."""
        self._follow(user + 1)
        super().ask(user)

    def wanted(self, user: int) -> int:
        """The size of a flow."""
        return size_bytes(self.order, self._sizes)

    def go_on(self, user: int, now_ns: int) -> None:
        """Nothing follows from the end of a flow."""

    def _follow(self, number: int) -> None:
        self._next_ns += round(1e9 * gap_s(self.order, self._times))
        self.plan(number, self._next_ns, 0)


def ask(order: dict[str, Any]) -> None:
    """Be the receiver of all flows, then write what became of them."""
    requests.allow_connections(order)
    json.dump(Arrivals(order).run(), sys.stdout)
