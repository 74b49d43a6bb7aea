# SPDX-License-Identifier: Apache-2.0
"""The models of a study manifest: every key, with its type and its meaning.

Owns shape and ranges. References ``${factor}`` are replaced before a model of an experiment is built, so values here
are always concrete. Must not compare experiments with each other or read files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, create_model

from longfat.spec.links import DeliberateDrop
from longfat.spec.runspec import CapturePoint
from longfat.spec.units import Duration, Ratio
from longfat.study.kernels import HostSysctlName, Kernel, KernelName, OffloadName, StackName, SysctlName, SysctlValue
from longfat.study.schema import fields as f
from longfat.study.sweep import Sweep
from longfat.study.thinning import Profiles
from longfat.study.topologies import Topology
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm
from longfat.study.traffic.flows import Flow
from longfat.study.traffic.kind import Entry, TcpEntry
from longfat.study.unknowns import Unknown


class Paper(f.Closed):
    """The publication that the study reproduces."""

    authors: tuple[f.Text, ...] = Field(min_length=1, description="names of the authors")
    year: Annotated[int, Field(strict=True, ge=1970, le=2100)] = Field(description="year of publication")
    identifier: f.Text = Field(description="report number, DOI or address")


class ProcessingTime(f.Closed):
    """Random time that a sender needs for each packet; packets keep their order."""

    jitter: f.HostTime = Field(description="the longest time; times are uniform from 0 to it; 0 us: none")


class HostKeys(f.Closed):
    """Settings that may differ between senders and receivers."""

    txqueuelen: f.Count | None = Field(
        default=None, description="packets that a host's interface queues (default 1000)"
    )
    tx_ring: f.CountFromZero | None = Field(
        default=None,
        description="packets in the transmit ring of the network card, between that queue and the wire (default 0)",
    )
    interrupt_moderation: f.HostTime | None = Field(
        default=None,
        description="time from the arrival of a packet until the card interrupts its host, which then receives all "
        "packets that have arrived by then (default 0)",
    )
    packet_time: f.HostTime | None = Field(
        default=None,
        description="time that a host needs for each arriving packet, one after the other (default 0)",
    )
    processing_time: ProcessingTime | None = Field(
        default=None,
        description="random time for each packet that a sender sends (default: if several hosts send and `phases` are"
        " drawn, up to the time of a packet on the slowest link of their ways; else none)",
    )
    input_queue: f.Count | None = Field(
        default=None,
        description="packets that may wait for a busy host; further packets are dropped. Needs a `packet_time` "
        "(default 1000, as of `net.core.netdev_max_backlog`)",
    )
    sysctls: dict[SysctlName, SysctlValue] = Field(default={}, description="net.* sysctls of senders and receivers")
    offloads: tuple[OffloadName, ...] | None = Field(default=None, description="offloads turned on (default none)")
    recovery: Literal["sack", "newreno", "reno"] | None = Field(
        default=None,
        description="how a sender recovers from losses (default: set by sysctls and stack): by selective "
        "acknowledgments (RFC 6675), by partial ones (RFC 6582), or by neither, as simulators can and no kernel does",
    )
    image: f.Text | None = Field(
        default=None,
        description="container image of senders and receivers, for backend containernet (default: the "
        "project's own userland)",
    )


class OneHost(HostKeys):
    """Settings of one sender or receiver, laid key by key over the settings of all hosts."""

    sysctls: dict[HostSysctlName, SysctlValue] = Field(default={}, description="net.* sysctls of this host")


class Hosts(HostKeys):
    """Settings of all senders and receivers; an experiment overrides single keys of the study's."""

    mtu: f.Mtu | None = Field(default=None, description="MTU of every link (default 1500 B)")
    window_meaning: Literal["effective", "requested"] | None = Field(
        default=None,
        description="effective (default): `window` is the buffer the kernel ends up with, so half of it is "
        "requested because Linux doubles it (socket(7)); requested: passed on as it is",
    )
    per_host: dict[f.NodeName, OneHost] = Field(
        default={},
        description="settings of single hosts by name, such as `client2`: they replace the settings of all hosts key "
        "by key, and an experiment's replace the study's",
    )


class Probes(f.Closed):
    """Observations of a run; null turns the sampling of queues off."""

    sockets: f.Interval = Field(
        default=Duration(100_000),
        description="sampling of sockets, from which the settings of a flow are also read back (default 100 ms)",
    )
    queues: f.Interval | None = Field(default=Duration(100_000), description="sampling of queues (default 100 ms)")
    capture: tuple[f.TrafficName, ...] = Field(
        default=(), description="names of flows and other traffic whose headers are captured"
    )
    capture_at: tuple[CapturePoint, ...] = Field(
        default=("sender",),
        min_length=1,
        description="where: at the `sender`, at the `bottleneck` as packets leave its queue, at the `receiver` "
        "(default [sender]); outstanding data and throughput of a flow are read from its capture at the sender",
    )
    capture_loss: f.Percent = Field(
        default=0.0,
        description="percent of a capture's packets that are removed before it is read, as if tcpdump could not keep "
        "up (default 0)",
    )
    ping: f.Interval | None = Field(
        default=None, description="interval of pings from the first sender to the first receiver (default: none)"
    )


class Drop(f.Closed):
    """One packet that the delay element drops deliberately, towards the receiver."""

    at: f.Delay = Field(description="packets are counted from this time on; for a SYN, a time before its flow begins")
    packet: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(
        default=DeliberateDrop.packet,
        description="number of the dropped packet, from 1, of any traffic: before a connection begins, 1 is "
        "its SYN (default 100)",
    )


Model = TypeVar("Model", bound=f.Closed)


def _with_traffic(model: type[Model]) -> type[Model]:
    """Add a key for each kind of traffic that the model lacks."""
    keys: dict[str, Any] = {
        name: (tuple[kind.model, ...], Field(default=(), description=kind.meaning))  # type: ignore[name-defined]
        for name, kind in SECTIONS.items()
        if name not in model.model_fields
    }
    return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **keys)


@_with_traffic
class Experiment(f.Closed):
    """One experiment of the study at one point of its sweep, without references."""

    id: f.ExperimentId = Field(description="name, unique in the study")
    like: f.ExperimentId | None = Field(
        default=None,
        description="an earlier experiment from which it takes every key that it does not give; `topology`, `hosts` "
        "and `probes` are laid over the earlier ones key by key",
    )
    path: f.Name | None = Field(default=None, description="the network, by its name in `paths`")
    topology: Topology = Field(
        description="its own network, or the keys in which it differs from `path`; one of the two is required"
    )
    hosts: Hosts = Field(default=Hosts(), description="settings that differ from the study's")
    flows: tuple[Flow, ...] = Field(default=(), description="the bulk traffic")
    duration: f.Length | None = Field(
        default=None,
        description="length of its runs (default: until the last traffic ends); required for pings without traffic",
    )
    sweep: Sweep = Field(default=Sweep(), description="factors that are varied")
    repetitions: f.Count = Field(default=1, description="independent runs of every point (default 1)")
    pairs_with: f.ExperimentId | None = Field(
        default=None,
        description="experiment whose random draws it shares, repetition by repetition (default: its own draws)",
    )
    probes: Probes = Field(default=Probes(), description="observations")
    drops: tuple[Drop, ...] = Field(default=(), description="packets dropped on purpose")
    kernel: KernelName | None = Field(default=None, description="kernel of its runs (default: the study's)")
    memory: f.Memory | None = Field(
        default=None,
        description="memory of the virtual machine, half of it for TCP; windows of many MB need more (default 1 GiB)",
    )
    clock_tolerance: f.ClockTolerance = Field(
        default=Ratio(50),
        description="largest error of the rate of each interface, drawn for each repetition; 0 ppm: exact clocks "
        "(default 50 ppm; IEEE 802.3 allows 100)",
    )
    phases: Literal["drawn", "fixed"] = Field(
        default="drawn",
        description="drawn (default): each repetition delays each host by less than the time of a packet on the "
        "slowest link of its ways, and senders have a `processing_time`; fixed: neither",
    )

    def entries(self, kind: str) -> tuple[tuple[int, Entry], ...]:
        """Return the traffic of a kind, one by one, with the index of its entry; an entry with a count has several."""
        return tuple((index, one) for index, entry in enumerate(getattr(self, kind)) for one in entry.each(self.sides))

    @property
    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the senders and of the receivers."""
        return self.topology.sides

    @property
    def every_flow(self) -> tuple[Flow, ...]:
        """All flows, one by one; an entry with a count has several."""
        return tuple(one for entry in self.flows for one in entry.each(self.sides))

    @property
    def sent(self) -> tuple[Entry, ...]:
        """All traffic, one by one, sorted by kind."""
        return tuple(one for kind in SECTIONS for _, one in self.entries(kind))

    @property
    def end_us(self) -> int:
        """Latest end of the measurement in microseconds."""
        ends = [one.start.value + one.duration.value for one in self.sent]
        ends += [one.start.value + one.start_jitter.value + one.duration.value for one in self.flows]
        return max(self.duration.value if self.duration else 0, *ends, 0)

    @property
    def traffic(self) -> tuple[TcpEntry, ...]:
        """All traffic with a congestion control, one by one."""
        return tuple(one for one in self.sent if isinstance(one, TcpEntry))


def _flow_defaults() -> type[f.Closed]:
    """Return a model of the keys of a flow without its name, all of them optional."""
    keys: dict[str, Any] = {
        name: (Annotated[field.annotation, Field(), *field.metadata] | None, Field(default=None, alias=field.alias))
        for name, field in Flow.model_fields.items()
        if name != "name"
    }
    meaning = "Keys of every flow of every experiment, unless the flow gives its own."
    return create_model("FlowDefaults", __base__=f.Closed, __module__=__name__, __doc__=meaning, **keys)


if TYPE_CHECKING:
    FlowDefaults = f.Closed
else:
    FlowDefaults = _flow_defaults()


class Defaults(f.Closed):
    """Keys of every experiment, unless the experiment gives its own; without references."""

    flow: FlowDefaults = Field(default=FlowDefaults(), description="any keys of every flow, except `name`")
    path: f.Name | None = Field(default=None, description="network of every experiment, by its name in `paths`")
    repetitions: f.Count = Field(default=1, description="independent runs of every point (default 1)")
    probes: Probes = Field(default=Probes(), description="observations; the probes of an experiment are laid over them")
    kernel: KernelName | None = Field(default=None, description="kernel of the runs (default: the study's)")
    memory: f.Memory | None = Field(default=None, description="memory of the virtual machine (default 1 GiB)")
    clock_tolerance: f.ClockTolerance = Field(
        default=Ratio(50), description="largest error of the rate of each interface (default 50 ppm)"
    )
    phases: Literal["drawn", "fixed"] = Field(
        default="drawn", description="whether each repetition draws distances of hosts (default drawn)"
    )


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise f.fault(f"{twice!r} is given twice; each backend is allowed once")
    return names


class Header(f.Closed):
    """A study without its experiments."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    title: f.Text = Field(description="one line")
    paper: Paper | None = Field(default=None, description="the publication")
    stack: StackName = Field(default="modern", description="stack profile (default modern)")
    kernel: KernelName | None = Field(
        default=None, description="kernel under every host, a name of `kernels/` or of `kernels` (default: the stack's)"
    )
    seed: f.Seed = Field(default=1, description="seed of order and jitter (default 1)")
    stated_repetitions: f.Count = Field(
        default=8, description="repetitions of every scenario in the evidence, stated before the runs (default 8)"
    )
    backends: Annotated[tuple[f.Name, ...], AfterValidator(_distinct)] = Field(
        default=(),
        description="backends whose runs are compared: the factor `backend` of every experiment",
    )
    kernels: dict[f.Name, Kernel] = Field(
        default={}, description="kernels with patches of the study, by the names that `kernel` uses"
    )
    algorithms: dict[f.Name, Algorithm] = Field(default={}, description="the paper's names of algorithms")
    hosts: Hosts = Field(default=Hosts(), description="settings of all senders and receivers")
    paths: dict[f.Name, Topology] = Field(default={}, description="networks by name, for `path` of experiments")
    stacks: dict[f.Name, dict[f.FactorName, f.FactorValue]] = Field(
        default={},
        description="records by name, with fields of any names, for factors: `${factor.field}` is a field of the "
        "record that the factor names",
    )
    unknowns: dict[f.FactorName, Unknown] = Field(
        default={},
        description="settings that the paper does not state: `${name}` is the assumed value, anywhere in the file",
    )
    defaults: Defaults = Field(
        default=Defaults(), description="keys of all experiments, over which the keys of an experiment are laid"
    )
    profiles: Profiles = Field(default=Profiles(), description="thinned versions")


class Document(Header):
    """A whole study manifest."""

    experiments: tuple[Experiment, ...] = Field(min_length=1, description="the experiments")
