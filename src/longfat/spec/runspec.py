# SPDX-License-Identifier: Apache-2.0
"""RunSpec: everything that can change the outcome of one run, and nothing else.

Standard library only: the planning host and the guest read the same module. Times are microseconds, sizes bytes, rates
bits per second, according to the names of the fields. A RunSpec has no names of studies, scenarios and figures, so that
figures share a run. The experiment is in its seed, which is common to its scenarios (longfat.plan.resolve).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from longfat.spec.links import Bursts as Bursts
from longfat.spec.links import Card as Card
from longfat.spec.links import Change as Change
from longfat.spec.links import DeliberateDrop as DeliberateDrop
from longfat.spec.links import Egress as Egress
from longfat.spec.links import Impairment as Impairment
from longfat.spec.links import Interface as Interface
from longfat.spec.links import Link as Link
from longfat.spec.links import Pause as Pause
from longfat.spec.links import Policer as Policer
from longfat.spec.links import Queue as Queue
from longfat.spec.links import Trace as Trace
from longfat.spec.plain import LATER, build, plain
from longfat.spec.plain import Scalar as Scalar
from longfat.spec.plain import canonical_json as canonical_json

Role = Literal["sender", "receiver", "router"]
CapturePoint = Literal["sender", "bottleneck", "receiver"]


@dataclass(frozen=True)
class Node:
    """A host or router: a network namespace with sysctls, offloads and route attributes.

    ``offloads`` lists the ethtool features that are on (``tso gso gro``); all others are off. Routes have
    ``initial_cwnd_segments`` (initcwnd); None is the kernel's default. ``image`` is a container image; None is the
    project's userland. ``recovery`` is a sender's loss recovery (``sack newreno reno``); None leaves it to the sysctls.
    """

    name: str
    role: Role
    sysctls: dict[str, str] = field(default_factory=dict)
    offloads: tuple[str, ...] = ()
    initial_cwnd_segments: int | None = None
    image: str | None = field(default=None, metadata=LATER)
    recovery: str | None = field(default=None, metadata=LATER)


class Called(Protocol):
    """A kind of traffic with its name in prose."""

    what: ClassVar[str]


class Sent(Called, Protocol):
    """Traffic other than pings: sender, receiver, and time in microseconds of the measurement."""

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
    """Traffic with a congestion control, by its kernel name."""

    @property
    def cca(self) -> str: ...


@dataclass(frozen=True)
class Flow:
    """iperf2 traffic between two nodes: ``streams`` parallel TCP connections.

    ``window_bytes`` is iperf2's ``-w`` at both ends, which the kernel doubles; None is auto-tuning.
    ``send_window_bytes`` replaces it at the sender. With ``transfer_bytes`` each stream is a series of connections of
    this size, until the end of the duration. With ``rate_bps`` the project's own program sends at this aggregate rate,
    and, with ``on_us`` and ``off_us``, only in on times.
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
        """Mean rate of the application over on and off times; None without a limit."""
        if self.rate_bps is None or not self.on_us or not self.off_us:
            return self.rate_bps
        return self.rate_bps * self.on_us / (self.on_us + self.off_us)


@dataclass(frozen=True)
class Web:
    """Users at one node, each with a TCP connection, who fetch files from an HTTP server, the sender, at another.

    ``cca`` is for the server's connections. ``model`` chooses files and times; its OFF times are multiplied by
    ``off_ppm`` millionths.
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
    """UDP packets of the links' MTU at the rate mean + swing * sin(2 pi t / period), with t from ``start_us``.

    Rates count whole IPv4 packets. Without a swing the rate is constant.
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
    """Users at one node with requests to a server, the sender, at another: each request is a TCP connection.

    A user sends ``request_bytes``, receives a response and thinks. Responses have a mean of ``response_bytes`` and the
    distribution ``sizes``, with ``shape`` for Pareto; think times have a mean of ``think_us`` and ``thinking``. With
    ``every_us`` there are no users: requests begin at random times with this mean distance. ``table`` has points
    (bytes, millionths of smaller or equal responses) of a distribution, with linear interpolation.
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
    """Programs of the user: a sending program at one node, and a receiving program at another.

    ``send`` and ``receive`` are their command lines, with ``{address}`` (the receiver's), ``{port}``, ``{seconds}``,
    ``{seed}``. ``files`` has the SHA-256 of each file in their folder; ``keep`` names the files in it to keep as raw
    files. Packets from the sender to ``port`` are counted.
    """

    what: ClassVar[str] = "programs"
    most_kept_bytes: ClassVar[int] = 16 << 20  # largest file to keep

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
    """Pings between two nodes throughout the run."""

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
"""Kinds of traffic by name: a member of RunSpec, a module of ``longfat.study.traffic``, which describes the kind, and
a module of ``longfat.guest.kinds``, which runs it."""


REMOVED = ("short_flows", "video", "incast")
"""Kinds of traffic that earlier locks list, always empty in locks that this version reads."""


@dataclass(frozen=True)
class Probes:
    """Observations during the traffic: sampling intervals, captures of headers, pings.

    Each traffic in ``capture`` is captured at each place in ``capture_at``; ``capture_loss_percent`` of its packets,
    drawn from the run's seed, are removed. Pings go from the first sender to the first receiver.
    """

    socket_interval_us: int | None = 100_000
    queue_interval_us: int | None = 100_000
    capture: tuple[str, ...] = ()
    capture_at: tuple[CapturePoint, ...] = ("sender",)
    capture_loss_percent: float = 0.0
    ping_interval_us: int | None = field(default=None, metadata=LATER)

    @property
    def captures(self) -> dict[str, tuple[str, CapturePoint]]:
        """Traffic and place of each capture, by the name of its file."""
        pairs = ((name, place) for name in self.capture for place in self.capture_at)
        return {name if place == "sender" else f"{name}@{place}": (name, place) for name, place in pairs}


@dataclass(frozen=True)
class RunSpec:
    """One complete run. ``pins`` has the digests of kernel, image and code, and the backend's name.

    Every random number is drawn from ``seed`` and the name of its use; in a guest also the kernel's random numbers
    (hash keys, ports, RED). A run lasts ``duration_us``, or until the end of its traffic if that is later.
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
        """Identity of the run: SHA-256 (hex) over the canonical JSON text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def pings(self) -> tuple[Ping, ...]:
        """Pings of the probes, from the first sender to the first receiver."""
        if not self.probes.ping_interval_us:
            return ()
        sender, receiver = (
            next(node.name for node in self.nodes if node.role == role) for role in ("sender", "receiver")
        )
        return (Ping(sender, receiver, self.probes.ping_interval_us),)

    @property
    def sent(self) -> tuple[Sent, ...]:
        """All traffic except pings, by kind."""
        kinds = (member.name for member in dataclasses.fields(self) if member.name in KINDS)
        return tuple(one for kind in kinds for one in getattr(self, kind))

    @property
    def traced(self) -> tuple[Flow, ...]:
        """Flows with a capture at their sender, which tcptrace reads."""
        return tuple(flow for flow in self.flows if flow.name in self.probes.captures)

    @property
    def traffic(self) -> tuple[SentOverTcp, ...]:
        """All traffic with a congestion control, by kind."""
        return tuple(one for one in self.sent if isinstance(one, SentOverTcp))

    @property
    def end_us(self) -> int:
        """End of the measurement in microseconds."""
        return max((self.duration_us or 0, *(one.start_us + one.duration_us for one in self.sent)))

    @property
    def marks(self) -> bool:
        """Whether any queue of the run marks packets."""
        return any(end.egress.queue.marks for link in self.links for end in (link.a, link.b))

    def cca_parameters(self, flow: Flow) -> dict[str, str]:
        """Return the parameters of a flow's algorithm in its sender's sysctls, by kernel name."""
        prefix = f"net.ipv4.tcp_{flow.cca}."
        (sender,) = (node for node in self.nodes if node.name == flow.sender)
        return {key.removeprefix(prefix): value for key, value in sender.sysctls.items() if key.startswith(prefix)}

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, no spaces, ASCII."""
        return canonical_json(plain(self))

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """Read the text of ``to_json``. Raises ValueError or TypeError on another text."""
        spec: RunSpec = build(cls, json.loads(text))
        return spec

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RunSpec:
        """Build from the plain dictionaries and lists of a lock. Raises TypeError on other data."""
        known = {key: value for key, value in data.items() if key not in REMOVED or value}
        spec: RunSpec = build(cls, known)
        return spec
