# SPDX-License-Identifier: Apache-2.0
"""Networks of any form: nodes and links by name, and the parking lot. Owns their keys and their checks."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from longfat.spec.network import ETHERNET_HEADER_BYTES
from longfat.spec.runspec import Policer as RunPolicer
from longfat.spec.units import Duration, Rate, Size
from longfat.study.catalog.offloads import LONGEST_SEGMENT_BYTES
from longfat.study.impairments import Impaired, impairment_findings
from longfat.study.queues import AnyQueue
from longfat.study.queues.fifo import Pfifo
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import Place
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path, unknown

Sides = tuple[tuple[str, ...], tuple[str, ...]]

# Names of interfaces, the node's with "-eth" and a number, have 15 letters at most (IFNAMSIZ in linux/if.h).
_HOST = re.compile(r"(?!delay|card)[a-z][a-z0-9]{0,7}")
HostName = Annotated[
    str, f.matching(_HOST, "a name of a node; allowed: a letter, then up to 7 of a-z and 0-9; not delay*, card*")
]
MOST_LINKS = 250  # the number of a link is a byte of its subnet and hardware addresses

HostRate = Annotated[
    Annotated[Literal["unlimited"], Tag("<word>")] | Annotated[f.LinkRate, Tag("<rate>")],
    Discriminator(lambda given: "<word>" if given == "unlimited" else "<rate>"),
]

_QUEUE = Pfifo(kind="pfifo", limit=100)


class Policer(f.Closed):
    """A token bucket in front of a queue: a packet that finds too few tokens is dropped."""

    examples: ClassVar[tuple[str, ...]] = ("{rate: 10 Mbit/s, burst: 30 kB}",)

    rate: f.LinkRate = Field(description="rate at which it fills, of frames without preamble and gap")
    burst: Annotated[Size, f.Within("1 B", "1 GiB")] = Field(description="size of the bucket: at least a full frame")

    @property
    def to_run(self) -> RunPolicer:
        """The policer of a run."""
        return RunPolicer(self.rate.value, self.burst.value)

    def findings(self, mtu: Size, *, segmented: bool = False) -> Iterator[Finding]:
        """Yield values that the kernel cannot represent, and a bucket smaller than a frame; paths begin at the policer.

        If ``segmented``, hosts send segments of 64 KiB, which reach the policer in one piece.
        """
        policer, frame = self.to_run, Size((LONGEST_SEGMENT_BYTES if segmented else mtu.value) + ETHERNET_HEADER_BYTES)
        if self.rate.value % 8:
            yield Finding(("rate",), f"{self.rate} is not a whole number of bytes per second, as the kernel takes it")
        elif policer.burst_ticks > policer.MOST_TICKS:
            most = Size(policer.MOST_TICKS * policer.TICK_NS * policer.byte_rate // 10**9)
            message = (
                f"{self.burst} takes longer to fill at {self.rate} than the kernel can keep; allowed: up to {most}"
            )
            yield Finding(("burst",), message)
        elif not policer.passes(frame.value):
            tick_bytes = policer.byte_rate * policer.TICK_NS  # times 10^9
            ticks = -(-frame.value * 10**9 // tick_bytes)
            least = Size(-(-ticks * tick_bytes // 10**9))
            what = "a segment of hosts with offloads" if segmented else "a full frame"
            message = f"{self.burst} at {self.rate} never passes {what}, {frame}; allowed: at least {least}"
            hint = f"the kernel keeps a burst in ticks of {policer.TICK_NS} ns"
            yield Finding(("burst",), message, hint)


class GraphLink(Impaired):
    """A link of a graph between two nodes, with both directions."""

    examples: ClassVar[tuple[str, ...]] = (
        "{between: [mast, server], rate: 20 Mbit/s, reverse_rate: 2 Mbit/s, rtt: 30 ms, queue: {kind: codel}}",
        "{between: [mast, server], rate: 20 Mbit/s, rtt: 30 ms, loss: 0.1 %}",
    )

    between: tuple[HostName, HostName] = Field(description="the two nodes")
    rate: HostRate = Field(description="rate towards the second node; unlimited: packets leave in no time")
    reverse_rate: HostRate | None = Field(default=None, description="rate towards the first (default: `rate`)")
    rtt: f.Delay = Field(
        default=Duration(0), description="round-trip time that it adds, half in each direction (default 0)"
    )
    queue: AnyQueue = Field(
        default=_QUEUE, description="queue of the first node, if that is a router (default pfifo, 100 packets)"
    )
    reverse_queue: AnyQueue = Field(
        default=_QUEUE, description="queue of the second node, if that is a router (default pfifo, 100 packets)"
    )
    policer: Policer | None = Field(
        default=None, description="token bucket before `queue`, if the first node is a router (default: none)"
    )

    @property
    def rates(self) -> tuple[Rate | None, Rate | None]:
        """The rates of both directions; None if packets leave in no time."""
        both = self.rate, self.reverse_rate or self.rate
        there, back = (None if rate == "unlimited" else rate for rate in both)
        return there, back


class Graph(f.Closed):
    """Hosts and routers, and the links between them."""

    examples: ClassVar[tuple[str, ...]] = (
        "{kind: graph, senders: [client1], receivers: [server], routers: [mast], links: [{between: [client1, "
        "mast], rate: 1 Gbit/s}, {between: [mast, server], rate: 20 Mbit/s, rtt: 30 ms}]}",
    )

    kind: Literal["graph"] = Field(description="hosts and routers by name, and the links between them")
    senders: tuple[HostName, ...] = Field(min_length=1, description="names of the hosts that send")
    receivers: tuple[HostName, ...] = Field(min_length=1, description="names of the hosts that receive")
    routers: tuple[HostName, ...] = Field(default=(), description="names of the routers (default: none)")
    links: tuple[GraphLink, ...] = Field(
        min_length=1,
        max_length=MOST_LINKS,
        description="the links; packets take the route with the fewest links; of several, the one whose "
        "link is listed first, in each direction separately",
    )

    @property
    def sides(self) -> Sides:
        """Names of the senders and of the receivers."""
        return self.senders, self.receivers

    @property
    def rate(self) -> Rate:
        """The slowest rate of all links; without any rate, the highest allowed one."""
        rates = [rate for link in self.links for rate in link.rates if rate]
        return min(rates, default=f.FASTEST)

    @property
    def rtt(self) -> Duration:
        """The longest round-trip time between a sender and a receiver, along the routes of the packets."""
        delays_us = {name: self._delays_from(name) for name in (*self.senders, *self.receivers)}
        pairs = ((sender, receiver) for sender in self.senders for receiver in self.receivers)
        return Duration(max(delays_us[a].get(b, 0) + delays_us[b].get(a, 0) for a, b in pairs))

    @property
    def is_impaired(self) -> bool:
        """Whether a link has random losses or delays."""
        return any(link.is_impaired for link in self.links)

    def queues(self, mtu: Size) -> tuple[tuple[Path, QueueKind, Place], ...]:
        """Return the queue of each router port that has a rate, with its path below the topology and its place."""
        found: list[tuple[Path, QueueKind, Place]] = []
        rtt = self.rtt
        for number, link in enumerate(self.links):
            keys = zip(("queue", "reverse_queue"), link.between, link.rates, strict=True)
            for key, node, rate in keys:
                if rate and node in self.routers:
                    found.append((("links", number, key), getattr(link, key), Place(rate, rtt, mtu.value)))
        return tuple(found)

    def findings(self, end_us: int = 0) -> Iterator[Finding]:
        """Yield the faults among nodes and links in a run that ends at ``end_us``; paths begin at the topology."""
        named = [*self.senders, *self.receivers, *self.routers]
        for name in sorted({name for name in named if named.count(name) > 1}):
            yield Finding(("routers",), f"{name!r} is the name of two nodes; names are unique")
        for number, link in enumerate(self.links):
            for end in link.between:
                if end not in named:
                    yield Finding(("links", number, "between"), *unknown("node", end, named))
            if link.between[0] == link.between[1]:
                yield Finding(("links", number, "between"), f"goes from {link.between[0]!r} to itself")
            for key, node in zip(("queue", "reverse_queue"), link.between, strict=True):
                if key in link.model_fields_set and node not in self.routers:
                    message = f"is the queue of {node!r}, which is not a router; a host's queue is `txqueuelen`"
                    yield Finding(("links", number, key), message)
            if link.policer and link.between[0] not in self.routers:
                message = (
                    f"needs a router, and {link.between[0]!r} is a host, whose TCP would take a drop for a full queue"
                )
                yield Finding(("links", number, "policer"), message)
            yield from self._course_findings(number, link, end_us)
        for name in self.senders:
            reached = self._delays_from(name)
            if missing := [other for other in self.receivers if other not in reached]:
                yield Finding(("links",), f"no way leads from {name!r} to {missing[0]!r}")
        for name in (*self.senders, *self.receivers):
            if sum(name in link.between for link in self.links) > 1:
                yield Finding(("links",), f"host {name!r} has several links; a host has one, a router any number")

    def _course_findings(self, number: int, link: GraphLink, end_us: int) -> Iterator[Finding]:
        there, back = link.rates
        if link.rtt.value % 2:
            message = f"{link.rtt} cannot be split into two whole microseconds"
            yield Finding(("links", number, "rtt"), message, "use an even number")
        if link.trace and not there:
            yield Finding(("links", number, "trace"), "replaces a rate, but the link has none")
        found = [
            *link.change_findings(end_us, reverse_rate=back is not None),
            *impairment_findings(link, *(2 * (link.rtt.value // 2,))),
        ]
        yield from (Finding(("links", number, *one.path[1:]), one.message, one.hint) for one in found)

    def _delays_from(self, start: str) -> dict[str, int]:
        """Return the delay to each node in microseconds, on the route with the fewest links; ties go to the first link.

        ``longfat.spec.network.route`` chooses the same routes.
        """
        leaving: dict[str, list[tuple[str, int]]] = {}
        for link in self.links:
            for near, far in (link.between, link.between[::-1]):
                leaving.setdefault(near, []).append((far, link.rtt.value // 2))
        found, coming = {start: 0}, deque([start])
        while coming:
            node = coming.popleft()
            for other, delay_us in leaving.get(node, ()):
                if other not in found:
                    found[other] = found[node] + delay_us
                    coming.append(other)
        return found


class ParkingLot(f.Closed):
    """Bottlenecks in a row: some flows cross all of them, others one each."""

    examples: ClassVar[tuple[str, ...]] = (
        "{kind: parking_lot, bottlenecks: 3, rate: 20 Mbit/s, rtt: 60 ms, host_rate: 1 Gbit/s}",
    )

    kind: Literal["parking_lot"] = Field(
        description="switch1, switch2, ... with a bottleneck between each two; client1, ... before the first, server "
        "behind the last; cross1 and sink1 before and behind the first bottleneck, cross2 and sink2 the second, ..."
    )
    bottlenecks: Annotated[int, Field(strict=True, ge=1, le=20)] = Field(description="number of bottlenecks")
    rate: f.LinkRate = Field(description="rate of each bottleneck")
    rtt: f.Delay = Field(description="round-trip time that all bottlenecks add in total, in equal parts")
    senders: Annotated[int, Field(strict=True, ge=1, le=100)] = Field(
        default=1, description="number of clients, whose packets cross all bottlenecks (default 1)"
    )
    host_rate: HostRate = Field(
        default="unlimited", description="rate of every host (default unlimited: packets leave it in no time)"
    )
    bottleneck_queue: AnyQueue = Field(
        default=_QUEUE, description="queue of each bottleneck (default pfifo, 100 packets)"
    )

    @property
    def sides(self) -> Sides:
        """Names of the senders and of the receivers."""
        return lot_sides(self.senders, self.bottlenecks)

    @property
    def graph(self) -> Graph:
        """The parking lot as a graph."""
        count = self.bottlenecks
        ends = [2 * (self.rtt.value // 2 * number // count) for number in range(count + 1)]
        switches = tuple(f"switch{number}" for number in range(1, count + 2))
        senders, receivers = self.sides
        before = {name: switches[0] if name.startswith("client") else f"switch{name[5:]}" for name in senders}
        behind = {name: switches[-1] if name == "server" else f"switch{int(name[4:]) + 1}" for name in receivers}
        host_rate = str(self.host_rate)
        links: list[dict[str, Any]] = [{"between": pair, "rate": host_rate} for pair in before.items()]
        links += [
            {
                "between": (switches[number], switches[number + 1]),
                "rate": str(self.rate),
                "reverse_rate": "unlimited",
                "rtt": str(Duration(ends[number + 1] - ends[number])),
                "queue": self.bottleneck_queue,
            }
            for number in range(count)
        ]
        links += [{"between": (switch, name), "rate": host_rate} for name, switch in behind.items()]
        given = {"senders": senders, "receivers": receivers, "routers": switches, "links": links}
        return Graph.model_validate({"kind": "graph", **given})

    @property
    def is_impaired(self) -> bool:
        """Always false: its links have no random losses or delays."""
        return False

    def queues(self, mtu: Size) -> tuple[tuple[Path, QueueKind, Place], ...]:
        """Return the queue that all bottlenecks have."""
        return ((("bottleneck_queue",), self.bottleneck_queue, Place(self.rate, self.rtt, mtu.value)),)

    def findings(self) -> Iterator[Finding]:
        """Yield a round-trip time that cannot be halved; paths begin at the topology."""
        if self.rtt.value % 2:
            yield Finding(("rtt",), f"{self.rtt} cannot be split into two whole microseconds", "use an even number")


def lot_sides(senders: int, bottlenecks: int) -> Sides:
    """Return the names of the senders and of the receivers of a parking lot."""
    numbers = range(1, bottlenecks + 1)
    clients = (f"client{number}" for number in range(1, senders + 1))
    return (*clients, *(f"cross{number}" for number in numbers)), ("server", *(f"sink{number}" for number in numbers))
