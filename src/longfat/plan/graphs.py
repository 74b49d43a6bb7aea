# SPDX-License-Identifier: Apache-2.0
"""Conversion of a manifest's graph to explicit nodes and links.

In real time, and if a link has jitter or losses, a router ``delayN`` is in the middle of link N, because the link
cannot have a rate and a delay at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from longfat.plan.courses import with_changes
from longfat.plan.holders import holder, with_holder
from longfat.spec.network import MIDDLE
from longfat.spec.runspec import Egress, Interface, Link, Queue, Role
from longfat.study.graphs import Graph, GraphLink
from longfat.study.study import HostSettings


def graph_roles(graph: Graph, *, real_time: bool) -> dict[str, Role]:
    """Return the nodes with their roles: senders, routers, receivers."""
    delaying = [_delaying(number) for number, link in enumerate(graph.links) if _needs_node(link, real_time=real_time)]
    delaying += [name for number, link in enumerate(graph.links, 1) for name in holder(link, number)]
    result: dict[str, Role] = dict.fromkeys(graph.senders, "sender")
    result |= dict.fromkeys([*graph.routers, *delaying], "router")
    return result | dict.fromkeys(graph.receivers, "receiver")


def graph_links(graph: Graph, hosts: HostSettings, end_us: int, *, real_time: bool) -> tuple[Link, ...]:
    """Return the links in the manifest's order; ``a`` is the end nearer to the first node of each."""

    queues = {path: queue.to_run(place) for path, queue, place in graph.queues(hosts.mtu)}

    def lay(number: int, link: GraphLink) -> tuple[Link, ...]:
        local = Queue("pfifo", hosts.local_queue)
        both = (queues.get(("links", number, key), local) for key in ("queue", "reverse_queue"))
        a, b = (
            Interface(node, Egress(rate.value, queue=queue) if rate else Egress())
            for node, rate, queue in zip(link.between, link.rates, both, strict=True)
        )
        return tuple(_laid(number, link, a, b, hosts.mtu.value, real_time=real_time))

    found: list[Link] = []
    for number, link in enumerate(graph.links):
        parts = 2 if _needs_node(link, real_time=real_time) else 1
        *before, last = with_changes(link, partial(lay, number), [(0, "a")], [(parts - 1, "b")], end_us)
        found += [*before, *with_holder(last, link, number + 1)]
    return tuple(found)


def _needs_node(link: GraphLink, *, real_time: bool) -> bool:
    return link.is_impaired or (real_time and bool(link.rtt.value))


def _delaying(number: int) -> str:
    return f"{MIDDLE}{number + 1}"


def _laid(
    number: int, link: GraphLink, a: Interface, b: Interface, mtu_bytes: int, *, real_time: bool
) -> Iterator[Link]:
    half_us = link.rtt.value // 2
    if link.policer:
        a = replace(a, egress=replace(a.egress, policer=link.policer.to_run))
    if not _needs_node(link, real_time=real_time):
        a, b = (replace(end, egress=replace(end.egress, delay_us=half_us)) for end in (a, b))
        yield Link(a, b, mtu_bytes)
        return
    middle = _delaying(number)
    yield Link(a, Interface(middle, Egress(delay_us=half_us, impairment=link.backward)), mtu_bytes)
    yield Link(Interface(middle, Egress(delay_us=half_us, impairment=link.forward)), b, mtu_bytes)
