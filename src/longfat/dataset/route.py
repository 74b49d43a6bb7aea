# SPDX-License-Identifier: Apache-2.0
"""The interfaces of a RunSpec by name, and those that a flow's packets leave by.

Pure functions of the RunSpec; must not know what was measured.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from longfat.runspec import Egress, RunSpec


@dataclass(frozen=True)
class Port:
    """One declared interface: ``name`` is ``<node>-eth<k>``, k counting the node's links in RunSpec order."""

    node: str
    name: str
    peer: str
    mtu_bytes: int
    egress: Egress


def ports(spec: RunSpec) -> tuple[Port, ...]:
    """All interfaces in the order of the links, end ``a`` before end ``b``."""
    count: dict[str, int] = {}
    found = []
    for link in spec.links:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            k = count.get(near.node, 0)
            count[near.node] = k + 1
            found.append(Port(near.node, f"{near.node}-eth{k}", far.node, link.mtu_bytes, near.egress))
    return tuple(found)


def route(spec: RunSpec, start: str, end: str) -> tuple[Port, ...]:
    """The interfaces left on the way with the fewest links; empty when there is no way."""
    ways: dict[str, tuple[Port, ...]] = {start: ()}
    reached = deque([start])
    while reached:
        node = reached.popleft()
        for port in ports(spec):
            if port.node == node and port.peer not in ways:
                ways[port.peer] = (*ways[node], port)
                reached.append(port.peer)
    return ways.get(end, ())
