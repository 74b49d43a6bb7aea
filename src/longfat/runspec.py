# SPDX-License-Identifier: Apache-2.0
"""RunSpec: everything that can change the outcome of one run, and nothing that cannot.

Standard library only: the same module is read on the planning host and inside the guest.
Lengths of time are microseconds, sizes bytes, rates bits per second, as the field names say.
Names of studies, scenarios and figures are not part of it: figures that need the same run share it. The experiment is
in its seed, which all its scenarios have in common (longfat.plan.resolve).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from longfat.links import (
    Bursts,
    Card,
    Change,
    DeliberateDrop,
    Egress,
    Impairment,
    Interface,
    Link,
    Policer,
    Queue,
    Trace,
)
from longfat.plain import LATER, Scalar, build, canonical_json, plain

__all__ = [
    "KINDS",
    "Bursts",
    "Called",
    "CapturePoint",
    "Card",
    "Change",
    "DeliberateDrop",
    "Egress",
    "Flow",
    "Impairment",
    "Interface",
    "Link",
    "Node",
    "Ping",
    "Policer",
    "Probes",
    "Program",
    "Queue",
    "Requests",
    "Role",
    "RunSpec",
    "Scalar",
    "Sent",
    "SentOverTcp",
    "Trace",
    "Udp",
    "Web",
    "canonical_json",
]

Role = Literal["sender", "receiver", "router"]
CapturePoint = Literal["sender", "bottleneck", "receiver"]


@dataclass(frozen=True)
class Node:
    """A host or router: its own network namespace, sysctls, offloads and route attributes.

    ``offloads`` lists the ethtool feature names that are on (``tso gso gro``); all others are turned off.
    ``initial_cwnd_segments`` goes into the routes (``ip route ... initcwnd``); None leaves the kernel's own.
    ``image`` names the container image that the host is made from; None is the project's own userland. ``recovery`` is
    how a sender recovers from losses (``sack newreno reno``); None leaves it to sysctls, which say the first two.
    """

    name: str
    role: Role
    sysctls: dict[str, str] = field(default_factory=dict)
    offloads: tuple[str, ...] = ()
    initial_cwnd_segments: int | None = None
    image: str | None = field(default=None, metadata=LATER)
    recovery: str | None = field(default=None, metadata=LATER)


class Called(Protocol):
    """A kind of traffic, by what it is called."""

    what: ClassVar[str]


class Sent(Called, Protocol):
    """What all traffic but pings has: who sends to whom, and when, in microseconds of the measurement."""

    @property
    def name(self) -> str: ...
    @property
    def sender(self) -> str: ...
    @property
    def receiver(self) -> str: ...
    @property
    def start_us(self) -> int: ...
    @property
    def duration_us(self) -> int: ...


@runtime_checkable
class SentOverTcp(Sent, Protocol):
    """Traffic that has a congestion control, by the kernel's name of it."""

    @property
    def cca(self) -> str: ...


@dataclass(frozen=True)
class Flow:
    """iperf2 traffic from one node to another: ``streams`` parallel TCP connections.

    ``window_bytes`` is what iperf2 is asked for with ``-w`` on both ends (the kernel doubles it);
    None leaves auto-tuning on. ``send_window_bytes`` takes its place at the sending end. With ``transfer_bytes`` a
    connection carries so much and another follows it, until the duration is over; each of the streams does so. With
    ``rate_bps`` the sending application has so much to send, all streams together, and only for ``on_us`` of each
    ``on_us + off_us`` where these are given; its program is the project's own.
    """

    what: ClassVar[str] = "flows"

    name: str
    sender: str
    receiver: str
    cca: str
    duration_us: int
    window_bytes: int | None = None
    send_window_bytes: int | None = None
    start_us: int = 0
    streams: int = 1
    transfer_bytes: int | None = field(default=None, metadata=LATER)
    rate_bps: int | None = field(default=None, metadata=LATER)
    on_us: int | None = field(default=None, metadata=LATER)
    off_us: int | None = field(default=None, metadata=LATER)

    @property
    def mean_rate_bps(self) -> float | None:
        """Rate of what its application has to send, on and off times together; None if that is without limit."""
        if self.rate_bps is None or not self.on_us or not self.off_us:
            return self.rate_bps
        return self.rate_bps * self.on_us / (self.on_us + self.off_us)


@dataclass(frozen=True)
class Web:
    """Users at one node that fetch files from an HTTP server at another, which sends: as many TCP connections as users.

    ``cca`` is that of the server's connections; ``model`` says which file is asked for when. The model's OFF times
    are taken times ``off_ppm`` millionths. ``start_us`` counts from the start of the measurement.
    """

    what: ClassVar[str] = "web traffic"

    name: str
    sender: str
    receiver: str
    users: int
    cca: str
    duration_us: int
    model: str = "surge"
    off_ppm: int = 1_000_000
    start_us: int = 0


@dataclass(frozen=True)
class Udp:
    """UDP packets of the links' MTU from one node to another, whose rate is mean + swing * sin(2 pi t / period).

    Rates count whole IPv4 packets; ``t`` counts from ``start_us``. Without a swing the rate is constant.
    """

    what: ClassVar[str] = "UDP traffic"

    name: str
    sender: str
    receiver: str
    mean_bps: int
    duration_us: int
    swing_bps: int = 0
    period_us: int | None = None
    start_us: int = 0


@dataclass(frozen=True)
class Requests:
    """Users at one node that ask a server at another, which sends: each request is a TCP connection of its own.

    A user sends ``request_bytes``, takes in a response and thinks. Responses are of ``response_bytes`` on average by
    the law ``sizes``, a Pareto law of the given ``shape``; thinking takes ``think_us`` on average by ``thinking``.
    With ``every_us`` there are no users: requests begin that often on average, whatever is under way. ``table`` has
    points (bytes, millionths of responses that are no larger) of a distribution, interpolated linearly.
    """

    what: ClassVar[str] = "requests"

    name: str
    sender: str
    receiver: str
    users: int
    cca: str
    duration_us: int
    response_bytes: int
    sizes: Literal["fixed", "exponential", "pareto", "table"] = "fixed"
    shape: float = 1.5
    request_bytes: int = 200
    think_us: int = 0
    thinking: Literal["fixed", "exponential"] = "exponential"
    start_us: int = 0
    every_us: int | None = field(default=None, metadata=LATER)
    table: tuple[tuple[int, int], ...] = field(default=(), metadata=LATER)


@dataclass(frozen=True)
class Program:
    """Programs of the user's: one that sends, at one node, and one that receives, at another.

    ``send`` and ``receive`` are their command lines, with ``{address}`` (the receiver's), ``{port}``, ``{seconds}``,
    ``{seed}``. ``files`` has the SHA-256 of each file of their folder. ``keep`` names the files that they leave
    in it for the raw run. What the sender sends to ``port`` is counted.
    """

    what: ClassVar[str] = "programs"
    most_kept_bytes: ClassVar[int] = 16 << 20  # of a file to keep

    name: str
    sender: str
    receiver: str
    send: tuple[str, ...]
    receive: tuple[str, ...]
    duration_us: int
    port: int = 4433
    files: dict[str, str] = field(default_factory=dict)
    start_us: int = 0
    keep: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ping:
    """Pings from one node to another, as long as the run lasts."""

    what: ClassVar[str] = "ping"

    sender: str
    receiver: str
    interval_us: int


KINDS: dict[str, type[Called]] = {
    "flows": Flow,
    "web": Web,
    "udp": Udp,
    "requests": Requests,
    "programs": Program,
    "pings": Ping,
}
"""Every kind of traffic: its name and what one of it is. By that name it is a member of RunSpec, a module of
``longfat.traffic``, where all else about it is, and one of ``longfat.guest.kinds``, which runs it."""


REMOVED = ("short_flows", "video", "incast")
"""Kinds of traffic that earlier locks list, always empty in locks that this version reads."""


@dataclass(frozen=True)
class Probes:
    """What is observed while the traffic runs: sampling intervals, and the traffic whose headers are captured.

    Each traffic of ``capture`` is captured at each place of ``capture_at``. Pings go from the first sender to the first
    receiver. ``capture_loss_percent`` of a capture's packets, drawn with the run's seed, are removed from it.
    """

    socket_interval_us: int | None = 100_000
    queue_interval_us: int | None = 100_000
    capture: tuple[str, ...] = ()
    capture_at: tuple[CapturePoint, ...] = ("sender",)
    capture_loss_percent: float = 0.0
    ping_interval_us: int | None = field(default=None, metadata=LATER)

    @property
    def captures(self) -> dict[str, tuple[str, CapturePoint]]:
        """Every capture by the name of its file: the traffic and the place."""
        pairs = ((name, place) for name in self.capture for place in self.capture_at)
        return {name if place == "sender" else f"{name}@{place}": (name, place) for name, place in pairs}


@dataclass(frozen=True)
class RunSpec:
    """One run, complete. ``pins`` holds the digests of kernel, image and code, and the backend's name.

    All that is random in it is drawn from ``seed`` and the name of what it is drawn for; in a guest the kernel's random
    numbers (hash keys, ports, RED) too, which all of the kernel takes in turn. It lasts ``duration_us``, or
    as long as its traffic if that is longer.
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    probes: Probes
    seed: int
    memory_bytes: int = 1 << 30
    pins: dict[str, str] = field(default_factory=dict)
    format: int = 1
    web: tuple[Web, ...] = field(default=(), metadata=LATER)
    udp: tuple[Udp, ...] = field(default=(), metadata=LATER)
    requests: tuple[Requests, ...] = field(default=(), metadata=LATER)
    programs: tuple[Program, ...] = field(default=(), metadata=LATER)
    duration_us: int | None = field(default=None, metadata=LATER)

    @property
    def run_id(self) -> str:
        """SHA-256 (hex) over the canonical JSON text: the run's identity."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def pings(self) -> tuple[Ping, ...]:
        """The pings that the probes ask for, from the first sender to the first receiver."""
        if not self.probes.ping_interval_us:
            return ()
        sender, receiver = (
            next(node.name for node in self.nodes if node.role == role) for role in ("sender", "receiver")
        )
        return (Ping(sender, receiver, self.probes.ping_interval_us),)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """All traffic but pings, kind by kind."""
        kinds = (member.name for member in dataclasses.fields(self) if member.name in KINDS)
        return tuple(one for kind in kinds for one in getattr(self, kind))

    @property
    def traced(self) -> tuple[Flow, ...]:
        """The flows that are captured at their sender: tcptrace reads these captures."""
        return tuple(flow for flow in self.flows if flow.name in self.probes.captures)

    @property
    def traffic(self) -> tuple[SentOverTcp, ...]:
        """All traffic that a congestion control governs, kind by kind."""
        return tuple(one for one in self.sent if isinstance(one, SentOverTcp))

    @property
    def end_us(self) -> int:
        """Time in microseconds at which the measurement ends: with the last traffic, or later if the run says so."""
        return max((self.duration_us or 0, *(one.start_us + one.duration_us for one in self.sent)))

    @property
    def marks(self) -> bool:
        """Whether some queue of the run marks packets."""
        return any(end.egress.queue.marks for link in self.links for end in (link.a, link.b))

    def cca_parameters(self, flow: Flow) -> dict[str, str]:
        """Parameters of a flow's algorithm that its sender's sysctls declare, by the kernel's names."""
        prefix = f"net.ipv4.tcp_{flow.cca}."
        (sender,) = (node for node in self.nodes if node.name == flow.sender)
        return {key.removeprefix(prefix): value for key, value in sender.sysctls.items() if key.startswith(prefix)}

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, ASCII."""
        return canonical_json(plain(self))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Read what ``to_json`` wrote. Raises ValueError or TypeError on a text of another shape."""
        spec: RunSpec = build(cls, json.loads(text))
        return spec

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunSpec:
        """Build from the plain dictionaries and lists of a lock. Raises TypeError on another shape."""
        known = {key: value for key, value in data.items() if key not in REMOVED or value}
        spec: RunSpec = build(cls, known)
        return spec
