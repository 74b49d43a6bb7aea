# SPDX-License-Identifier: Apache-2.0
"""Wires whose rate and delay change while a run happens: each step at its time, and what came of it.

In virtual time a step is exact: the clock stands while it is done.
"""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from longfat.guest import netlink
from longfat.guest.network import Network
from longfat.guest.sysctls import LaboratoryError
from longfat.guest.timeline import Timeline
from longfat.guest.wire import Wire, read_wires
from longfat.network import Port, Step, steps

PR_SET_TIMERSLACK = 29  # linux/prctl.h
EARLY_US = 1  # the time line may be late by its own unit


@dataclass
class _Course:
    """The steps of one wire that are to come, its index in its namespace, and what was done of them."""

    port: Port
    index: int
    channel: socket.socket
    coming: Iterator[Step]
    done: int = 0
    late_ns: int = 0


class Schedules:
    """All changing wires of a run."""

    def __init__(self, network: Network, timeline: Timeline, cleanup: ExitStack) -> None:
        self._network, self._timeline = network, timeline
        self._courses = [
            self._course(port, found, cleanup)
            for ports in network.ports.values()
            for port in ports
            if (found := steps(port.egress, timeline.end_us))
        ]
        if self._courses:
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)  # in nanoseconds

    def plan(self) -> None:
        """Put the first step of each wire on the time line; each step plans the next one."""
        for course in self._courses:
            self._plan_next(course)

    def finish(self) -> dict[str, dict[str, Any]]:
        """For each changing wire how many steps were done, how late the latest was, what could leave, and what left.

        Called at the end of the measurement. What is still under way then leaves at the last rate, and nothing is held.
        """
        found = {}
        for course in self._courses:
            with self._network.inside(course.port.node):
                used = read_wires()[course.port.name]
            self._set(course, replace(used.wire, held=False))
            found[course.port.name] = {
                "steps": course.done,
                "late_ns": course.late_ns,
                "offered_bits": used.offered_bits,
                "taken_bytes": used.sent_bytes,
            }
        return found

    def _course(self, port: Port, found: tuple[Step, ...], cleanup: ExitStack) -> _Course:
        with self._network.inside(port.node):
            channel = cleanup.enter_context(netlink.open_socket(socket.NETLINK_ROUTE))
            return _Course(port, socket.if_nametoindex(port.name), channel, iter(found))

    def _plan_next(self, course: _Course) -> None:
        step = next(course.coming, None)
        if step:
            self._timeline.at(step.at_us - EARLY_US, partial(self._do, course, step))

    def _do(self, course: _Course, step: Step) -> None:
        at_ns = self._timeline.origin_ns + 1000 * step.at_us
        time.sleep(max(0, at_ns - time.monotonic_ns()) / 1e9)
        late_ns = time.monotonic_ns() - at_ns
        self._set(course, Wire.at(step, course.port.egress.framing_bytes))
        course.done += 1
        course.late_ns = max(course.late_ns, late_ns)
        self._plan_next(course)

    def _set(self, course: _Course, wire: Wire) -> None:
        try:
            netlink.change(course.channel, [wire.request(course.index)])
        except OSError as error:
            raise LaboratoryError(f"{course.port.name}: {error.strerror}") from error
