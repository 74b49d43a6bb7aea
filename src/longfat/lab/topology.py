# SPDX-License-Identifier: Apache-2.0
"""Names, addresses and routes that follow from the nodes and links of a RunSpec. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from longfat.runspec import Egress, RunSpec


@dataclass(frozen=True)
class Port:
    """One interface of a node: its name, IPv4 address (in a /30 of its own link), MTU and peer."""

    node: str
    name: str
    address: str
    mtu_bytes: int
    egress: Egress
    peer_node: str
    peer_address: str
    link: int


@dataclass(frozen=True)
class Route:
    """Reach ``subnet`` through the neighbour ``via``."""

    subnet: str
    via: str


@dataclass(frozen=True)
class Topology:
    """Every node's ports and static routes, in RunSpec order."""

    ports: dict[str, tuple[Port, ...]]
    routes: dict[str, tuple[Route, ...]]

    def address(self, node: str) -> str:
        """Address of the node's first interface: where its flows are sent to."""
        return self.ports[node][0].address

    def all_ports(self) -> list[Port]:
        """Every port, grouped by node."""
        return [port for ports in self.ports.values() for port in ports]


def lay_out(spec: RunSpec) -> Topology:
    """Name and address each interface and route each node to every link by the fewest hops."""
    ports: dict[str, list[Port]] = {node.name: [] for node in spec.nodes}
    for number, link in enumerate(spec.links):
        ends = ((link.a, link.b, 1, 2), (link.b, link.a, 2, 1))
        for own, peer, own_host, peer_host in ends:
            ports[own.node].append(
                Port(
                    node=own.node,
                    name=f"{own.node}-eth{len(ports[own.node])}",
                    address=f"10.0.{number}.{own_host}",
                    mtu_bytes=link.mtu_bytes,
                    egress=own.egress,
                    peer_node=peer.node,
                    peer_address=f"10.0.{number}.{peer_host}",
                    link=number,
                )
            )
    routes = {name: _routes_from(name, ports) for name in ports}
    return Topology({name: tuple(own) for name, own in ports.items()}, routes)


def _routes_from(start: str, ports: dict[str, list[Port]]) -> tuple[Route, ...]:
    """Breadth-first search: the first hop towards each link that is not attached to ``start``."""
    seen_links = {port.link for port in ports[start]}
    routes = []
    waiting = deque((port.peer_node, port.peer_address) for port in ports[start])
    visited = {start}
    while waiting:
        node, first_hop = waiting.popleft()
        if node in visited:
            continue
        visited.add(node)
        for port in ports[node]:
            if port.link not in seen_links:
                seen_links.add(port.link)
                routes.append(Route(f"10.0.{port.link}.0/30", first_hop))
            waiting.append((port.peer_node, first_hop))
    return tuple(routes)
