# SPDX-License-Identifier: Apache-2.0
"""Nodes that hold packets: network cards in front of busy hosts, and holders, which release packets together.

A card is the interface of a router in front of its host; a holder is in the middle of the last link before a receiver.
A packet that finds a holder empty starts its timer; at the end all packets leave that have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from longfat.backends.protocol import HOLDER
from longfat.spec.network import Port
from longfat.spec.runspec import Card, Egress, Interface, Link, Role
from longfat.spec.units import Duration
from longfat.study.changing import Changing

PREFIX = "card"


def holder(path: Changing, number: int) -> tuple[str, ...]:
    """Return the name of a path's holder, the one with this number; empty without aggregation."""
    times = path.aggregation, path.reverse_aggregation
    return (f"{HOLDER}{number}",) if any(time and time.value for time in times) else ()


def with_holder(link: Link, path: Changing, number: int) -> Iterator[Link]:
    """Yield a link towards the receivers, or its halves with the path's holder between them."""
    for name in holder(path, number):
        yield replace(link, b=Interface(name, _holding(path.reverse_aggregation)))
        link = replace(link, a=Interface(name, _holding(path.aggregation)))
    yield link


def card_words(port: Port) -> str:
    """Describe the card of an interface, or the time for which a holder holds packets; "" without either."""
    card = port.egress.card
    if card is None or not port.node.startswith(HOLDER):
        return card.words if card else ""
    return f"aggregation {card.moderation_us / 1000:g} ms"


def _holding(time: Duration | None) -> Egress:
    return Egress(card=Card(time.value)) if time and time.value else Egress()


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
