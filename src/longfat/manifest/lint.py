# SPDX-License-Identifier: Apache-2.0
"""Checks that need more than one key: of an experiment at one point of its sweep.

Owns the checks that the closed models cannot make by themselves. It must not change its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from longfat.catalog.ccas import parameter_sysctls
from longfat.manifest.models import Algorithm, Direct, Dumbbell, Experiment, Flow, Hosts, Red, Web
from longfat.manifest.names import Finding
from longfat.manifest.possible import impossible
from longfat.manifest.red import red_fault, red_queue
from longfat.manifest.study import host_settings
from longfat.units import Duration


def experiment_findings(experiment: Experiment, algorithms: Mapping[str, Algorithm], hosts: Hosts) -> list[Finding]:
    """The faults among the keys of an experiment whose single values are all valid."""
    return [
        *_traffic_findings(experiment),
        *_flow_findings(experiment, hosts),
        *_web_findings(experiment, algorithms),
        *_udp_findings(experiment),
        *_parameter_conflicts(experiment, algorithms),
        *_delay_findings(experiment),
        *_red_findings(experiment, hosts),
        *drop_findings(experiment),
        *impossible(experiment, host_settings(hosts, experiment.hosts).mtu),
    ]


def _flow_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    settings = host_settings(hosts, experiment.hosts)
    names = [flow.name for flow in experiment.every_flow]
    if double := next((name for name in names if names.count(name) > 1), None):
        yield Finding(("flows",), f"flow {double!r} is there twice, counted ones among them; names are unique")
    for index, flow in enumerate(experiment.flows):
        if flow.sender == flow.receiver:
            yield Finding(("flows", index, "to"), f"{flow.name!r} goes from {flow.sender!r} to itself")
        for key, window in (("window", flow.window), ("send_window", flow.send_window)):
            if window and settings.window_meaning == "effective" and window.value % 2:
                message = f"{window} cannot be halved, but an effective window is requested by its half"
                yield Finding(("flows", index, key), message, "use an even number of bytes")


def _single_flows(experiment: Experiment) -> list[tuple[str, int, Flow | Web]]:
    """Each single flow with the place of its entry."""
    alone = [experiment.model_copy(update={"flows": (entry,)}) for entry in experiment.flows]
    return [("flows", index, flow) for index, one in enumerate(alone) for flow in one.every_flow]


def _traffic_findings(experiment: Experiment) -> Iterator[Finding]:
    if not experiment.traffic:
        yield Finding(("flows",), "is required here and missing: an experiment needs flows, or web traffic")
    names = {flow.name for flow in experiment.every_flow}
    for index, web in enumerate(experiment.web):
        if web.name in names:
            yield Finding(("web", index, "name"), f"{web.name!r} is the name of a flow too; names are unique")


def _web_findings(experiment: Experiment, algorithms: Mapping[str, Algorithm]) -> Iterator[Finding]:
    """Servers whose data would go nowhere, or whose algorithm another traffic of the host contradicts.

    The route of a host gives its servers their algorithm, and would give it to the host's flows as well.
    """
    taken: dict[str, tuple[str, str]] = {}
    for index, web in enumerate(experiment.web):
        if web.sender == web.receiver:
            yield Finding(("web", index, "to"), f"{web.name!r} goes from {web.sender!r} to itself")
        if (used := _algorithm(web.algorithm, algorithms)) is None:
            continue
        others = [(flow.name, _algorithm(flow.algorithm, algorithms)) for flow in _sent_by(web.sender, experiment)]
        known = [(name, other.cca) for name, other in others if other]
        for name, cca in [*known, taken.setdefault(web.sender, (web.name, used.cca))]:
            if cca != used.cca:
                message = f"{web.name!r} needs {used.cca} on {web.sender!r}, where {name!r} needs {cca}"
                yield Finding(("web", index, "algorithm"), message, "let them start from different hosts")


def _udp_findings(experiment: Experiment) -> Iterator[Finding]:
    names = {one.name for one in experiment.traffic}
    for index, udp in enumerate(experiment.udp):
        if udp.name in names:
            yield Finding(("udp", index, "name"), f"{udp.name!r} is the name of TCP traffic too; names are unique")
        if udp.sender == udp.receiver:
            yield Finding(("udp", index, "to"), f"{udp.name!r} goes from {udp.sender!r} to itself")
        if udp.swing.value > udp.mean.value:
            message = f"{udp.swing} is more than the mean of {udp.mean}; no rate is below 0"
            yield Finding(("udp", index, "swing"), message)


def _sent_by(host: str, experiment: Experiment) -> list[Flow]:
    return [flow for flow in experiment.every_flow if flow.sender == host]


def _algorithm(given: str | Algorithm, algorithms: Mapping[str, Algorithm]) -> Algorithm | None:
    return given if isinstance(given, Algorithm) else algorithms.get(given)


def _parameter_conflicts(experiment: Experiment, algorithms: Mapping[str, Algorithm]) -> Iterator[Finding]:
    """Traffic of one sender that needs different values of one sysctl: a host has one value at a time."""
    taken: dict[tuple[str, str], tuple[str, str]] = {}
    entries = [("web", index, web) for index, web in enumerate(experiment.web)]
    for section, index, traffic in [*_single_flows(experiment), *entries]:
        used = _algorithm(traffic.algorithm, algorithms)
        sysctls = parameter_sysctls(used.cca, used.parameters) if used else {}
        for sysctl, value in sysctls.items():
            other, before = taken.setdefault((traffic.sender, sysctl), (traffic.name, value))
            if before != value:
                message = (
                    f"{traffic.name!r} needs {sysctl} = {value} on {traffic.sender!r}, "
                    f"where {other!r} needs {before}; a host has one value for all its flows"
                )
                yield Finding((section, index, "algorithm"), message, "let them start from different hosts")


def _delay_findings(experiment: Experiment) -> Iterator[Finding]:
    topology = experiment.topology
    if not isinstance(topology, Direct) and topology.delay_placement == "split" and topology.rtt.value % 2:
        message = f"{topology.rtt} cannot be split into two whole microseconds"
        yield Finding(("topology", "rtt"), message, "use an even number, or delay_placement: forward")
    if isinstance(topology, Dumbbell) and topology.further_delays:
        count, wanted = len(topology.further_delays), topology.receivers
        if count != wanted:
            message = f"has {count} delays for {wanted} receivers; give one for each"
            yield Finding(("topology", "further_delays"), message)
        if topology.reverse_queue:
            message = "cannot be combined with reverse_queue: the delay element then has one link to all receivers"
            yield Finding(("topology", "further_delays"), message)


def _red_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    topology = experiment.topology
    if isinstance(topology, Dumbbell) and isinstance(topology.bottleneck_queue, Red):
        mtu = host_settings(hosts, experiment.hosts).mtu.value
        message = red_fault(red_queue(topology.bottleneck_queue, topology.rate, mtu))
        if message:
            yield Finding(("topology", "bottleneck_queue"), message, "give a smaller burst, or smaller thresholds")


def drop_findings(experiment: Experiment) -> list[Finding]:
    """Deliberate drops that could not happen where or when they are asked for."""
    if not experiment.drops or not experiment.traffic:
        return []
    topology = experiment.topology
    if isinstance(topology, Direct):
        return [Finding(("drops",), "topology 'direct' has no delay element; allowed with: delay, dumbbell")]
    if isinstance(topology, Dumbbell) and topology.receivers > 1:
        message = f"drops need a single receiver, but there are {topology.receivers}"
        return [Finding(("drops",), message)]
    end = Duration(max(traffic.start.value + traffic.duration.value for traffic in experiment.traffic))
    return [
        Finding(("drops", index, "at"), f"{drop.at} is not before the end of the last flow at {end}")
        for index, drop in enumerate(experiment.drops)
        if drop.at >= end
    ]
