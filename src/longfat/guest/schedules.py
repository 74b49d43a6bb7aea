# SPDX-License-Identifier: Apache-2.0
"""Wires whose rate and delay change during a run.

In virtual time a step is exact, because the clock stands still meanwhile. Steps continue after the measurement until
the end of all traffic, so that late packets do not leave faster.
"""

from __future__ import annotations

import ctypes
import heapq
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from longfat.guest import netlink
from longfat.guest.network import Network
from longfat.guest.sysctls import GuestError
from longfat.guest.timeline import Timeline
from longfat.guest.wire import Wire, read_wires
from longfat.spec.network import Port, Step, each_step

PR_SET_TIMERSLACK = 29  # linux/prctl.h
EARLY_US = 1  # the time line may be late by one microsecond


@dataclass
class _Course:
    """The remaining steps of a wire, its index in its namespace, and the number and lateness of the executed steps.

    ``later`` is the first step after the measurement.
    """

    port: Port
    index: int
    channel: socket.socket
    coming: Iterator[Step]
    done: int = 0
    late_ns: int = 0
    later: Step | None = None


class Schedules:
    """All changing wires of a run."""

    def __init__(self, network: Network, timeline: Timeline, cleanup: ExitStack) -> None:
        self._network, self._timeline = network, timeline
        self._courses = [
            self._course(port, cleanup)
            for ports in network.ports.values()
            for port in ports
            if port.egress.changes or port.egress.trace
        ]
        self._ended, self._follower = threading.Event(), threading.Thread(target=self._follow, daemon=True)
        if self._courses:
            cleanup.callback(self.end)
            ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)  # in nanoseconds

    def plan(self) -> None:
        """Plan the first step of each wire; each step plans the next."""
        for course in self._courses:
            self._plan_next(course)

    def finish(self) -> dict[str, dict[str, Any]]:
        """Return for each changing wire its state, its steps, their lateness, and offered and sent bits.

        Called at the end of the measurement; the later steps follow while the traffic ends.
        """
        found = {}
        for course in self._courses:
            with self._network.inside(course.port.node):
                used = read_wires()[course.port.name]
            found[course.port.name] = {
                "rate_bps": used.wire.rate_bps or None,
                "delay_us": used.wire.delay_ns // 1000,
                "delay_ns": used.wire.delay_ns,
                "steps": course.done,
                "late_ns": course.late_ns,
                "offered_bits": used.offered_bits,
                "taken_bytes": used.sent_bytes,
            }
        if any(course.later for course in self._courses):
            self._follower.start()
        return found

    def end(self) -> None:
        """End the steps: all traffic has ended."""
        self._ended.set()
        if self._follower.ident:
            self._follower.join()

    def _follow(self) -> None:
        """Execute the steps after the measurement at their times."""
        coming = [(course.later.at_us, number) for number, course in enumerate(self._courses) if course.later]
        heapq.heapify(coming)
        while coming:
            at_us, number = heapq.heappop(coming)
            course = self._courses[number]
            if self._ended.wait(max(0, at_us - self._timeline.now_us()) / 1e6):
                return
            assert course.later
            self._set(course, Wire.at(course.later, course.port.egress.framing_bytes))
            course.later = next(course.coming, None)
            if course.later:
                heapq.heappush(coming, (course.later.at_us, number))

    def _course(self, port: Port, cleanup: ExitStack) -> _Course:
        with self._network.inside(port.node):
            channel = cleanup.enter_context(netlink.open_socket(socket.NETLINK_ROUTE))
            return _Course(port, socket.if_nametoindex(port.name), channel, each_step(port.egress))

    def _plan_next(self, course: _Course) -> None:
        step = next(course.coming, None)
        if step and step.at_us >= self._timeline.end_us:
            course.later = step
        elif step:
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
            raise GuestError(f"{course.port.name}: {error.strerror}") from error
