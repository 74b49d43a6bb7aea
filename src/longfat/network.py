# SPDX-License-Identifier: Apache-2.0
"""The network of a RunSpec: its interfaces with names and addresses, the routes between nodes, lengths of frames.

Pure functions of the RunSpec, standard library only: read on the planning host, on the hosts of a lab and inside the
guest. Must not know what was measured.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from longfat.runspec import CapturePoint, Egress, Flow, RunSpec, Sent, Trace

ETHERNET_HEADER_BYTES = 14  # IEEE 802.3 without its frame check sequence, which framing_bytes counts
IP_AND_TCP_HEADER_BYTES = 40  # IPv4 20 (RFC 791) + TCP 20 (RFC 9293), no options
TIMESTAMP_OPTION_BYTES = 12  # RFC 7323, padded
PREFIX_BITS = 30  # a link has two addresses
TRACED_BITS = 8 * (1500 + 14 + 24)  # of a packet of a trace, as a rate counts it: its MTU is 1500, and it is framed


@dataclass(frozen=True)
class Port:
    """One interface of a node. ``name`` is ``<node>-eth<k>``, k counting the node's links in the order of the RunSpec.

    ``address`` is IPv4, in a subnet that ``link`` (its place in the RunSpec) has for itself. ``peer`` is the node at
    the other end.
    """

    node: str
    name: str
    address: str
    mtu_bytes: int
    egress: Egress
    peer: str
    peer_address: str
    link: int

    @property
    def subnet(self) -> str:
        """The subnet of the link."""
        return f"10.0.{self.link}.0/{PREFIX_BITS}"

    @property
    def frame_bytes(self) -> int:
        """Length of a full packet as the port's rate counts it."""
        return frame_bytes(self.mtu_bytes, self.egress)


@dataclass(frozen=True)
class Step:
    """What a wire is from ``at_us`` on: rate in bit/s (0: takes no time), delay, whether no bit leaves it."""

    at_us: int
    rate_bps: int
    delay_us: int
    held: bool = False


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

    def far_end(self, port: Port) -> Port:
        """The port at the other end of the link."""
        return next(other for other in self.ports[port.peer] if other.link == port.link)

    def all_ports(self) -> list[Port]:
        """Every port, grouped by node."""
        return [port for ports in self.ports.values() for port in ports]


def frame_bytes(mtu_bytes: int, egress: Egress) -> int:
    """Length of a full packet as the rate of ``egress`` counts it: with Ethernet's header and its framing."""
    return mtu_bytes + ETHERNET_HEADER_BYTES + egress.framing_bytes


def mss_bytes(spec: RunSpec, flow: Flow) -> int:
    """Payload of a full segment of the flow: the smallest MTU of its route, less headers and timestamps."""
    (sender,) = (node for node in spec.nodes if node.name == flow.sender)
    options = 0 if sender.sysctls.get("net.ipv4.tcp_timestamps") == "0" else TIMESTAMP_OPTION_BYTES
    smallest = min(port.mtu_bytes for port in route(spec, flow.sender, flow.receiver))
    return smallest - IP_AND_TCP_HEADER_BYTES - options


def smallest_mtu_bytes(spec: RunSpec) -> int:
    """The smallest MTU of all links."""
    return min(link.mtu_bytes for link in spec.links)


def ports(spec: RunSpec) -> tuple[Port, ...]:
    """All interfaces in the order of the links, end ``a`` before end ``b``."""
    count: dict[str, int] = {}
    found = []
    for number, link in enumerate(spec.links):
        for near, far, own_host, peer_host in ((link.a, link.b, 1, 2), (link.b, link.a, 2, 1)):
            k = count.get(near.node, 0)
            count[near.node] = k + 1
            found.append(
                Port(
                    node=near.node,
                    name=f"{near.node}-eth{k}",
                    address=f"10.0.{number}.{own_host}",
                    mtu_bytes=link.mtu_bytes,
                    egress=near.egress,
                    peer=far.node,
                    peer_address=f"10.0.{number}.{peer_host}",
                    link=number,
                )
            )
    return tuple(found)


def route(spec: RunSpec, start: str, end: str) -> tuple[Port, ...]:
    """The interfaces left on the way with the fewest links; empty when there is no way."""
    return _ways_from(start, ports(spec)).get(end, ())


def bottleneck(spec: RunSpec, sender: str, receiver: str) -> Port:
    """Return the slowest interface on the way from one host to another: of a router if one is shaped, the first one."""
    way, routers = route(spec, sender, receiver), {node.name for node in spec.nodes if node.role == "router"}
    shaped = [port for port in way if port.egress.rate_bps]
    chosen = [port for port in shaped if port.node in routers] or shaped or way
    return min(chosen, key=lambda port: port.egress.rate_bps or 0)


def capture_port(spec: RunSpec, one: Sent, place: CapturePoint) -> Port:
    """Return the interface at which a traffic is captured; it sees both directions.

    What leaves the bottleneck has passed its queue: a packet that the queue drops is in the sender's capture alone.
    """
    if place == "bottleneck":
        return bottleneck(spec, one.sender, one.receiver)
    way = route(spec, one.sender, one.receiver)
    return way[0] if place == "sender" else lay_out(spec).far_end(way[-1])


def base_rtt_us(spec: RunSpec, flow: Flow) -> int:
    """Sum of the declared delays from the flow's sender to its receiver and back, in microseconds."""
    there, back = route(spec, flow.sender, flow.receiver), route(spec, flow.receiver, flow.sender)
    return sum(port.egress.delay_us for port in (*there, *back))


def longest_rtt_us(spec: RunSpec) -> int:
    """The longest base RTT of all traffic, in microseconds, whatever changes while the run lasts."""
    delay_us = {
        port.name: max((step.delay_us for step in steps(port.egress, spec.end_us)), default=port.egress.delay_us)
        for port in ports(spec)
    }
    ends = {(one.sender, one.receiver) for one in spec.sent}
    ways = ((*route(spec, sender, receiver), *route(spec, receiver, sender)) for sender, receiver in ends)
    return max(sum(delay_us[port.name] for port in way) for way in ways)


def impairment_seed(spec: RunSpec, port: Port) -> int:
    """The seed, 64 bits, of what is drawn for the packets that leave an interface."""
    return int.from_bytes(hashlib.sha256(f"{spec.seed} impairment {port.name}".encode()).digest()[:8], "big")


def steps(egress: Egress, end_us: int) -> tuple[Step, ...]:
    """What the wire of an interface is, and when, from 0 to before ``end_us``; empty for one that never changes."""
    if not egress.changes and not egress.trace:
        return ()
    traced = {} if egress.trace is None else dict(_traced(egress.trace, end_us))
    changed = {change.at_us: change for change in egress.changes if change.at_us < end_us}
    now, held, paused = Step(0, egress.rate_bps or 0, egress.delay_us), False, False
    found: list[Step] = []
    for at_us in sorted({0, *traced, *changed}):
        rate_bps, delay_us = now.rate_bps, now.delay_us
        if at_us in traced:
            paused = not traced[at_us]
            rate_bps = traced[at_us] or rate_bps
        if change := changed.get(at_us):
            rate_bps = rate_bps if change.rate_bps is None else change.rate_bps
            delay_us = delay_us if change.delay_us is None else change.delay_us
            held = held if change.held is None else change.held
        now = Step(at_us, rate_bps, delay_us, held or paused)
        if not found or replace(now, at_us=found[-1].at_us) != found[-1]:
            found.append(now)
    return tuple(found)


def _traced(trace: Trace, end_us: int) -> Iterator[tuple[int, int]]:
    """When the rate of a trace changes, in microseconds, and what it is then, in bit/s."""
    at_us = 0
    while True:
        for count, times in trace.milliseconds():
            if at_us >= end_us:
                return
            yield at_us, 1000 * count * TRACED_BITS
            at_us += 1000 * times


def capacity_bits(found: Sequence[Step], until_us: int, since_us: int = 0) -> int:
    """Bits that could leave a wire of these steps in a time, cut to whole ones."""
    ends = [*(step.at_us for step in found[1:]), until_us]
    spans = (
        (max(0, min(end, until_us) - max(step.at_us, since_us)), step) for step, end in zip(found, ends, strict=True)
    )
    return sum(span * step.rate_bps for span, step in spans if not step.held) // 1_000_000


def lay_out(spec: RunSpec) -> Topology:
    """Every node's ports, and its routes to every link by the fewest hops."""
    every = ports(spec)
    own = {node.name: tuple(port for port in every if port.node == node.name) for node in spec.nodes}
    return Topology(own, {name: _routes_from(name, every, own) for name in own})


def _ways_from(start: str, every: Iterable[Port]) -> dict[str, tuple[Port, ...]]:
    """Breadth-first search: the ports left on the way to each node that can be reached, the nearest node first."""
    leaving: dict[str, list[Port]] = {}
    for port in every:
        leaving.setdefault(port.node, []).append(port)
    ways: dict[str, tuple[Port, ...]] = {start: ()}
    reached = deque([start])
    while reached:
        node = reached.popleft()
        for port in leaving.get(node, ()):
            if port.peer not in ways:
                ways[port.peer] = (*ways[node], port)
                reached.append(port.peer)
    return ways


def _routes_from(start: str, every: Iterable[Port], own: dict[str, tuple[Port, ...]]) -> tuple[Route, ...]:
    """The first hop towards each link that is not attached to ``start``."""
    known = {port.link for port in own[start]}
    routes = []
    for node, way in _ways_from(start, every).items():
        for port in own[node]:
            if port.link not in known:
                known.add(port.link)
                routes.append(Route(port.subnet, way[0].peer_address))
    return tuple(routes)
