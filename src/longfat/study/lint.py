# SPDX-License-Identifier: Apache-2.0
"""Checks of several keys of an experiment at one point of its sweep. Must not change its input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from longfat.spec.network import SMALLEST_RECEIVE_BUFFER_BYTES, SMALLEST_SEND_BUFFER_BYTES
from longfat.spec.runspec import RunSpec
from longfat.spec.units import Duration, Size
from longfat.study.catalog.ccas import STACK_PARAMETERS
from longfat.study.catalog.offloads import SEGMENTING
from longfat.study.graphs import MOST_LINKS, Graph, ParkingLot, Policer
from longfat.study.impairments import impairment_findings
from longfat.study.models import Experiment, Hosts
from longfat.study.schema.names import Finding, Path
from longfat.study.study import host_settings
from longfat.study.topologies import Delay, Direct, Dumbbell, delays_us
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.algorithm import Algorithm
from longfat.study.traffic.kind import TcpEntry

BLOCK_BYTES = 1 << 20  # memory that iperf2 fills for each stream that it sends, as in guest/traffic.py
BASE_BYTES = 64 << 20  # memory of the guest itself


def experiment_findings(experiment: Experiment, algorithms: Mapping[str, Algorithm], hosts: Hosts) -> list[Finding]:
    """Return the faults between keys of an experiment whose single values are all valid."""
    return [
        *_traffic_findings(experiment),
        *_flow_findings(experiment, hosts),
        *_route_conflicts(experiment, algorithms),
        *_parameter_conflicts(experiment, algorithms, hosts),
        *_file_conflicts(experiment, algorithms),
        *_delay_findings(experiment),
        *_queue_findings(experiment, hosts),
        *_card_findings(experiment, hosts),
        *drop_findings(experiment),
        *_unseen_flows(experiment),
        *_memory_findings(experiment),
    ]


def _card_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    """Yield hosts with cards that need more links than a network can have."""
    ends = [name for side in experiment.sides for name in side]
    cards = [name for name in ends if host_settings(hosts, experiment.hosts, name).card]
    if cards and isinstance(experiment.topology, Dumbbell) and len(ends) + len(cards) + 1 > MOST_LINKS:
        message = f"{len(ends)} hosts, {len(cards)} of them with cards, have more than {MOST_LINKS} links"
        yield Finding(("topology", "senders"), message, f"{MOST_LINKS // 2 - 1} hosts, or none of the times of `hosts`")


def _traffic_findings(experiment: Experiment) -> Iterator[Finding]:
    """Yield repeated names, traffic of a host to itself, and the faults that each kind finds."""
    yield from _length_findings(experiment)
    taken: dict[str, str] = {}
    for name in SECTIONS:
        for index, entry in enumerate(getattr(experiment, name)):
            if entry.name in taken:
                message = f"{entry.name!r} is also a name in {taken[entry.name]}; names are unique"
                yield Finding((name, index, "name"), message)
            if entry.sender == entry.receiver:
                yield Finding((name, index, "to"), f"{entry.name!r} goes from {entry.sender!r} to itself")
            yield from (fault.below(name, index) for fault in entry.findings())
        taken |= {one.name: name for _, one in experiment.entries(name)}


def _length_findings(experiment: Experiment) -> Iterator[Finding]:
    """Yield experiments without traffic, without a length, or shorter than their traffic."""
    if not experiment.sent and not experiment.probes.ping:
        kinds = ", ".join(SECTIONS)
        yield Finding(
            ("flows",), f"is required here and missing: an experiment needs traffic ({kinds}) or `probes.ping`"
        )
    elif not experiment.sent and experiment.duration is None:
        yield Finding(
            ("duration",), "is required here and missing: pings alone do not end", "for example, duration: 10 s"
        )
    last = max(experiment.sent, key=lambda one: one.start.value + one.duration.value, default=None)
    if experiment.duration and last and last.start.value + last.duration.value > experiment.duration.value:
        end = Duration(last.start.value + last.duration.value)
        yield Finding(("duration",), f"{experiment.duration} is over before {last.name!r} ends at {end}")


def _flow_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    settings = host_settings(hosts, experiment.hosts)
    names = [flow.name for flow in experiment.every_flow]
    if double := next((name for name in names if names.count(name) > 1), None):
        yield Finding(("flows",), f"flow {double!r} is there twice, counted ones among them; names are unique")
    for index, flow in enumerate(experiment.flows):
        windows = (
            ("window", flow.window, SMALLEST_RECEIVE_BUFFER_BYTES),
            ("send_window", flow.send_window, SMALLEST_SEND_BUFFER_BYTES),
        )
        for key, window, smallest in windows:
            if window and settings.window_meaning == "effective" and window.value % 2:
                message = f"{window} cannot be halved, but an effective window is requested by its half"
                yield Finding(("flows", index, key), message, "use an even number of bytes")
            elif window and (least := settings.window_of(smallest)) > window:
                message = f"{window} is less than a kernel makes a socket buffer; allowed: at least {least}"
                yield Finding(("flows", index, key), message)


def _unseen_flows(experiment: Experiment) -> Iterator[Finding]:
    """Yield flows whose sockets are never sampled, so that their settings cannot be read back."""
    interval = experiment.probes.sockets.value
    last = (experiment.end_us - 1) // interval * interval
    for index, flow in enumerate(experiment.flows):
        first = flow.start.value + experiment.topology.rtt.value
        if last < max(first, interval):
            message = (
                f"{flow.name!r} is never seen: sockets are sampled every {experiment.probes.sockets}, the run ends at "
                f"{Duration(experiment.end_us)}, and its first round trip at {Duration(first)}"
            )
            yield Finding(("flows", index, "duration"), message, "a longer duration, or a shorter interval of probes")


def _memory_findings(experiment: Experiment) -> Iterator[Finding]:
    """Yield experiments whose streams need more memory than the guest has."""
    memory = experiment.memory or Size(RunSpec.memory_bytes)
    streams = sum(flow.streams for flow in experiment.every_flow)
    needed = streams * BLOCK_BYTES + BASE_BYTES
    if needed > memory.value:
        message = f"{streams} streams take at least {needed >> 20} MiB of memory, but the guest has {memory}"
        yield Finding(("memory",) if experiment.memory else ("flows",), message, "give it more with `memory`")


def _over_tcp(experiment: Experiment) -> Iterator[tuple[str, int, TcpEntry]]:
    """Yield all traffic with a congestion control, one by one, with kind and index of its entry."""
    for name in SECTIONS:
        yield from ((name, index, one) for index, one in experiment.entries(name) if isinstance(one, TcpEntry))


def _route_conflicts(experiment: Experiment, algorithms: Mapping[str, Algorithm]) -> Iterator[Finding]:
    """Yield traffic whose algorithm comes from its host's route and differs from other traffic of that host.

    The route would give its algorithm to the other traffic as well.
    """
    every = [
        (name, index, one, used.cca)
        for name, index, one in _over_tcp(experiment)
        if (used := _algorithm(one.algorithm, algorithms))
    ]
    taken: dict[str, tuple[str, str]] = {}
    for name, index, entry, cca in (found for found in every if SECTIONS[found[0]].route_sets_algorithm):
        others = [
            (one.name, its)
            for other, _, one, its in every
            if one.sender == entry.sender and not SECTIONS[other].route_sets_algorithm
        ]
        for before, its in [*others, taken.setdefault(entry.sender, (entry.name, cca))]:
            if its != cca:
                message = f"{entry.name!r} needs {cca} on {entry.sender!r}, where {before!r} needs {its}"
                yield Finding((name, index, "algorithm"), message, "let them start from different hosts")


def _algorithm(given: str | Algorithm, algorithms: Mapping[str, Algorithm]) -> Algorithm | None:
    return given if isinstance(given, Algorithm) else algorithms.get(given)


def _parameter_conflicts(
    experiment: Experiment, algorithms: Mapping[str, Algorithm], hosts: Hosts
) -> Iterator[Finding]:
    """Yield traffic of one sender that needs different values of one sysctl: a host has one value.

    A parameter of the stack is set by an algorithm or by the host's sysctls, not by both.
    """
    taken: dict[tuple[str, str], tuple[str, str]] = {}
    for name, index, entry in _over_tcp(experiment):
        used = _algorithm(entry.algorithm, algorithms)
        if not used:
            continue
        sysctls, own = used.sysctls, host_settings(hosts, experiment.hosts, entry.sender).sysctls
        for parameter, stack in STACK_PARAMETERS.items():
            if parameter in used.parameters and stack.sysctl in own:
                message = f"{parameter} is {stack.sysctl}, which the hosts' sysctls set to {own[stack.sysctl]}"
                yield Finding((name, index, "algorithm"), message, "give one of the two")
            sysctls.setdefault(stack.sysctl, own.get(stack.sysctl, "the stack's own"))
        for sysctl, value in sysctls.items():
            other, before = taken.setdefault((entry.sender, sysctl), (entry.name, value))
            if before != value:
                message = (
                    f"{entry.name!r} needs {sysctl} = {value} on {entry.sender!r}, "
                    f"where {other!r} needs {before}; a host has one value for all its flows"
                )
                yield Finding((name, index, "algorithm"), message, "let them start from different hosts")


def _file_conflicts(experiment: Experiment, algorithms: Mapping[str, Algorithm]) -> Iterator[Finding]:
    """Yield C files of different folders with one name: a kernel has one congestion control of a name."""
    taken: dict[str, str] = {}
    for name, index, entry in _over_tcp(experiment):
        used = _algorithm(entry.algorithm, algorithms)
        if used and used.file and (other := taken.setdefault(used.cca, used.file.name)) != used.file.name:
            message = (
                f"{entry.name!r} needs {used.file.name}, where another flow needs {other}; a run has one {used.cca}"
            )
            yield Finding((name, index, "algorithm"), message, "let them be points of a sweep, or rename one")


def _delay_findings(experiment: Experiment) -> Iterator[Finding]:
    topology = experiment.topology
    if isinstance(topology, Graph | ParkingLot):
        found = topology.findings(experiment.end_us) if isinstance(topology, Graph) else topology.findings()
        yield from (finding.below("topology") for finding in found)
        return
    if not isinstance(topology, Direct) and topology.delay_placement == "split" and topology.rtt.value % 2:
        message = f"{topology.rtt} cannot be split into two whole microseconds"
        yield Finding(("topology", "rtt"), message, "use an even number, or delay_placement: forward")
    if not isinstance(topology, Direct):
        yield from impairment_findings(topology, *delays_us(topology))
    has_queue = not isinstance(topology, Dumbbell) or topology.reverse_queue is not None
    yield from topology.change_findings(experiment.end_us, reverse_rate=has_queue)
    if isinstance(topology, Dumbbell) and topology.further_delays:
        count, wanted = len(topology.further_delays), topology.receivers
        if count != wanted:
            message = f"has {count} delays for {wanted} receivers; give one for each"
            yield Finding(("topology", "further_delays"), message)
        if topology.reverse_queue:
            message = "cannot be combined with reverse_queue: the delay element then has one link to all receivers"
            yield Finding(("topology", "further_delays"), message)


def _queue_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    topology, mtu = experiment.topology, host_settings(hosts, experiment.hosts).mtu
    senders = {one.sender: host_settings(hosts, experiment.hosts, one.sender) for one in experiment.sent}
    segmented = any(not SEGMENTING.isdisjoint(own.offloads) for own in senders.values())
    if segmented:
        for kind in dict.fromkeys(queue.name for _, queue, _ in topology.queues(mtu) if queue.counts_packets):
            message = f"with tso or gso a packet has up to 64 KiB, and the limit of queue {kind} counts packets"
            hint = "turn both off, or take a queue that counts bytes: bfifo, red or cake"
            yield Finding(("hosts", "offloads"), message, hint)
    for path, queue, place in topology.queues(mtu):
        for finding in (*queue.findings(place), *queue.range_findings(place)):
            yield finding.below("topology", *path)
    if isinstance(topology, Dumbbell) and topology.pause:
        _, queue, place = topology.queues(mtu)[0]
        for finding in topology.pause.findings(queue.to_run(place).limit_packets):
            yield finding.below("topology", "pause")
    policers: dict[Path, Policer | None] = {}
    if isinstance(topology, Dumbbell):
        policers = {("policer",): topology.policer}
    if isinstance(topology, Graph):
        policers = {("links", number, "policer"): link.policer for number, link in enumerate(topology.links)}
    for path, policer in policers.items():
        for finding in policer.findings(mtu, segmented=segmented) if policer else ():
            yield finding.below("topology", *path)


def drop_findings(experiment: Experiment) -> list[Finding]:
    """Return deliberate drops that cannot happen at their place or time."""
    if not experiment.drops:
        return []
    topology = experiment.topology
    if not experiment.traffic:
        return [Finding(("drops",), "take data packets of TCP, and the experiment has no traffic over TCP")]
    if not isinstance(topology, Delay | Dumbbell):
        return [Finding(("drops",), f"topology {topology.kind!r} has no delay element; allowed with: delay, dumbbell")]
    if isinstance(topology, Dumbbell) and topology.receivers > 1:
        message = f"drops need a single receiver, but there are {topology.receivers}"
        return [Finding(("drops",), message)]
    end = Duration(max(traffic.start.value + traffic.duration.value for traffic in experiment.traffic))
    return [
        Finding(("drops", index, "at"), f"{drop.at} is not before the end of the last flow at {end}")
        for index, drop in enumerate(experiment.drops)
        if drop.at >= end
    ]
