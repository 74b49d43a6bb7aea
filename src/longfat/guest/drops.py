# SPDX-License-Identifier: Apache-2.0
"""Deliberate drops of a run: each is a filter, added at its time and removed after its one packet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from longfat.guest import qdisc
from longfat.guest.network import Network
from longfat.guest.timeline import Timeline
from longfat.spec.network import Port
from longfat.spec.runspec import Link

DROP_WINDOW_US = 200_000  # a drop must happen in this time


class Drops:
    """All deliberate drops of a run; ``happened`` counts them by interface."""

    def __init__(self, network: Network, timeline: Timeline, links: Sequence[Link]) -> None:
        self._network = network
        self._timeline = timeline
        self._links = links
        self.happened: dict[str, int] = {}

    def plan(self) -> None:
        """Plan each drop on the time line."""
        for port, hook in self._network.drop_hooks():
            for drop in port.egress.drops:
                self._timeline.at(drop.at_us, partial(self._begin, hook, drop.packet))
                self._watch(drop.at_us, hook, partial(self._end, port, hook))

    def _begin(self, hook: qdisc.Hook, packet: int) -> None:
        self._network.batch(hook.node, [hook.drop_filter(packet)])

    def _end(self, port: Port, hook: qdisc.Hook) -> None:
        self.happened[port.name] = self.happened.get(port.name, 0) + self._network.filter_drops(hook)
        self._network.batch(hook.node, [hook.removal()])

    def _watch(self, at_us: int, hook: qdisc.Hook, end: Callable[[], None]) -> None:
        """End the filter after its one drop, or at the end of its time."""
        step_us = qdisc.looks_us(self._links)
        deadline = at_us + DROP_WINDOW_US

        def look(t_us: int) -> None:
            if t_us >= deadline or self._network.filter_drops(hook):
                end()
            else:
                self._timeline.at(t_us + step_us, lambda: look(t_us + step_us))

        self._timeline.at(at_us + step_us, lambda: look(at_us + step_us))
