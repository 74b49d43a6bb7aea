# SPDX-License-Identifier: Apache-2.0
"""The closed models of a study manifest: every key it may have, with its type and its meaning.

Owns shape and ranges; a reference ``${factor}`` is replaced before a model of an experiment is built, so
values here are always concrete. It must not compare experiments with each other or read files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from longfat.catalog.ccas import CCAS, Value, plain
from longfat.manifest import fields as f
from longfat.manifest.axes import Sweep
from longfat.manifest.closed import Closed
from longfat.manifest.names import nearest, shown, unknown
from longfat.manifest.thinning import Profiles
from longfat.manifest.unknowns import Unknown
from longfat.units import Duration, Ratio

Placement = Literal["split", "forward", "reverse"]


class Paper(Closed):
    """The publication that the study reproduces."""

    authors: tuple[f.Text, ...] = Field(min_length=1, description="names of the authors")
    year: Annotated[int, Field(strict=True, ge=1970, le=2100)] = Field(description="year of publication")
    identifier: f.Text = Field(description="report number, DOI or address")


class Algorithm(Closed):
    """A congestion control of the kernel, with its parameters by the catalogue's names."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, f.ParameterValue]

    cca: f.CcaName = Field(description="the kernel's name of the congestion control")

    @property
    def parameters(self) -> dict[str, Value]:
        """The parameters given, by name."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _check_parameters(self) -> Algorithm:
        faults = []
        for name, value in self.parameters.items():
            fault = _parameter_fault(self.cca, name, value)
            if fault:
                faults.append(InitErrorDetails(type=fault, loc=(name,), input=value))
        if faults:
            raise ValidationError.from_exception_data("Algorithm", faults)
        return self


def _parameter_fault(cca: str, name: str, value: Value) -> Any:
    """What is wrong with a parameter of a congestion control, or None."""
    parameters = CCAS[cca].parameters
    if name not in parameters:
        return f.fault(*unknown(f"parameter of {cca}", name, parameters))
    parameter, given = parameters[name], shown(value) if isinstance(value, str) else plain(value)
    allowed = f"allowed: {parameter.range_text}"
    if parameter.words:
        if value in parameter.words:
            return None
        return f.fault(f"{given} is not allowed; {allowed}", nearest(value, parameter.words))
    if isinstance(value, str):
        return f.fault(f"{given} is not a number; {allowed}")
    scaled = parameter.scaled(value)
    if not parameter.minimum <= scaled <= parameter.maximum:
        return f.fault(f"{given} is out of range; {allowed}")
    if scaled != int(scaled):
        multiple = f"a multiple of 1/{parameter.per_unit}" if parameter.per_unit > 1 else "a whole number"
        return f.fault(f"{given} is not {multiple}; values are never rounded")
    return None


class Hosts(Closed):
    """Settings of all senders and receivers; an experiment overrides single keys of the study's."""

    mtu: f.Mtu | None = Field(default=None, description="MTU of every link (default 1500 B)")
    txqueuelen: f.Count | None = Field(
        default=None, description="packets that a host's interface queues (default 1000)"
    )
    tx_ring: f.CountFromZero | None = Field(
        default=None,
        description="packets that the network card's transmit ring holds besides, between that queue and the wire "
        "(default 0)",
    )
    window_meaning: Literal["effective", "requested"] | None = Field(
        default=None,
        description="effective (default): `window` is the buffer the kernel ends up with, so half of it is "
        "requested because Linux doubles it (socket(7)); requested: passed on as it is",
    )
    sysctls: dict[f.SysctlName, f.SysctlValue] = Field(default={}, description="net.* sysctls of senders and receivers")
    offloads: tuple[f.OffloadName, ...] | None = Field(default=None, description="offloads turned on (default none)")
    recovery: Literal["sack", "newreno", "reno"] | None = Field(
        default=None,
        description="how a sender recovers from losses (default: as sysctls and stack say): by selective "
        "acknowledgments (RFC 6675), by partial ones (RFC 6582), or by neither, as simulators can and no kernel does",
    )
    image: f.Text | None = Field(
        default=None,
        description="container image that senders and receivers are made from, for backend containernet (default: the "
        "project's own userland)",
    )


class Pfifo(Closed):
    """The queue of a bottleneck that drops only what it has no room for."""

    kind: f.QdiscName = Field(default="pfifo", description="qdisc by its tc name")
    limit: f.Count = Field(description="packets it holds")


class Red(Closed):
    """Random early detection at a bottleneck; lengths are in packets of the links' MTU."""

    kind: Literal["red"] = Field(description="random early detection, tc-red(8)")
    limit: f.Count = Field(description="packets it holds")
    min: f.Count = Field(description="average length in packets from which packets are marked or dropped")
    max: f.Count = Field(description="average length in packets from which every packet is")
    probability: f.Share = Field(description="probability of it just below `max`")
    burst: f.Count | None = Field(
        default=None,
        description="packets whose burst the average lets pass: its weight follows (default: a third of max and twice "
        "min, tc-red(8))",
    )
    ecn: f.Switch = Field(description="mark what asks for it by ECN, drop else")
    gentle: f.Switch = Field(
        default=False,
        description="from `max` to twice that the probability rises on to 1, which no kernel has: only simulators can "
        "(default false)",
    )

    @model_validator(mode="after")
    def _check_thresholds(self) -> Red:
        if not self.min < self.max <= self.limit:
            raise f.fault(f"min {self.min}, max {self.max} and limit {self.limit} do not ascend")
        if self.burst is not None and self.burst < self.min:
            raise f.fault(f"burst {self.burst} is below min {self.min}: no weight of the average gives that")
        return self


BottleneckQueue = Annotated[
    Annotated[Red, Tag("<red>")] | Annotated[Pfifo, Tag("<pfifo>")],
    Discriminator(lambda given: "<red>" if _kind_of(given) == "red" else "<pfifo>"),
]


def _kind_of(given: Any) -> Any:
    return given.get("kind") if isinstance(given, dict) else getattr(given, "kind", None)


class Direct(Closed):
    """A cable between `client1` and `server`."""

    kind: Literal["direct"] = Field(description="a cable between client1 and server")
    rate: f.LinkRate = Field(description="rate of the cable")
    rtt: f.Delay = Field(default=Duration(100), description="round-trip time; no real cable has none (default 100 us)")


class Delay(Closed):
    """A sender and a receiver with a delay element between them."""

    kind: Literal["delay"] = Field(description="client1 and server with a delay element between")
    rate: f.LinkRate = Field(description="rate of both links")
    rtt: f.Delay = Field(description="round-trip time that the delay element adds")
    delay_placement: Placement = Field(default="split", description="direction that is delayed; split is half each")


HostRate = Annotated[
    Annotated[Literal["unlimited"], Tag("<word>")] | Annotated[f.LinkRate, Tag("<rate>")],
    Discriminator(lambda given: "<word>" if given == "unlimited" else "<rate>"),
]


class Dumbbell(Closed):
    """Several senders that meet at a switch, whose port towards the delay element is the bottleneck."""

    kind: Literal["dumbbell"] = Field(description="senders, a switch as bottleneck, a delay element, receivers")
    rate: f.LinkRate = Field(description="rate of the bottleneck")
    host_rate: HostRate | None = Field(
        default=None,
        description="rate of every host (default: that of `rate`); unlimited: packets leave it in no time, and none "
        "waits there",
    )
    rtt: f.Delay = Field(description="round-trip time that the delay element adds")
    senders: Annotated[int, Field(strict=True, ge=1, le=100)] = Field(description="number of clients")
    receivers: Annotated[int, Field(strict=True, ge=1, le=100)] = Field(default=1, description="number of servers")
    bottleneck_queue: BottleneckQueue = Field(
        default=Pfifo(kind="pfifo", limit=100),
        description="queue of the switch's port (default pfifo, 100 packets)",
    )
    reverse_queue: Pfifo | None = Field(
        default=None,
        description="queue of a second switch before the receivers, whose port towards the senders has the "
        "bottleneck's rate (default: none, only hosts limit what goes back)",
    )
    delay_placement: Placement = Field(default="split", description="direction that is delayed; split is half each")
    further_delays: tuple[f.Delay, ...] = Field(
        default=(), description="what each receiver's round-trip time is longer than `rtt` (default: nothing)"
    )


TOPOLOGIES: dict[str, type[Closed]] = {"direct": Direct, "delay": Delay, "dumbbell": Dumbbell}


def _topology_tag(given: Any) -> str | None:
    kind = given.get("kind") if isinstance(given, dict) else None
    return f"<{kind}>" if isinstance(kind, str) and kind in TOPOLOGIES else None


Topology = Annotated[
    Annotated[Direct, Tag("<direct>")] | Annotated[Delay, Tag("<delay>")] | Annotated[Dumbbell, Tag("<dumbbell>")],
    Discriminator(_topology_tag, custom_error_type="topology", custom_error_message="unknown topology"),
]


def end_hosts(kind: str, senders: int = 1, receivers: int = 1) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the senders and of the receivers of a topology."""
    count = (senders, receivers) if kind == "dumbbell" else (1, 1)
    clients = tuple(f"client{number}" for number in range(1, count[0] + 1))
    servers = tuple(f"server{number}" for number in range(1, count[1] + 1))
    return clients, ("server",) if len(servers) == 1 else servers


class Flow(Closed):
    """TCP traffic from one host to another for a given time, or several such flows."""

    name: f.Name = Field(description="name, unique in the experiment")
    sender: f.NodeName = Field(alias="from", description="host that sends")
    receiver: f.NodeName = Field(alias="to", description="host that receives")
    algorithm: Annotated[
        Annotated[f.AlgorithmName, Tag("<name>")] | Annotated[Algorithm, Tag("<inline>")],
        Discriminator(lambda given: "<inline>" if isinstance(given, dict) else "<name>"),
    ] = Field(description="a name from `algorithms`, or a mapping like one of its entries")
    window: f.Window | None = Field(default=None, description="socket buffer of both ends (default: auto-tuning)")
    send_window: f.Window | None = Field(
        default=None, description="socket buffer of the sending end alone (default: that of `window`)"
    )
    duration: f.Length = Field(description="time for which it sends")
    start: f.Start = Field(default=Duration(0), description="start after the beginning of the run (default 0 s)")
    start_jitter: f.Delay = Field(
        default=Duration(0),
        description="largest random addition to `start`, drawn for each repetition (default 0 s)",
    )
    streams: f.Count = Field(default=1, description="parallel connections (default 1)")
    transfer: f.Transfer | None = Field(
        default=None,
        description="what a connection carries before another follows it, until `duration` is over (default: one "
        "connection for all of the duration)",
    )
    count: f.Count | None = Field(
        default=None,
        description="so many flows alike, called NAME1, NAME2, ...: the first is from `from` to `to`, the others from "
        "and to the hosts that follow these in turn",
    )


class Web(Closed):
    """Web users at one host that fetch files from an HTTP server at another."""

    name: f.Name = Field(description="name, unique among those of flows and web traffic in the experiment")
    sender: f.NodeName = Field(alias="from", description="host of the HTTP server, which sends the data")
    receiver: f.NodeName = Field(alias="to", description="host of the users")
    users: Annotated[int, Field(strict=True, ge=1, le=20_000)] = Field(description="users, each with one connection")
    algorithm: Annotated[
        Annotated[f.AlgorithmName, Tag("<name>")] | Annotated[Algorithm, Tag("<inline>")],
        Discriminator(lambda given: "<inline>" if isinstance(given, dict) else "<name>"),
    ] = Field(description="a name from `algorithms`, or a mapping like one of its entries: that of the server")
    model: f.WebModelName = Field(default="surge", description="which file a user asks for when (default surge)")
    off_times: f.OffTimes = Field(
        default=Ratio(1_000_000), description="what the model's times between requests are taken times (default 100 %)"
    )
    duration: f.Length = Field(description="time for which the users ask")
    start: f.Start = Field(default=Duration(0), description="start after the beginning of the run (default 0 s)")


class Udp(Closed):
    """UDP traffic from one host to another whose rate is mean + swing * sin(2 pi t / period)."""

    name: f.Name = Field(description="name, unique among those of flows and web traffic in the experiment")
    sender: f.NodeName = Field(alias="from", description="host that sends")
    receiver: f.NodeName = Field(alias="to", description="host that receives")
    mean: f.LinkRate = Field(description="its mean rate, IPv4 headers included")
    swing: f.LinkRate = Field(description="by how much its rate rises above the mean and falls below it")
    period: f.Length = Field(description="time of one swing")
    duration: f.Length = Field(description="time for which it sends")
    start: f.Start = Field(default=Duration(0), description="start after the beginning of the run (default 0 s)")


class Probes(Closed):
    """What is observed while a run lasts; null turns the sampling of queues off."""

    sockets: f.Interval = Field(
        default=Duration(100_000),
        description="sampling of sockets, from which also what a flow used is read back (default 100 ms)",
    )
    queues: f.Interval | None = Field(default=Duration(100_000), description="sampling of queues (default 100 ms)")
    capture: tuple[f.FlowName, ...] = Field(default=(), description="flows whose headers are captured at the sender")
    capture_loss: f.Percent = Field(
        default=0.0,
        description="percent of a capture's packets that are taken out before it is read, as by a tcpdump that "
        "cannot keep up (default 0)",
    )
    ping: f.Interval | None = Field(
        default=None, description="interval of pings from the first sender to the first receiver (default: none)"
    )


class Drop(Closed):
    """One data packet dropped on purpose at the delay element, towards the receiver."""

    at: f.Delay = Field(description="the first data packet after this time is the one")


class Experiment(Closed):
    """One experiment of the study at one point of its sweep, every reference replaced."""

    id: f.ExperimentId = Field(description="name, unique in the study")
    like: f.ExperimentId | None = Field(
        default=None,
        description="an earlier experiment of which it takes every key that it does not give; `topology`, `hosts` and "
        "`probes` are laid over that one's key by key",
    )
    path: f.Name | None = Field(default=None, description="the network, by its name in `paths`")
    topology: Topology = Field(
        description="a network of its own, or the keys in which it differs from `path`; one of the two is required"
    )
    hosts: Hosts = Field(default=Hosts(), description="settings that differ from the study's")
    flows: tuple[Flow, ...] = Field(default=(), description="the bulk traffic; it or `web` is required")
    web: tuple[Web, ...] = Field(default=(), description="the web traffic")
    udp: tuple[Udp, ...] = Field(default=(), description="the UDP traffic")
    sweep: Sweep = Field(default=Sweep(), description="what is varied")
    repetitions: f.Count = Field(default=1, description="independent runs of every point (default 1)")
    pairs_with: f.ExperimentId | None = Field(
        default=None, description="experiment whose random draws it takes, repetition by repetition (default: its own)"
    )
    probes: Probes = Field(default=Probes(), description="what is observed")
    drops: tuple[Drop, ...] = Field(default=(), description="packets dropped on purpose")
    kernel: f.KernelName | None = Field(default=None, description="kernel of its runs (default: the study's)")
    memory: f.Memory | None = Field(
        default=None,
        description="memory of the virtual machine, half of it for TCP; windows of many MB need more (default 1 GiB)",
    )

    @property
    def every_flow(self) -> tuple[Flow, ...]:
        """Each single flow; an entry with a count stands for several."""
        topology = self.topology
        counts = (topology.senders, topology.receivers) if isinstance(topology, Dumbbell) else (1, 1)
        sides = end_hosts(topology.kind, *counts)
        return tuple(one for entry in self.flows for one in _each(entry, sides))

    @property
    def traffic(self) -> tuple[Flow | Web, ...]:
        """Each single flow, then all web traffic."""
        return (*self.every_flow, *self.web)


class FlowDefaults(Closed):
    """Keys that every flow of every experiment has unless it gives its own."""

    sender: f.Text | None = Field(default=None, alias="from", description="host that sends")
    receiver: f.Text | None = Field(default=None, alias="to", description="host that receives")
    window: f.Window | None = Field(default=None, description="socket buffer of both ends")
    duration: f.Length | None = Field(default=None, description="time for which it sends")
    start_jitter: f.Delay | None = Field(default=None, description="largest random addition to `start`")
    transfer: f.Transfer | None = Field(default=None, description="what a connection carries before another follows")


class Defaults(Closed):
    """Keys that every experiment has unless it gives its own; no references."""

    flow: FlowDefaults = Field(default=FlowDefaults(), description="keys of every flow")
    path: f.Name | None = Field(default=None, description="network of every experiment, by its name in `paths`")
    repetitions: f.Count = Field(default=1, description="independent runs of every point (default 1)")
    probes: Probes = Field(default=Probes(), description="what is observed; those of an experiment are laid over it")
    kernel: f.KernelName | None = Field(default=None, description="kernel of the runs (default: the study's)")
    memory: f.Memory | None = Field(default=None, description="memory of the virtual machine (default 1 GiB)")


def _each(entry: Flow, sides: tuple[tuple[str, ...], ...]) -> Iterator[Flow]:
    if entry.count is None:
        yield entry
        return
    side = {host: hosts for hosts in sides for host in hosts}
    for number in range(entry.count):
        sender, receiver = (
            side[first][(side[first].index(first) + number) % len(side[first])]
            for first in (entry.sender, entry.receiver)
        )
        name = f"{entry.name}{number + 1}"
        yield entry.model_copy(update={"name": name, "sender": sender, "receiver": receiver, "count": None})


class Header(Closed):
    """What a study says beside its experiments."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    title: f.Text = Field(description="one line")
    paper: Paper | None = Field(default=None, description="the publication")
    stack: f.StackName = Field(default="modern", description="stack profile (default modern)")
    kernel: f.KernelName | None = Field(
        default=None, description="kernel under every host, a name of `kernels/` (default linux-6.12)"
    )
    seed: f.Seed = Field(default=1, description="seed of order and jitter (default 1)")
    backends: tuple[f.Name, ...] = Field(
        default=(),
        description="backends whose runs are compared (`longfat crosscheck`): the factor `backend` of every experiment",
    )
    algorithms: dict[f.Name, Algorithm] = Field(min_length=1, description="the paper's names of algorithms")
    hosts: Hosts = Field(default=Hosts(), description="settings of all senders and receivers")
    paths: dict[f.Name, Topology] = Field(default={}, description="networks by name, for `path` of experiments")
    stacks: dict[f.Name, dict[f.FactorName, f.FactorValue]] = Field(
        default={},
        description="records by name, with fields of any names, for factors: `${factor.field}` is a field of the "
        "record that the factor names",
    )
    unknowns: dict[f.FactorName, Unknown] = Field(
        default={},
        description="what the paper does not state: `${name}` stands for what is assumed, anywhere in the file",
    )
    defaults: Defaults = Field(
        default=Defaults(), description="keys of all experiments, over which those of an experiment are laid"
    )
    profiles: Profiles = Field(default=Profiles(), description="thinned versions")


class Document(Header):
    """A whole study manifest."""

    experiments: tuple[Experiment, ...] = Field(min_length=1, description="the experiments")
