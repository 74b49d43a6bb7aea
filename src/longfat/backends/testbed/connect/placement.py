# SPDX-License-Identifier: Apache-2.0
"""The placement of a run's nodes on hosts, and of its links on cables. Pure.

Each sender and each receiver has its own host. Routers share the hosts of their role, or, in a lab without such hosts,
the end hosts. Each link between two hosts has its own cable; a link within a host needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from longfat.backends.testbed.inventory import Inventory
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError


@dataclass(frozen=True)
class Placement:
    """The host of each node, and the lab's link for each link between two hosts, by its number."""

    hosts: dict[str, str]
    cables: dict[int, str]

    def taking_part(self) -> tuple[str, ...]:
        """Return the hosts with a node, sorted."""
        return tuple(sorted(set(self.hosts.values())))

    def nodes_of(self, host: str) -> tuple[str, ...]:
        """Return the nodes on a host."""
        return tuple(node for node, there in self.hosts.items() if there == host)


def place(spec: RunSpec, inventory: Inventory) -> Placement:
    """Return the first placement in the order of the hosts' names. Raises RigError if the lab lacks hosts or cables."""
    for role in ("sender", "receiver"):
        needed = sum(node.role == role for node in spec.nodes)
        there = [host.name for host in inventory.hosts if host.role == role]
        if len(there) < needed:
            raise RigError(f"the run needs {needed} {role} host(s), the lab has {', '.join(there) or 'none'}")
    lacking: set[str] = set()
    for hosts in _assignments(spec, inventory, 0, {}):
        cables = _lay_cables(spec, inventory, hosts, lacking)
        if cables is not None:
            return Placement(hosts, cables)
    raise RigError(f"the lab lacks a cable for the run: {', '.join(sorted(lacking))}")


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
    """Return a cable for each link between two hosts, or None after adding the missing cables to ``lacking``."""
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
