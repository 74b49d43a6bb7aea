# SPDX-License-Identifier: Apache-2.0
"""The network of a RunSpec: interfaces with names and addresses, routes, steps of wires, lengths of frames.

Pure functions, standard library only: the planning host, the hosts of a lab and the guest read the same module.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain, groupby, takewhile

from longfat.spec.runspec import CapturePoint, Change, Egress, Flow, Ping, RunSpec, Sent, Trace

ETHERNET_HEADER_BYTES = 14  # IEEE 802.3 without its frame check sequence, which framing_bytes counts
IP_AND_TCP_HEADER_BYTES = 40  # IPv4 20 (RFC 791) + TCP 20 (RFC 9293), no options
TIMESTAMP_OPTION_BYTES = 12  # RFC 7323, padded
PREFIX_BITS = 30  # a link has two addresses
SMALLEST_RECEIVE_BUFFER_BYTES, SMALLEST_SEND_BUFFER_BYTES = 2304, 4608  # SOCK_MIN_* in include/net/sock.h
MIDDLE = "delay"  # with a number: the node in the middle of a link of a graph
TRACED_BITS = 8 * (1500 + 14 + 24)  # length of a packet in a trace, as a rate counts it, with an MTU of 1500


@dataclass(frozen=True)
class Port:
    """An interface of a node, named ``<node>-eth<k>`` for the node's k-th link in the RunSpec.

    ``address`` is IPv4, in the subnet of the link, whose number in the RunSpec is ``link``. ``peer`` is the node at the
    other end.
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
        """Subnet of the link."""
        return f"10.0.{self.link}.0/{PREFIX_BITS}"

    @property
    def frame_bytes(self) -> int:
        """Length of a full packet, as the port's rate counts it."""
        return frame_bytes(self.mtu_bytes, self.egress)


@dataclass(frozen=True)
class Step:
    """State of a wire from ``at_us`` on: rate in bit/s (0: takes no time), delay, ``held`` if no bit leaves it."""

    at_us: int
    rate_bps: int
    delay_ns: int
    held: bool = False


@dataclass(frozen=True)
class Route:
    """A route to ``subnet`` through the neighbour ``via``."""

    subnet: str
    via: str


@dataclass(frozen=True)
class Topology:
    """Ports and static routes of every node, in the order of the RunSpec."""

    ports: dict[str, tuple[Port, ...]]
    routes: dict[str, tuple[Route, ...]]

    def address(self, node: str) -> str:
        """Return the address of the node's first interface, the destination of its flows."""
        return self.ports[node][0].address

    def far_end(self, port: Port) -> Port:
        """Return the port at the other end of the link."""
        return next(other for other in self.ports[port.peer] if other.link == port.link)

    def all_ports(self) -> list[Port]:
        """Return every port, grouped by node."""
        return [port for ports in self.ports.values() for port in ports]


def frame_bytes(mtu_bytes: int, egress: Egress) -> int:
    """Return the length of a full packet with Ethernet header and framing, as the rate of ``egress`` counts it."""
    return mtu_bytes + ETHERNET_HEADER_BYTES + egress.framing_bytes


def mss_bytes(spec: RunSpec, flow: Flow) -> int:
    """Return the payload of a full segment of the flow: the smallest MTU of its route without headers and options."""
    options = TIMESTAMP_OPTION_BYTES if has_timestamps(spec, flow.sender) else 0
    smallest = min(port.mtu_bytes for port in route(spec, flow.sender, flow.receiver))
    return smallest - IP_AND_TCP_HEADER_BYTES - options


def has_timestamps(spec: RunSpec, host: str) -> bool:
    """Return whether the packets of a host have timestamps (RFC 7323)."""
    (sysctls,) = (node.sysctls for node in spec.nodes if node.name == host)
    return sysctls.get("net.ipv4.tcp_timestamps") != "0"


def smallest_mtu_bytes(spec: RunSpec) -> int:
    """Return the smallest MTU of all links."""
    return min(link.mtu_bytes for link in spec.links)


def ports(spec: RunSpec) -> tuple[Port, ...]:
    """Return all interfaces in the order of the links, end ``a`` before end ``b``."""
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
    """Return the egress interfaces on the path with the fewest links; empty without a path."""
    return _ways_from(start, ports(spec)).get(end, ())


def bottleneck(spec: RunSpec, sender: str, receiver: str) -> Port:
    """Return the slowest interface on a path, the first of several, and of a router if a router is shaped."""
    way, routers = route(spec, sender, receiver), {node.name for node in spec.nodes if node.role == "router"}
    shaped = [port for port in way if port.egress.rate_bps]
    chosen = [port for port in shaped if port.node in routers] or shaped or way
    return min(chosen, key=lambda port: port.egress.rate_bps or 0)


def capture_port(spec: RunSpec, one: Sent, place: CapturePoint) -> Port:
    """Return the interface for the capture of a traffic, in both directions.

    Packets that leave the bottleneck have passed its queue: a dropped packet is only in the sender's capture.
    """
    if place == "bottleneck":
        return bottleneck(spec, one.sender, one.receiver)
    way = route(spec, one.sender, one.receiver)
    return way[0] if place == "sender" else lay_out(spec).far_end(way[-1])


def buffers_bytes(spec: RunSpec, flow: Flow) -> tuple[int | None, int | None]:
    """Return the socket buffers of a flow's sender and receiver; None is auto-tuning.

    The kernel limits the requested size to the host's maximum, doubles it (socket(7)), and grants a minimum.
    """
    hosts = {node.name: node.sysctls for node in spec.nodes}

    def made(asked: int | None, host: str, limit: str, smallest: int) -> int | None:
        most = hosts[host].get(f"net.core.{limit}")
        return asked and max(smallest, 2 * min(asked, int(most) if most else asked))

    sending = flow.send_window_bytes or flow.window_bytes
    return (
        made(sending, flow.sender, "wmem_max", SMALLEST_SEND_BUFFER_BYTES),
        made(flow.window_bytes, flow.receiver, "rmem_max", SMALLEST_RECEIVE_BUFFER_BYTES),
    )


def base_rtt_us(spec: RunSpec, sent: Flow | Ping) -> int:
    """Return the round-trip delay of a flow or ping in microseconds, including distances."""
    there, back = route(spec, sent.sender, sent.receiver), route(spec, sent.receiver, sent.sender)
    return sum(port.egress.wire_delay_ns for port in (*there, *back)) // 1000


def longest_rtt_us(spec: RunSpec) -> int:
    """Return the longest base RTT of all traffic in microseconds, including changes during the run."""
    delay_ns = {
        port.name: max((step.delay_ns for step in steps(port.egress, spec.end_us)), default=port.egress.wire_delay_ns)
        for port in ports(spec)
    }
    ends = {(one.sender, one.receiver) for one in spec.sent} | {(one.sender, one.receiver) for one in spec.pings}
    ways = ((*route(spec, sender, receiver), *route(spec, receiver, sender)) for sender, receiver in ends)
    return max(sum(delay_ns[port.name] for port in way) for way in ways) // 1000


def impairment_seed(spec: RunSpec, port: Port) -> int:
    """Return the seed (64 bits) of random loss and jitter at an interface."""
    return _seed(f"{spec.seed} impairment {port.name}")


def processing_seed(spec: RunSpec, port: Port) -> int:
    """Return the seed (64 bits) of the processing times at an interface."""
    return _seed(f"{spec.seed} processing {port.name}")


def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def steps(egress: Egress, end_us: int) -> tuple[Step, ...]:
    """Return the steps of an interface's wire from 0 to before ``end_us``; empty if it never changes."""
    return tuple(takewhile(lambda step: step.at_us < end_us, each_step(egress)))


def each_step(egress: Egress) -> Iterator[Step]:
    """Yield the steps of an interface's wire from 0 on, endlessly for a trace."""
    if not egress.changes and not egress.trace:
        return
    traced: Iterable[_Event] = _traced(egress.trace) if egress.trace else ()
    changed: Iterable[_Event] = ((change.at_us, None, change) for change in egress.changes)
    begin: _Event = (0, None, None)
    now, held, paused = Step(0, egress.wire_bps or 0, egress.wire_delay_ns), False, False
    last: Step | None = None
    for at_us, together in groupby(chain((begin,), merge(traced, changed, key=_time_of)), key=_time_of):
        rate_bps, delay_ns = now.rate_bps, now.delay_ns
        for _, packets_bps, change in together:
            if packets_bps is not None:
                paused = not packets_bps
                rate_bps = packets_bps or rate_bps
            if change:
                rate_bps = rate_bps if change.rate_bps is None else egress.by_clock(change.rate_bps)
                delay_ns = delay_ns if change.delay_us is None else 1000 * change.delay_us + egress.distance_ns
                held = held if change.held is None else change.held
        now = Step(at_us, rate_bps, delay_ns, held or paused)
        if last is None or replace(now, at_us=last.at_us) != last:
            last = now
            yield now


_Event = tuple[int, int | None, Change | None]
"""A time in microseconds, the new rate of a trace in bit/s, a change."""


def _time_of(event: _Event) -> int:
    return event[0]


def _traced(trace: Trace) -> Iterator[_Event]:
    """Yield the changes of a trace's rate: one for a constant trace, else endlessly."""
    at_us, words = 0, tuple(trace.milliseconds())
    while at_us == 0 or len({count for count, _ in words}) > 1:
        for count, times in words:
            yield at_us, 1000 * count * TRACED_BITS, None
            at_us += 1000 * times


def capacity_bits(found: Sequence[Step], until_us: int, since_us: int = 0) -> int:
    """Return the bits that can leave a wire in a time, rounded down."""
    ends = [*(step.at_us for step in found[1:]), until_us]
    spans = (
        (max(0, min(end, until_us) - max(step.at_us, since_us)), step) for step, end in zip(found, ends, strict=True)
    )
    return sum(span * step.rate_bps for span, step in spans if not step.held) // 1_000_000


def course(egress: Egress, end_us: int) -> tuple[Step, ...]:
    """Return the steps of a wire, one for a constant wire."""
    return steps(egress, end_us) or (Step(0, egress.wire_bps or 0, egress.wire_delay_ns),)


def lay_out(spec: RunSpec) -> Topology:
    """Return every node's ports, and its routes to every link by the fewest hops."""
    every = ports(spec)
    own = {node.name: tuple(port for port in every if port.node == node.name) for node in spec.nodes}
    return Topology(own, {name: _routes_from(name, every, own) for name in own})


def _ways_from(start: str, every: Iterable[Port]) -> dict[str, tuple[Port, ...]]:
    """Return the egress ports on the path to each reachable node, the nearest node first.

    The search is breadth-first; of paths with equally many links it takes the one by the first link.
    """
    leaving: dict[str, list[Port]] = {}
    for port in every:
        leaving.setdefault(port.node, []).append(port)
    ways: dict[str, tuple[Port, ...]] = {start: ()}
    reached = deque([start])
    while reached:
        node = reached.popleft()
        for first in leaving.get(node, ()):
            way, port = ways[node], first
            while port.peer not in ways:
                way = (*way, port)
                ways[port.peer] = way
                if not _in_the_middle(port.peer):
                    reached.append(port.peer)
                    break
                port = next(other for other in leaving[port.peer] if other.link != port.link)
    return ways


def _in_the_middle(node: str) -> bool:
    """Return whether a node is in the middle of a link of a graph, whose halves count as one link."""
    return node.startswith(MIDDLE) and node != MIDDLE


def _routes_from(start: str, every: Iterable[Port], own: dict[str, tuple[Port, ...]]) -> tuple[Route, ...]:
    """Return the first hop to each link that is not attached to ``start``."""
    known = {port.link for port in own[start]}
    routes = []
    for node, way in _ways_from(start, every).items():
        for port in own[node]:
            if port.link not in known:
                known.add(port.link)
                routes.append(Route(port.subnet, way[0].peer_address))
    return tuple(routes)
