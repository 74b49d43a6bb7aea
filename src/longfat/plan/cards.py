# SPDX-License-Identifier: Apache-2.0
"""Network cards and busy hosts as nodes: the card is the interface of a router in front of its host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from longfat.spec.runspec import Card, Egress, Interface, Link, Role

PREFIX = "card"


def with_cards(
    roles: Mapping[str, Role], links: tuple[Link, ...], cards: Mapping[str, Card]
) -> tuple[dict[str, Role], tuple[Link, ...]]:
    """Insert a node ``cardN`` before each host with a card; N is the number of the host.

    The card only affects packets that arrive at the host.
    """
    hosts = [name for name, role in roles.items() if role != "router"]
    names = {host: f"{PREFIX}{number}" for number, host in enumerate(hosts, 1) if host in cards}
    before: dict[str, Role] = {}
    for name, role in roles.items():
        if name not in cards:
            before[name] = role
        elif role == "sender":
            before |= {name: role, names[name]: "router"}
        else:
            before |= {names[name]: "router", name: role}
    arriving = {host: Egress(card=card) for host, card in cards.items()}
    return before, tuple(part for link in links for part in _parts(link, names, arriving))


def _parts(link: Link, names: Mapping[str, str], arriving: Mapping[str, Egress]) -> Iterator[Link]:
    a, b = link.a, link.b
    if name := names.get(a.node):
        yield Link(a, Interface(name, arriving[a.node]), link.mtu_bytes)
        a = Interface(name)
    if name := names.get(b.node):
        yield Link(a, Interface(name), link.mtu_bytes)
        a, b = Interface(name, arriving[b.node]), b
    yield replace(link, a=a, b=b)
