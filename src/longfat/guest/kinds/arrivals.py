# SPDX-License-Identifier: Apache-2.0
"""The program of requests at random times: a separate module, since imports would delay ``requests``."""

from __future__ import annotations

import json
import sys
from random import Random
from typing import Any

from longfat.guest.kinds import requests


class Arrivals(requests.Crowd):
    """Requests that begin as a Poisson process, independently of earlier ones; users are the numbers of requests."""

    def __init__(self, order: dict[str, Any]) -> None:
        super().__init__(order)
        self._times = Random(f"{order['seed']} {order['name']} times")
        self._sizes = Random(f"{order['seed']} {order['name']} sizes")
        self._next_ns = self.begin_ns

    def begin(self) -> None:
        """Schedule the first request."""
        self._plan_after(0)

    def ask(self, user: int) -> None:
        """Begin a request, and schedule the next one."""
        self._plan_after(user + 1)
        super().ask(user)

    def wanted(self, user: int) -> int:
        """Draw the bytes of a response."""
        return requests.response_bytes(self.order, self._sizes)

    def go_on(self, user: int, now_ns: int) -> None:
        """Do nothing: the end of a request starts no other."""

    def _plan_after(self, number: int) -> None:
        self._next_ns += round(1e9 * self._times.expovariate(1e6 / self.order["every_us"]))
        self.plan(number, self._next_ns, 0)


def ask(order: dict[str, Any]) -> None:
    """Act as the users, then write the outcome of their requests."""
    requests.allow_connections(order)
    json.dump(Arrivals(order).run(), sys.stdout)
