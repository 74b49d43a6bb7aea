# SPDX-License-Identifier: Apache-2.0
"""Times of hosts as nodes: a router next to a host, whose interface towards the host or away from it takes the time.

``card1``, ... hold what hosts receive, ``proc1``, ... what they send.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from longfat.runspec import Card, Egress, Impairment, Interface, Link, Node, Role, RunSpec

CARD, PROCESSING = "card", "proc"
ROUTER_SYSCTLS = {"net.ipv4.ip_forward": "1"}

Network = tuple[dict[str, Role], tuple[Link, ...]]


def with_cards(roles: Mapping[str, Role], links: tuple[Link, ...], card: Card) -> Network:
    """Return the nodes and links with a card before each host, in the hosts' order.

    A host keeps what it does with the packets that it sends, and what it is sent keeps coming from where it came.
    """
    hosts = [name for name, role in roles.items() if role != "router"]
    return _with_nodes(roles, links, hosts, CARD, towards=Egress(card=card))


def with_processing(spec: RunSpec, longest_us: int) -> RunSpec:
    """Return the run with a node behind each host that sends, which delays its packets; the same run for 0.

    Delays are uniform from 0 to ``longest_us``, an even number of microseconds, and keep the order (Floyd and Jacobson,
    "On Traffic Phase Effects in Packet-Switched Gateways", 1992; ``overhead_`` of ns-2).
    """
    if not longest_us:
        return spec
    sending = {one.sender for one in spec.sent}
    half_us = longest_us // 2
    away = Egress(delay_us=half_us, impairment=Impairment(jitter_us=half_us, in_order=True))
    roles: dict[str, Role] = {node.name: node.role for node in spec.nodes}
    named, links = _with_nodes(roles, spec.links, [name for name in roles if name in sending], PROCESSING, away=away)
    nodes = {node.name: node for node in spec.nodes}
    every = tuple(nodes.get(name) or Node(name, role, ROUTER_SYSCTLS) for name, role in named.items())
    return replace(spec, nodes=every, links=links)


def _with_nodes(
    roles: Mapping[str, Role],
    links: tuple[Link, ...],
    hosts: Collection[str],
    prefix: str,
    *,
    towards: Egress | None = None,
    away: Egress | None = None,
) -> Network:
    names = {host: f"{prefix}{number}" for number, host in enumerate(hosts, 1)}
    nodes: dict[str, Role] = {}
    for name, role in roles.items():
        new: dict[str, Role] = {names[name]: "router"} if name in names else {}
        own: dict[str, Role] = {name: role}
        nodes |= new | own if role == "receiver" else own | new
    ends = (towards or Egress(), away or Egress())
    return nodes, tuple(part for link in links for part in _parts(link, names, *ends))


def _parts(link: Link, names: Mapping[str, str], towards: Egress, away: Egress) -> Iterator[Link]:
    a, b = link.a, link.b
    if name := names.get(a.node):
        yield Link(a, Interface(name, towards), link.mtu_bytes)
        a = Interface(name, away)
    if name := names.get(b.node):
        yield Link(a, Interface(name, away), link.mtu_bytes)
        a, b = Interface(name, towards), b
    yield replace(link, a=a, b=b)
