# SPDX-License-Identifier: Apache-2.0
"""Warnings about allowed settings that are probably not intended, each with file, line and key.

A study with warnings runs unchanged; ``lint`` finds wrong settings.
"""

from __future__ import annotations

from collections.abc import Iterator

from longfat.spec.units import Rate, Size
from longfat.study.catalog.ccas import CCAS, PARAMETER_SYSCTLS
from longfat.study.catalog.sysctls import SYSCTLS, any_interface
from longfat.study.graphs import Graph, ParkingLot
from longfat.study.models import Experiment, Header, HostKeys, Hosts
from longfat.study.queues.fifo import Bfifo, Pfifo
from longfat.study.schema.names import Finding, Path, nearest
from longfat.study.schema.source import Source
from longfat.study.study import Study, SweptExperiment, host_settings
from longfat.study.topologies import Dumbbell
from longfat.study.traffic.algorithm import Algorithm
from longfat.system.errors import Problem


def study_warnings(source: Source, study: Study) -> tuple[Problem, ...]:
    """Return the warnings about a study that was read from ``source``."""
    general = tuple(source.problem(finding) for finding in _sysctls_without_kernel(study.header.hosts))
    return general + tuple(
        source.problem(finding.below("experiments", index))
        for index, swept in enumerate(study.experiments)
        for finding in (
            *_swept_warnings(swept, study.header.hosts),
            *_unknown_sysctls(swept),
            *idle_repetitions(swept, study.header),
        )
    )


def _unknown_sysctls(swept: SweptExperiment) -> Iterator[Finding]:
    return iter(dict.fromkeys(one for point in swept.points for one in _sysctls_without_kernel(point.experiment.hosts)))


def _sysctls_without_kernel(hosts: Hosts) -> Iterator[Finding]:
    """Yield sysctls that the project's kernel lacks; backends with that kernel refuse such runs."""
    message = "the project's kernel has no such sysctl; only a machine's own kernel can run this"
    layers: list[tuple[Path, HostKeys]] = [(("hosts",), hosts)]
    layers += [(("hosts", "per_host", name), one) for name, one in hosts.per_host.items()]
    for path, layer in layers:
        for name in layer.sysctls:
            if (given := any_interface(name)) not in SYSCTLS and given not in PARAMETER_SYSCTLS:
                yield Finding((*path, "sysctls", name), message, nearest(given, SYSCTLS))


def _swept_warnings(swept: SweptExperiment, hosts: Hosts) -> Iterator[Finding]:
    """Yield the first warning about each key, with the number of points that it applies to."""
    found: dict[tuple[str | int, ...], list[tuple[str, Finding]]] = {}
    for point in swept.points:
        place = ", ".join(f"{name}={label}" for name, label in point.labels.items())
        for finding in (*_idle_queues(point.experiment, hosts), *exact_step(point.experiment, hosts)):
            found.setdefault(finding.path, []).append((place, finding))
    for places in found.values():
        place, first = places[0]
        count = f"; so in {len(places)} of {len(swept.points)} scenarios, the first with {place}" if place else ""
        yield Finding(first.path, first.message + count, first.hint)


def _idle_queues(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    """Yield queues of a switch that cannot fill: the hosts before it have longer queues, and in total no higher rate.

    Packets then wait and are dropped at the hosts, and the length of the switch's queue has no effect.
    """
    topology = experiment.topology
    if not isinstance(topology, Dumbbell):
        return
    host_rate = topology.host_rate or topology.rate
    if host_rate == "unlimited":
        return
    clients, servers = topology.sides
    sending = {one.sender for one in experiment.sent}
    ends: dict[Path, tuple[str, tuple[str, ...]]] = {
        ("bottleneck_queue",): ("switch", clients),
        ("reverse_queue",): ("switch2", servers),
    }
    for path, queue, place in topology.queues(host_settings(hosts, experiment.hosts).mtu):
        (switch, before), held = ends[path], queue.to_run(place).limit_packets
        active = [name for name in before if name in sending]
        lengths = sorted({host_settings(hosts, experiment.hosts, name).local_queue for name in active})
        together = Rate(len(active) * host_rate.value)
        if active and together <= place.rate and held is not None and lengths[0] > held:
            send, rate, wait = ("sends at", f"{together}", "its")
            local = " to ".join(map(str, dict.fromkeys((lengths[0], lengths[-1]))))
            if len(active) > 1:
                send, rate, wait = ("send at", f"{together} together", "their")
            message = (
                f"the queue of {switch!r}, {held} packets, cannot fill: {_listed(active)} before it {send} "
                f"{rate} and {switch!r} at {place.rate}; packets wait in {wait} own queue of {local} packets"
            )
            hint = f"a host_rate above the rate of {switch!r}, or more senders, fill it"
            yield Finding(("topology", *path), message, hint)


def _listed(names: list[str]) -> str:
    """Format names: ``'a'``, ``'a' and 'b'``, ``'a' to 'd'``."""
    if len(names) > 2:
        return f"{names[0]!r} to {names[-1]!r}"
    return " and ".join(map(repr, names))


def exact_step(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    """Warn about constant phases or exact clocks if several hosts share a drop-tail queue.

    The phase then decides which flow loses packets, all the time and in every repetition (docs/virtual-time.md).
    """
    topology = experiment.topology
    if not isinstance(topology, Dumbbell | Graph | ParkingLot) or len({one.sender for one in experiment.sent}) < 2:
        return
    settings = host_settings(hosts, experiment.hosts)
    if not any(isinstance(queue, Pfifo | Bfifo) for _, queue, _ in topology.queues(settings.mtu)):
        return
    processing = settings.processing_time
    if processing.jitter.value if processing else experiment.phases == "drawn":
        return
    words = "several hosts send through a drop-tail queue, and the phase of their packets decides which one loses"
    if experiment.phases == "fixed":
        yield Finding(
            ("phases",), f"{words}: it is fixed, and equal in every repetition", "drawn, or a processing_time"
        )
    elif not experiment.clock_tolerance.value and _equal_rates(experiment):
        message = f"{words}: clocks are exact and hosts have the rate of the queue, so it never changes"
        yield Finding(("clock_tolerance",), message, "50 ppm, or a processing_time")


def _equal_rates(experiment: Experiment) -> bool:
    """Return whether the input and output rates of some router queue are exactly equal."""
    topology = experiment.topology
    if isinstance(topology, Dumbbell):
        return (topology.host_rate or topology.rate) == topology.rate
    graph = topology.graph if isinstance(topology, ParkingLot) else topology
    if not isinstance(graph, Graph):
        return False
    sending = {*graph.routers, *(one.sender for one in experiment.sent)}
    receiving = {*graph.routers, *(one.receiver for one in experiment.sent)}
    ends = [(link.between, link.rates) for link in graph.links]
    towards = [(*pair, rates[0]) for pair, rates in ends] + [(*pair[::-1], rates[1]) for pair, rates in ends]
    return any(
        rate and rate == other
        for near, far, rate in towards
        if near in graph.routers and far in receiving
        for before, behind, other in towards
        if behind == near and before != far and before in sending
    )


def idle_repetitions(swept: SweptExperiment, header: Header) -> Iterator[Finding]:
    """Warn about repetitions that would be identical runs: in virtual time they count once."""
    if swept.repetitions == 1:
        return
    idle = sum(not varies(point.experiment, header) for point in swept.points)
    if idle:
        drawing = ", ".join(name for name, cca in CCAS.items() if cca.draws)
        where = "" if idle == len(swept.points) else f" at {idle} of {len(swept.points)} points"
        message = (
            f"{swept.repetitions} repetitions of experiment {swept.id!r} are the same run{where}: no draw "
            "differs between them, and byte-identical runs count once"
        )
        drawing = f"start_jitter of a flow, web traffic, capture_loss, queues such as red and {drawing} draw"
        hint = f"clock_tolerance, drawn phases, {drawing}; or state one repetition"
        yield Finding(("repetitions",), message, hint)


def varies(experiment: Experiment, header: Header) -> bool:
    """Return whether the seed affects more than ports and hash keys of a run in virtual time."""
    topology, probes = experiment.topology, experiment.probes
    used = (
        one.algorithm if isinstance(one.algorithm, Algorithm) else header.algorithms[one.algorithm]
        for one in experiment.traffic
    )
    return (
        experiment.phases == "drawn"
        or experiment.clock_tolerance.value > 0
        or bool(experiment.hosts.processing_time or header.hosts.processing_time)
        or any(one.draws for one in experiment.sent)
        or bool(probes.capture and probes.capture_loss)
        or topology.is_impaired
        or any(queue.draws for _, queue, _ in topology.queues(Size(1500)))
        or any(algorithm.definition.draws for algorithm in used)
    )
