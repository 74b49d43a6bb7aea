# SPDX-License-Identifier: Apache-2.0
"""The placement of a run's nodes on hosts, and of its links on cables. Pure.

Each sender and each receiver has a host to itself; routers share the hosts of their role, or, in a lab without any, are
beside the end hosts. Each link between two hosts has a separate cable; a link within a host needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from longfat.runspec import RunSpec
from longfat.testbed.inventory import Inventory


@dataclass(frozen=True)
class Placement:
    """The host of each node, and for each link between two hosts, by its number, the lab's link that carries it."""

    hosts: dict[str, str]
    cables: dict[int, str]

    def taking_part(self) -> tuple[str, ...]:
        """The hosts that have a node, sorted."""
        return tuple(sorted(set(self.hosts.values())))

    def nodes_of(self, host: str) -> tuple[str, ...]:
        """The nodes on a host."""
        return tuple(node for node, there in self.hosts.items() if there == host)


def place(spec: RunSpec, inventory: Inventory) -> Placement | str:
    """The first placement in the order of the hosts' names, or the reason why there is none."""
    for role in ("sender", "receiver"):
        needed = sum(node.role == role for node in spec.nodes)
        there = [host.name for host in inventory.hosts if host.role == role]
        if len(there) < needed:
            return f"the run needs {needed} host(s) in the role {role}, the lab has {', '.join(there) or 'none'}"
    lacking: set[str] = set()
    for hosts in _assignments(spec, inventory, 0, {}):
        cables = _lay_cables(spec, inventory, hosts, lacking)
        if cables is not None:
            return Placement(hosts, cables)
    return f"the lab lacks a cable that the run needs: {', '.join(sorted(lacking))}"


def _assignments(spec: RunSpec, inventory: Inventory, number: int, taken: dict[str, str]) -> Iterator[dict[str, str]]:
    if number == len(spec.nodes):
        yield dict(taken)
        return
    node = spec.nodes[number]
    routers = [host for host in inventory.hosts if host.role == "router"] or inventory.hosts
    ends = (host for host in inventory.hosts if host.role == node.role and host.name not in taken.values())
    for host in routers if node.role == "router" else ends:
        yield from _assignments(spec, inventory, number + 1, taken | {node.name: host.name})


def _lay_cables(spec: RunSpec, inventory: Inventory, hosts: dict[str, str], lacking: set[str]) -> dict[int, str] | None:
    """A separate cable for each link between two hosts, or None; missing cables are added to ``lacking``."""
    cables: dict[int, str] = {}
    for number, link in enumerate(spec.links):
        one, other = hosts[link.a.node], hosts[link.b.node]
        if one != other:
            free = [cable for cable in inventory.cables(one, other) if cable not in cables.values()]
            if not free:
                lacking.add(f"{one} to {other}")
                return None
            cables[number] = free[0]
    return cables
