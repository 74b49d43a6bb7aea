# SPDX-License-Identifier: Apache-2.0
"""A loaded study: the header and every experiment with the points of its sweep, all checked.

Owns the data that planning reads. Values are typed and concrete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from longfat.spec.runspec import Card, Scalar
from longfat.spec.units import Duration, Size
from longfat.study.catalog.kernels import OwnKernel
from longfat.study.catalog.stacks import kernel_of_stack
from longfat.study.models import Experiment, Header, HostKeys, Hosts, ProcessingTime
from longfat.study.schema.names import Path
from longfat.study.traffic.algorithm import Algorithm

_ETHERNET_MTU = Size(1500)

BACKEND = "backend"
"""The factor in a study that compares backends."""

# The kernel's sysctls for each recovery; without selective acknowledgments it follows RFC 6582.
_RECOVERY = {
    "sack": {"net.ipv4.tcp_sack": "1"},
    "newreno": {"net.ipv4.tcp_sack": "0"},
    "reno": {"net.ipv4.tcp_sack": "0"},
}


@dataclass(frozen=True)
class Point:
    """One scenario: factor values in base units and as in the manifest, and the experiment with these values.

    ``places`` has the places of the experiment's parts in the file.
    """

    factors: dict[str, Scalar]
    labels: dict[str, str]
    experiment: Experiment
    places: Mapping[Path, Path] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class SweptExperiment:
    """An experiment with all points of its sweep.

    ``factors`` lists each factor's values in base units, ``derived`` the formulas of values that follow from them.
    """

    id: str
    repetitions: int
    factors: Mapping[str, Sequence[Scalar]]
    points: tuple[Point, ...]
    derived: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def labels(self) -> dict[str, dict[Scalar, str]]:
        """The values of each factor as in the manifest, by their value in base units."""
        found: dict[str, dict[Scalar, str]] = {name: {} for name in self.factors}
        for point in self.points:
            for name, label in point.labels.items():
                found.setdefault(name, {})[point.factors[name]] = label
        return found

    @cached_property
    def flows(self) -> tuple[str, ...]:
        """The names of the flows at any point, in the manifest's order."""
        return self.names("flows")

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the names of the traffic of a kind at any point, in the manifest's order."""
        return tuple(dict.fromkeys(one.name for point in self.points for _, one in point.experiment.entries(kind)))


@dataclass(frozen=True)
class Study:
    """A checked study. ``file`` is the manifest's path as it was given, for messages only."""

    file: str
    header: Header
    experiments: tuple[SweptExperiment, ...]

    def over_backends(self) -> Study:
        """Return the study with the factor `backend` in every experiment, if it compares backends."""
        names = self.header.backends
        if not names:
            return self
        return replace(self, experiments=tuple(_over_backends(one, names) for one in self.experiments))

    @property
    def name(self) -> str:
        """The study's name."""
        return self.header.study

    def algorithm(self, used: str | Algorithm) -> Algorithm:
        """Return the algorithm that a flow names or defines."""
        return used if isinstance(used, Algorithm) else self.header.algorithms[used]

    def kernel_of(self, experiment: Experiment, stack: str | None = None) -> OwnKernel | None:
        """Return the kernel of an experiment's runs; None if it names no kernel and adds no file to one.

        Runs that name no kernel have the kernel of the ``stack``, by default the study's stack.
        """
        name = experiment.kernel or self.header.kernel
        used = {self.algorithm(one.algorithm).file for one in experiment.traffic}
        sources = tuple(sorted((file for file in used if file), key=lambda file: file.name))
        if name is None and not sources:
            return None
        named = self.header.kernels.get(name or "")
        base = name or kernel_of_stack(stack or self.header.stack)
        return replace(named.own if named else OwnKernel(base), sources=sources)

    def own_kernels(self, stack: str | None = None) -> dict[str, OwnKernel]:
        """Return the kernels to which the study adds files under a stack, by name."""
        points = (point for experiment in self.experiments for point in experiment.points)
        kernels = (self.kernel_of(point.experiment, stack) for point in points)
        return {kernel.name: kernel for kernel in kernels if kernel and kernel.changed}


def _over_backends(experiment: SweptExperiment, names: tuple[str, ...]) -> SweptExperiment:
    points = tuple(
        replace(point, factors={**point.factors, BACKEND: name}, labels={**point.labels, BACKEND: name})
        for point in experiment.points
        for name in names
    )
    return replace(experiment, factors={**experiment.factors, BACKEND: names}, points=points)


@dataclass(frozen=True)
class HostSettings:
    """The merged settings of senders and receivers from study and experiment, by the names of ``HostKeys``."""

    mtu: Size = _ETHERNET_MTU
    txqueuelen: int = 1000  # as of an Ethernet interface (DEFAULT_TX_QUEUE_LEN in Linux)
    tx_ring: int = 0
    interrupt_moderation: Duration | None = None
    packet_time: Duration | None = None
    input_queue: int = Card.input_packets
    window_meaning: str = "effective"
    recovery: str | None = None
    offloads: tuple[str, ...] = ()
    image: str | None = None
    processing_time: ProcessingTime | None = None
    sysctls: dict[str, str] = field(default_factory=dict)

    @property
    def local_queue(self) -> int:
        """Packets that a host holds before its wire: in the interface's queue and in the card's ring."""
        return self.txqueuelen + self.tx_ring

    @property
    def card(self) -> Card | None:
        """The card that arriving packets pass; None if it has no effect."""
        moderation, packet = (time.value if time else 0 for time in (self.interrupt_moderation, self.packet_time))
        found = Card(moderation, packet, self.input_queue)
        return found if found.words else None

    def requested_window(self, window: Size) -> int:
        """Return the bytes to request of the socket: half of an effective window, which Linux doubles (socket(7))."""
        return window.value // 2 if self.window_meaning == "effective" else window.value

    def window_of(self, buffer_bytes: int) -> Size:
        """Return the window that results in a socket buffer of ``buffer_bytes``."""
        return Size(buffer_bytes if self.window_meaning == "effective" else buffer_bytes // 2)


def host_settings(study: Hosts, experiment: Hosts, host: str | None = None) -> HostSettings:
    """Merge the experiment's settings over the study's and the defaults, sysctls key by key.

    With ``host``, the settings of this single host replace the settings of all hosts.
    """
    own = (level.per_host[host] for level in (experiment, study) if host in level.per_host)
    layers: tuple[HostKeys, ...] = (*own, experiment, study)
    stated = {
        name: value
        for layer in reversed(layers)
        for name in layer.model_fields_set
        if name not in ("sysctls", "per_host") and (value := getattr(layer, name)) is not None
    }
    sysctls: dict[str, str] = {}
    for layer in reversed(layers):
        sysctls |= _RECOVERY.get(layer.recovery or "", {}) | layer.sysctls
    return HostSettings(**stated, sysctls=sysctls)
