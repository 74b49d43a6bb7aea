# SPDX-License-Identifier: Apache-2.0
"""Nodes that hold packets back and release them together: in the middle of the last link before each receiver.

A packet that finds a holder empty starts its timer; at the end all packets leave that have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from longfat.spec.network import Port
from longfat.spec.runspec import Card, Egress, Interface, Link
from longfat.spec.units import Duration
from longfat.study.catalog.nodes import HOLDER
from longfat.study.changing import Changing


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
