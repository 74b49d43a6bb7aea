# SPDX-License-Identifier: Apache-2.0
"""From a point of a study to the RunSpec of each of its repetitions.

Owns the putting together of stack, hosts and algorithms into nodes and flows. It must not choose which
points are run, nor in which order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from longfat.backends.protocol import Traits
from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, Stack
from longfat.manifest.models import Experiment, Probes
from longfat.manifest.study import HostSettings, Study, host_settings
from longfat.plan.cards import with_cards
from longfat.plan.draw import seed_of, uniform
from longfat.plan.topologies import links_of, nodes_of
from longfat.runspec import Node, Role, RunSpec
from longfat.runspec import Probes as RunProbes
from longfat.traffic import SECTIONS
from longfat.traffic.kind import Around
from longfat.units import Duration

_ROUTER_SYSCTLS = {"net.ipv4.ip_forward": "1"}


def resolve(experiment: Experiment, study: Study, stack: Stack, pins: Mapping[str, str]) -> RunSpec:
    """The run of a scenario before repetition: seed 0 and no jitter in the starts.

    It is planned for the backend that the pins name, or for the default one.
    """
    traits = traits_of(pins.get("backend", DEFAULT_BACKEND))
    hosts = host_settings(study.header.hosts, experiment.hosts)
    around = Around(study.algorithm, hosts.requested_window)
    traffic: dict[str, Any] = {
        name: tuple(section.record(one, around) for _, one in experiment.entries(name))
        for name, section in SECTIONS.items()
    }
    real_time = traits.clock == "real"
    named = nodes_of(experiment.topology, real_time=real_time)
    links = links_of(experiment.topology, hosts, experiment.drops, real_time=real_time)
    if hosts.card:
        named, links = with_cards(named, links, hosts.card)
    return RunSpec(
        nodes=tuple(_node(name, role, experiment, study, stack, hosts, traits) for name, role in named.items()),
        links=links,
        probes=_probes(experiment.probes),
        seed=0,
        pins=dict(pins),
        duration_us=_us(experiment.duration),
        **traffic | ({"memory_bytes": experiment.memory.value} if experiment.memory else {}),
    )


def repeat(scenario: RunSpec, experiment: Experiment, study_seed: int, repetition: int) -> RunSpec:
    """One repetition: its seed, and starts moved by their jitter.

    The seed comes from the study's seed, the experiment and the repetition, and from nothing that the scenario is:
    runs that are to be compared meet the same randomness (common random numbers), and repetition k stays what it is
    whatever else of the study changes. All other draws come from the seed and the name of what they are for: starts
    here, web users and losses of captures in the laboratory, the guest's entropy in the backend.

    Two experiments with the same settings have runs of their own, unless one ``pairs_with`` the other: then they
    draw alike, and a run that both need is one run.
    """
    seed = seed_of(study_seed, experiment.pairs_with or experiment.id, repetition)
    flows = tuple(
        dataclasses.replace(flow, start_us=flow.start_us + uniform(model.start_jitter.value, seed, flow.name))
        for flow, model in zip(scenario.flows, experiment.every_flow, strict=True)
    )
    return dataclasses.replace(scenario, seed=seed, flows=flows)


def _node(
    name: str,
    role: Role,
    experiment: Experiment,
    study: Study,
    stack: Stack,
    hosts: HostSettings,
    traits: Traits,
) -> Node:
    """Settings in the order of their weight: stack, study and experiment, algorithms, testbed."""
    if role == "router":
        return Node(name, role, dict(_ROUTER_SYSCTLS))
    own_kernel = traits.kernel == "own"
    sysctls = {**stack.sysctls, **hosts.sysctls}
    for one in experiment.traffic:
        if one.sender == name:
            algorithm = study.algorithm(one.algorithm)
            if own_kernel or algorithm.parameters:  # any other kernel has its own values, and no sysctl for them
                sysctls.update(algorithm.sysctls)
    if own_kernel and (role == "sender" or any(one.sender == name for one in experiment.traffic)):
        sysctls.update({setting.sysctl: setting.value for setting in SENDER_SETTINGS})
    if own_kernel and (role == "receiver" or any(one.receiver == name for one in experiment.traffic)):
        sysctls.update({setting.sysctl: setting.value for setting in RECEIVER_SETTINGS})
    return Node(name, role, sysctls, hosts.offloads, stack.initial_cwnd_segments, hosts.image, hosts.recovery)


def _probes(probes: Probes) -> RunProbes:
    return RunProbes(probes.sockets.value, _us(probes.queues), probes.capture, probes.capture_loss, _us(probes.ping))


def _us(interval: Duration | None) -> int | None:
    return interval.value if interval else None
