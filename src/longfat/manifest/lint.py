# SPDX-License-Identifier: Apache-2.0
"""Checks that need more than one key: of an experiment at one point of its sweep.

Owns what the closed models cannot see by themselves. It must not change what it checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from longfat.catalog.ccas import parameter_sysctls
from longfat.manifest.models import Algorithm, Direct, Dumbbell, Experiment, Flow, Hosts, Red
from longfat.manifest.names import Finding
from longfat.manifest.red import red_fault, red_queue
from longfat.manifest.study import host_settings
from longfat.units import Duration


def experiment_findings(experiment: Experiment, algorithms: Mapping[str, Algorithm], hosts: Hosts) -> list[Finding]:
    """What is wrong among the keys of an experiment whose single values are all right."""
    return [
        *_flow_findings(experiment, hosts),
        *_parameter_conflicts(experiment, algorithms),
        *_delay_findings(experiment),
        *_red_findings(experiment, hosts),
        *drop_findings(experiment),
    ]


def _flow_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    settings = host_settings(hosts, experiment.hosts)
    for index, flow in enumerate(experiment.flows):
        if flow.sender == flow.receiver:
            yield Finding(("flows", index, "to"), f"{flow.name!r} goes from {flow.sender!r} to itself")
        for key, window in (("window", flow.window), ("send_window", flow.send_window)):
            if window and settings.window_meaning == "effective" and window.value % 2:
                message = f"{window} cannot be halved, and an effective window is requested by its half"
                yield Finding(("flows", index, key), message, "use an even number of bytes")


def _parameter_conflicts(experiment: Experiment, algorithms: Mapping[str, Algorithm]) -> Iterator[Finding]:
    """Two flows of one sender that need different values of one sysctl: a host has one value at a time."""
    taken: dict[tuple[str, str], tuple[Flow, str]] = {}
    for index, flow in enumerate(experiment.flows):
        used = flow.algorithm if isinstance(flow.algorithm, Algorithm) else algorithms.get(flow.algorithm)
        sysctls = parameter_sysctls(used.cca, used.parameters) if used else {}
        for sysctl, value in sysctls.items():
            other, before = taken.setdefault((flow.sender, sysctl), (flow, value))
            if before != value:
                message = (
                    f"{flow.name!r} needs {sysctl} = {value} on {flow.sender!r}, "
                    f"where {other.name!r} needs {before}; a host has one value for all its flows"
                )
                yield Finding(("flows", index, "algorithm"), message, "let them start from different hosts")


def _delay_findings(experiment: Experiment) -> Iterator[Finding]:
    topology = experiment.topology
    if not isinstance(topology, Direct) and topology.delay_placement == "split" and topology.rtt.value % 2:
        message = f"{topology.rtt} cannot be split into two whole microseconds"
        yield Finding(("topology", "rtt"), message, "use an even number, or delay_placement: forward")


def _red_findings(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    topology = experiment.topology
    if isinstance(topology, Dumbbell) and isinstance(topology.bottleneck_queue, Red):
        mtu = host_settings(hosts, experiment.hosts).mtu.value
        message = red_fault(red_queue(topology.bottleneck_queue, topology.rate, mtu))
        if message:
            yield Finding(("topology", "bottleneck_queue"), message, "give a smaller burst, or smaller thresholds")


def drop_findings(experiment: Experiment) -> list[Finding]:
    """Deliberate drops that could not happen where or when they are asked for."""
    if not experiment.drops:
        return []
    topology = experiment.topology
    if isinstance(topology, Direct):
        return [Finding(("drops",), "topology 'direct' has no delay element; allowed with: delay, dumbbell")]
    if isinstance(topology, Dumbbell) and topology.receivers > 1:
        message = f"drops need a single receiver, and there are {topology.receivers}"
        return [Finding(("drops",), message)]
    end = Duration(max(flow.start.value + flow.duration.value for flow in experiment.flows))
    return [
        Finding(("drops", index, "at"), f"{drop.at} is not before the end of the last flow at {end}")
        for index, drop in enumerate(experiment.drops)
        if drop.at >= end
    ]
