# SPDX-License-Identifier: Apache-2.0
"""The models of the linear topologies, cable, delay line and dumbbell, and the list of all kinds."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from longfat.spec.runspec import Pause as RunPause
from longfat.spec.units import Duration, Size
from longfat.study.changing import Changing
from longfat.study.graphs import Graph, HostRate, ParkingLot, Policer, Sides
from longfat.study.impairments import Impaired
from longfat.study.queues import AnyQueue
from longfat.study.queues.fifo import Pfifo
from longfat.study.queues.kind import QueueKind
from longfat.study.queues.limit import MOST_PACKETS, Place
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, Path

Placement = Literal["split", "forward", "reverse"]


class Direct(Changing):
    """A cable between `client1` and `server`."""

    examples: ClassVar[tuple[str, ...]] = (
        "{kind: direct, rate: 100 Mbit/s, rtt: 2 ms}",
        "{kind: direct, rate: 20 Mbit/s, rtt: 40 ms, trace: cell.trace, reverse_trace: cell.trace}",
    )

    kind: Literal["direct"] = Field(description="a cable between client1 and server")
    rate: f.LinkRate = Field(description="rate of the cable")
    rtt: f.Delay = Field(
        default=Duration(100), description="round-trip time (default 100 us, because no real cable has none)"
    )

    @property
    def sides(self) -> Sides:
        """Names of the sender and of the receiver."""
        return end_hosts(self.kind)


class Delay(Impaired):
    """A sender and a receiver with a delay element between them."""

    examples: ClassVar[tuple[str, ...]] = (
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, delay_placement: forward, loss: 0.1 %, jitter: 2 ms}",
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, reverse_loss: 1 %, reverse_jitter: 2 ms, jitter_order: kept}",
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, overtaking: 1 %, reverse_overtaking: 1 %}",
        "{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, aggregation: 2 ms, reverse_aggregation: 5 ms}",
    )

    kind: Literal["delay"] = Field(description="client1 and server with a delay element between")
    rate: f.LinkRate = Field(description="rate of the host's port on each side: a frame is serialised once on its way")
    rtt: f.Delay = Field(description="round-trip time that the delay element adds")
    delay_placement: Placement = Field(
        default="split", description="direction that is delayed; split: half in each direction"
    )

    @property
    def sides(self) -> Sides:
        """Names of the sender and of the receiver."""
        return end_hosts(self.kind)


class Pause(f.Closed):
    """Flow control of Ethernet: a switch stops its senders while the queue of its port is long."""

    examples: ClassVar[tuple[str, ...]] = ("{above: 60, below: 30}",)

    above: Annotated[int, Field(strict=True, ge=1, le=MOST_PACKETS)] = Field(
        description="with more waiting packets, every sender stops after the frame that is leaving"
    )
    below: Annotated[int, Field(strict=True, ge=0, le=MOST_PACKETS)] = Field(
        description="waiting packets at which they may go on"
    )

    @property
    def to_run(self) -> RunPause:
        """The marks of a run."""
        return RunPause(self.above, self.below)

    def findings(self, limit_packets: int | None) -> Iterator[Finding]:
        """Yield marks in the wrong order, and one that a queue of so many packets never exceeds."""
        if self.below > self.above:
            yield Finding(("below",), f"{self.below} is more than above, {self.above}")
        if limit_packets is not None and self.above >= limit_packets:
            message = f"{self.above} is never exceeded: the queue holds {limit_packets} packets"
            yield Finding(("above",), message, f"allowed here: up to {limit_packets - 1}")


class Dumbbell(Impaired):
    """Several senders connected to a switch, whose port towards the delay element is the bottleneck."""

    examples: ClassVar[tuple[str, ...]] = (
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 2, bottleneck_queue: {limit: 30 ms}}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 2, receivers: 2, further_delays: [0 ms, 100 ms]}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, reverse_queue: {limit: 20}, reverse_rate: 1 Mbit/s}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, policer: {rate: 10 Mbit/s, burst: 30 kB}}",
        "{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, trace: cell.trace}",
        "{kind: dumbbell, rate: 1 Gbit/s, rtt: 40 ms, senders: 2, pause: {above: 60, below: 30}}",
    )

    kind: Literal["dumbbell"] = Field(description="senders, a switch as bottleneck, a delay element, receivers")
    rate: f.LinkRate = Field(description="rate of the bottleneck")
    host_rate: HostRate | None = Field(
        default=None,
        description="rate of every host (default: `rate`); unlimited: packets leave it in no time, and none waits "
        "there",
    )
    rtt: f.Delay = Field(description="round-trip time that the delay element adds")
    senders: Annotated[int, Field(strict=True, ge=1, le=100)] = Field(description="number of clients")
    receivers: Annotated[int, Field(strict=True, ge=1, le=100)] = Field(default=1, description="number of servers")
    bottleneck_queue: AnyQueue = Field(
        default=Pfifo(kind="pfifo", limit=100),
        description="queue of the switch's port (default pfifo, 100 packets)",
    )
    policer: Policer | None = Field(
        default=None,
        description="token bucket before that queue, which drops packets without enough tokens (default: none)",
    )
    pause: Pause | None = Field(
        default=None,
        description="Ethernet's flow control of the switch, whose queue stops the senders (default: none)",
    )
    reverse_queue: Pfifo | None = Field(
        default=None,
        description="queue of a second switch before the receivers, whose port towards the senders has the "
        "bottleneck's rate (default: none, only hosts limit the reverse path)",
    )
    reverse_rate: f.LinkRate | None = Field(
        default=None, description="rate of that port (default: `rate`); it needs a `reverse_queue`"
    )
    delay_placement: Placement = Field(
        default="split", description="direction that is delayed; split: half in each direction"
    )
    further_delays: tuple[f.Delay, ...] = Field(
        default=(),
        description="additional round-trip time of each receiver, beyond `rtt` (default: none)",
    )

    @property
    def sides(self) -> Sides:
        """Names of the senders and of the receivers."""
        return end_hosts(self.kind, self.senders, self.receivers)

    def queues(self, mtu: Size) -> tuple[tuple[Path, QueueKind, Place], ...]:
        """Return the queue of each switch, with its path below the topology and its place."""
        forward = ("bottleneck_queue",), self.bottleneck_queue, Place(self.rate, self.rtt, mtu.value)
        if not self.reverse_queue:
            return (forward,)
        place = Place(self.reverse_rate or self.rate, self.rtt, mtu.value)
        return (forward, (("reverse_queue",), self.reverse_queue, place))


def delays_us(topology: Direct | Delay | Dumbbell) -> tuple[int, int]:
    """Return the microseconds of delay towards the receivers and towards the senders."""
    rtt = topology.rtt.value
    if isinstance(topology, Direct):
        return rtt // 2, rtt - rtt // 2
    return {"forward": (rtt, 0), "split": (rtt // 2, rtt // 2), "reverse": (0, rtt)}[topology.delay_placement]


TOPOLOGIES: dict[str, type[f.Closed]] = {
    "direct": Direct,
    "delay": Delay,
    "dumbbell": Dumbbell,
    "parking_lot": ParkingLot,
    "graph": Graph,
}


if TYPE_CHECKING:
    Topology = Direct | Delay | Dumbbell | ParkingLot | Graph
else:
    Topology = f.by_kind(TOPOLOGIES)


@functools.cache
def end_hosts(kind: str, senders: int = 1, receivers: int = 1) -> Sides:
    """Return the names of the senders and of the receivers of a topology."""
    count = (senders, receivers) if kind == "dumbbell" else (1, 1)
    clients = tuple(f"client{number}" for number in range(1, count[0] + 1))
    servers = tuple(f"server{number}" for number in range(1, count[1] + 1))
    return clients, ("server",) if len(servers) == 1 else servers
