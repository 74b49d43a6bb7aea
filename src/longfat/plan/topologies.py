# SPDX-License-Identifier: Apache-2.0
"""Topologies of a manifest as explicit nodes and links, with the settings of every interface.

Owns the placement of rate, queue, delay, impairment and drops. A link has a rate and a delay if the backend's links can
have both. Otherwise, and if the delay varies or packets are lost, a separate node delays, because an interface has
either a rate or a delay: the limit of a delaying qdisc counts packets in flight as well as waiting packets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from longfat.plan.holders import holder, with_holder
from longfat.spec.network import MIDDLE
from longfat.spec.runspec import Change as Step
from longfat.spec.runspec import DeliberateDrop, Egress, Interface, Link, Queue, Role, Trace
from longfat.spec.units import Duration
from longfat.study.changing import Change, Changing, changed
from longfat.study.graphs import Graph, GraphLink, ParkingLot
from longfat.study.models import Drop
from longfat.study.study import HostSettings
from longfat.study.topologies import Delay, Direct, Dumbbell, delays_us

End = tuple[int, Literal["a", "b"]]
"""The number of a link, and one of its ends."""

Topology = TypeVar("Topology", bound=Changing)


def with_changes(
    topology: Topology,
    lay: Callable[[Topology], tuple[Link, ...]],
    forward: Collection[End],
    backward: Collection[End],
    end_us: int,
) -> tuple[Link, ...]:
    """Return the links of a topology with its traces, changes and outages.

    ``lay`` returns the links of a topology without them. All packets leave the ends ``forward`` towards the receivers,
    and the ends ``backward`` towards the senders. Series repeat until ``end_us``.
    """
    changes: dict[End, dict[int, Step]] = {}

    def note(end: End, at_us: int, **what: Any) -> None:
        own = changes.setdefault(end, {})
        own[at_us] = replace(own.get(at_us, Step(at_us)), **what)

    now, laid = topology, lay(topology)
    for change in (*topology.changes, *_round_trips(topology, end_us)):
        before, now = laid, changed(now, change)
        laid = lay(now)
        for end, key, value in _differences(before, laid):
            note(end, change.at.value, **{key: value})
        if change.outage:
            for end in (*forward, *backward):
                note(end, change.at.value, held=True)
                note(end, change.at.value + change.outage.value, held=False)
    traces: dict[End, Trace | None] = {}
    for ends, trace in ((forward, topology.trace), (backward, topology.reverse_trace)):
        traces |= dict.fromkeys(ends, trace.trace if trace else None)
        for row in trace.series.until(end_us) if trace and trace.series else ():
            for end in ends:
                note(end, row.at_us, held=not row.rate_bps, **({"rate_bps": row.rate_bps} if row.rate_bps else {}))

    def with_own(interface: Interface, end: End) -> Interface:
        own = tuple(change for _, change in sorted(changes.get(end, {}).items()))
        return replace(interface, egress=replace(interface.egress, changes=own, trace=traces.get(end)))

    return tuple(
        replace(link, a=with_own(link.a, (number, "a")), b=with_own(link.b, (number, "b")))
        for number, link in enumerate(lay(topology))
    )


def _round_trips(topology: Changing, end_us: int) -> Iterator[Change]:
    """Yield the changes of the round-trip time by a series; a rate is a change of one direction."""
    series = topology.trace and topology.trace.series
    for row in series.until(end_us) if series and series.has_rtt else ():
        yield Change.model_construct(at=Duration(row.at_us), rtt=Duration(row.rtt_us or 0))


def _differences(before: tuple[Link, ...], after: tuple[Link, ...]) -> Iterator[tuple[End, str, int | None]]:
    """Yield each end whose rate or delay differs, with the name of the setting and its new value."""
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        sides: tuple[tuple[Literal["a", "b"], Interface, Interface], ...] = ("a", old.a, new.a), ("b", old.b, new.b)
        for side, was, becomes in sides:
            for key in ("rate_bps", "delay_us"):
                if getattr(was.egress, key) != getattr(becomes.egress, key):
                    yield (number, side), key, getattr(becomes.egress, key)


AnyTopology = Direct | Delay | Dumbbell
Named = AnyTopology | Graph | ParkingLot

# A frame takes at least 84 bytes: 64, the minimum of IEEE 802.3, and 20 of preamble and gap.
_SMALLEST_FRAME_BITS = 84 * 8


def nodes_of(topology: Named, *, real_time: bool) -> dict[str, Role]:
    """Return the nodes with their roles: senders, routers, receivers. In real time no link has a rate and a delay."""
    if graph := _graph(topology):
        return graph_roles(graph, real_time=real_time)
    assert isinstance(topology, AnyTopology)
    delay_node = _needs_delay_node(topology, real_time=real_time)
    senders, receivers = topology.sides
    result: dict[str, Role] = dict.fromkeys(senders, "sender")
    if isinstance(topology, Dumbbell):
        result["switch"] = "router"
    if delay_node and not isinstance(topology, Direct):
        result["delay"] = "router"
    if isinstance(topology, Dumbbell) and (topology.reverse_queue or (not delay_node and len(receivers) > 1)):
        result["switch2"] = "router"
    result |= {name: "router" for number in range(len(receivers)) for name in holder(topology, number + 1)}
    return result | dict.fromkeys(receivers, "receiver")


def links_of(
    topology: Named, hosts: HostSettings, drops: tuple[Drop, ...], end_us: int, *, real_time: bool
) -> tuple[Link, ...]:
    """Return the links; ``a`` is the end nearer to the senders. In real time none has a rate and a delay.

    Series in CSV files repeat until ``end_us``.
    """
    if graph := _graph(topology):
        return graph_links(graph, hosts, end_us, real_time=real_time)
    assert isinstance(topology, AnyTopology)
    delay_node = _needs_delay_node(topology, real_time=real_time)
    lay = _with_delay_node if delay_node else _with_delays
    ways = _ways(topology, delay_node=delay_node)
    laid = with_changes(_with_own_rates(topology), lambda now: lay(now, hosts, drops), *ways, end_us)
    numbers = {name: number for number, name in enumerate(topology.sides[1], 1)}
    last = ((link, numbers.get(link.b.node)) for link in laid)
    return tuple(part for link, n in last for part in (with_holder(link, topology, n) if n else (link,)))


def with_own_queues(links: tuple[Link, ...], lengths: Mapping[str, int]) -> tuple[Link, ...]:
    """Set the local queue of each host, in packets, if the host limits the rate."""

    def own(end: Interface) -> Interface:
        if end.node not in lengths or not end.egress.rate_bps:
            return end
        return replace(end, egress=replace(end.egress, queue=Queue("pfifo", lengths[end.node])))

    return tuple(replace(link, a=own(link.a), b=own(link.b)) for link in links)


def _graph(topology: Named) -> Graph | None:
    return topology.graph if isinstance(topology, ParkingLot) else topology if isinstance(topology, Graph) else None


def _needs_delay_node(topology: AnyTopology, *, real_time: bool) -> bool:
    """Return whether the delay needs its own node: in real time, and on an impaired path."""
    return real_time or topology.is_impaired


def _with_own_rates(topology: AnyTopology) -> AnyTopology:
    """Return the topology with all rates stated, so that a change of ``rate`` affects its own port only."""
    if not isinstance(topology, Dumbbell):
        return topology
    given = {"host_rate": topology.host_rate or topology.rate, "reverse_rate": topology.reverse_rate or topology.rate}
    return topology.model_copy(update=given)


def _ways(topology: AnyTopology, *, delay_node: bool) -> tuple[tuple[End, ...], tuple[End, ...]]:
    """Return the ends through which all packets leave towards the receivers, and towards the senders."""
    senders, receivers = topology.sides
    if not isinstance(topology, Dumbbell):
        return ((0, "a"),), ((int(delay_node and isinstance(topology, Delay)), "b"),)
    middle = len(senders)
    if not delay_node:
        return ((middle, "a"),), ((middle, "b"),)
    after = 1 if topology.reverse_queue else len(receivers)
    return ((middle, "a"),), tuple((middle + 1 + number, "b") for number in range(after))


def _with_delays(topology: AnyTopology, hosts: HostSettings, drops: tuple[Drop, ...]) -> tuple[Link, ...]:
    """Return links with rate and delay; deliberate drops happen on the longest link."""
    mtu = hosts.mtu.value
    shaped = _of_host(topology, hosts)
    forward_us, reverse_us = delays_us(topology)
    planned = tuple(DeliberateDrop(drop.at.value, drop.packet) for drop in drops)
    senders, receivers = topology.sides
    if not isinstance(topology, Dumbbell):
        there = replace(shaped, delay_us=forward_us, drops=planned)
        return (Link(Interface("client1", there), Interface("server", replace(shaped, delay_us=reverse_us)), mtu),)
    inward = [Link(Interface(name, shaped), Interface("switch"), mtu) for name in senders]
    queues = _queued(topology, hosts)
    port = Interface("switch", replace(queues["bottleneck_queue"], delay_us=forward_us, drops=planned))
    if not topology.reverse_queue and len(receivers) == 1:
        (further_us,) = _further_us(topology, 1)
        port = replace(port, egress=replace(port.egress, delay_us=forward_us + further_us))
        back = Interface(receivers[0], replace(shaped, delay_us=reverse_us))
        return (*inward, Link(port, back, mtu))
    back = Interface("switch2", Egress(delay_us=reverse_us))
    if topology.reverse_queue:
        back = Interface("switch2", replace(queues["reverse_queue"], delay_us=reverse_us))
    outward = [
        Link(Interface("switch2", Egress(delay_us=further_us)), Interface(name, shaped), mtu)
        for name, further_us in zip(receivers, _further_us(topology, len(receivers)), strict=True)
    ]
    return (*inward, Link(port, back, mtu), *outward)


def _with_delay_node(topology: AnyTopology, hosts: HostSettings, drops: tuple[Drop, ...]) -> tuple[Link, ...]:
    mtu = hosts.mtu.value
    shaped = _of_host(topology, hosts)
    if isinstance(topology, Direct):
        back = _delayed(topology.rtt.value, topology)
        return (Link(Interface("client1", shaped), Interface("server", back), mtu),)
    forward_us, reverse_us = delays_us(topology)
    planned = tuple(DeliberateDrop(drop.at.value, drop.packet) for drop in drops)
    reverse = replace(_delayed(reverse_us, topology), impairment=topology.backward)
    senders, receivers = topology.sides
    outward = [
        Link(Interface("delay", _to_receiver(forward_us + further_us, topology, planned)), Interface(name, shaped), mtu)
        for name, further_us in zip(receivers, _further_us(topology, len(receivers)), strict=True)
    ]
    if isinstance(topology, Delay):
        return (Link(Interface("client1", shaped), Interface("delay", reverse), mtu), *outward)
    queues = _queued(topology, hosts)
    if topology.reverse_queue:
        port = Interface("switch2", queues["reverse_queue"])
        outward = [Link(Interface("switch2"), Interface(name, shaped), mtu) for name in receivers]
        outward.insert(0, Link(Interface("delay", _to_receiver(forward_us, topology, planned)), port, mtu))
    inward = [Link(Interface(name, shaped), Interface("switch"), mtu) for name in senders]
    port = Interface("switch", queues["bottleneck_queue"])
    return (*inward, Link(port, Interface("delay", reverse), mtu), *outward)


def _to_receiver(delay_us: int, topology: Delay | Dumbbell, drops: tuple[DeliberateDrop, ...]) -> Egress:
    return replace(_delayed(delay_us, topology, drops), impairment=topology.forward)


def _further_us(topology: Delay | Dumbbell, receivers: int) -> tuple[int, ...]:
    given = topology.further_delays if isinstance(topology, Dumbbell) else ()
    return tuple(delay.value for delay in given) or (0,) * receivers


def _queued(topology: Dumbbell, hosts: HostSettings) -> dict[str, Egress]:
    """Return rate and queue of each port of a switch, by the queue's key."""
    queues = topology.queues(hosts.mtu)
    found = {str(key): Egress(place.rate.value, queue=queue.to_run(place)) for (key,), queue, place in queues}
    if topology.policer:
        found["bottleneck_queue"] = replace(found["bottleneck_queue"], policer=topology.policer.to_run)
    if topology.pause:
        found["bottleneck_queue"] = replace(found["bottleneck_queue"], pause=topology.pause.to_run)
    return found


def _of_host(topology: AnyTopology, hosts: HostSettings) -> Egress:
    """Return the egress of a host, on its side of the delay."""
    rate = (isinstance(topology, Dumbbell) and topology.host_rate) or topology.rate
    return Egress() if rate == "unlimited" else Egress(rate.value, queue=Queue("pfifo", hosts.local_queue))


def _delayed(delay_us: int, topology: AnyTopology, drops: tuple[DeliberateDrop, ...] = ()) -> Egress:
    """Return an egress with only a delay and a limit of twice the smallest frames that can be in flight."""
    under_way = delay_us * topology.rate.value // 1_000_000 // _SMALLEST_FRAME_BITS
    return Egress(queue=Queue("pfifo", max(1000, 2 * under_way)), delay_us=delay_us, drops=drops)


def graph_roles(graph: Graph, *, real_time: bool) -> dict[str, Role]:
    """Return the nodes of a graph with their roles: senders, routers, receivers.

    In real time, and if a link has jitter or losses, a router ``delayN`` is in the middle of link N.
    """
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
