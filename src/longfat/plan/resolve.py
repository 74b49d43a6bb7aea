# SPDX-License-Identifier: Apache-2.0
"""Resolution of a study's point to the RunSpec of each repetition.

Owns the combination of stack, hosts and algorithms into nodes and flows. Must not choose the points, or their order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from longfat.backends.protocol import Feature, Traits
from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.plan.draw import draws, packet_times_ns, seed_of, uniform, with_draws, with_processing
from longfat.plan.holders import with_cards
from longfat.plan.topologies import links_of, nodes_of, with_own_queues
from longfat.spec.runspec import Node, Role, RunSpec
from longfat.spec.runspec import Probes as RunProbes
from longfat.spec.units import Duration, Size
from longfat.study.catalog.stacks import RECEIVER_SETTINGS, SENDER_SETTINGS, Stack
from longfat.study.models import Experiment, Probes
from longfat.study.study import HostSettings, Study, host_settings
from longfat.study.traffic import SECTIONS
from longfat.study.traffic.kind import Around, TcpEntry

LARGEST_BUFFER_BYTES = 212_992  # the kernel's default limit (SK_RMEM_MAX in net/sock.h)
_ROUTER_SYSCTLS = {"net.ipv4.ip_forward": "1"}


def resolve(experiment: Experiment, study: Study, stack: Stack, pins: Mapping[str, str]) -> RunSpec:
    """Return the run of a scenario before repetition: seed 0, no jitter of starts, exact clocks, no distances.

    It is planned for the backend in the pins, or for the default one.
    """
    traits = traits_of(pins.get("backend", DEFAULT_BACKEND))
    hosts = host_settings(study.header.hosts, experiment.hosts)
    around = Around(study.algorithm, hosts.requested_window)
    traffic: dict[str, Any] = {
        name: tuple(section.record(one, around) for _, one in experiment.entries(name))
        for name, section in SECTIONS.items()
    }
    limits = _buffer_limits(experiment, hosts) if traits.kernel == "own" else {}
    real_time = traits.clock == "real"
    named = nodes_of(experiment.topology, real_time=real_time)
    links = links_of(experiment.topology, hosts, experiment.drops, experiment.end_us, real_time=real_time)
    settings = {
        name: host_settings(study.header.hosts, experiment.hosts, name)
        for name, role in named.items()
        if role != "router"
    }
    each = {name: dataclasses.replace(own, sysctls=limits | own.sysctls) for name, own in settings.items()}
    links = with_own_queues(links, {name: own.local_queue for name, own in each.items()})
    named, links = with_cards(named, links, {name: own.card for name, own in each.items() if own.card})
    tcp = experiment.traffic  # evaluated once, because an entry with a count generates all of its flows
    scenario = RunSpec(
        nodes=tuple(_node(name, role, tcp, study, stack, each.get(name), traits) for name, role in named.items()),
        links=links,
        probes=_probes(experiment.probes),
        seed=0,
        pins=dict(pins),
        duration_us=_us(experiment.duration),
        **traffic | ({"memory_bytes": experiment.memory.value} if experiment.memory else {}),
    )
    return with_processing(scenario, _processing_ns(scenario, experiment, each, traits))


def _processing_ns(
    scenario: RunSpec, experiment: Experiment, each: Mapping[str, HostSettings], traits: Traits
) -> dict[str, int]:
    """Return the longest processing time of a packet in nanoseconds, by the sending host's name.

    If several hosts send and phases are drawn, a host without a stated time has the time of a full packet on the
    slowest link of its routes, on a backend with such times.
    """
    senders = {one.sender: each[one.sender].processing_time for one in scenario.sent}
    drawn = experiment.phases == "drawn" and draws(traits) and Feature.PROCESSING in traits.can
    default = packet_times_ns(scenario) if drawn and len(senders) > 1 else {}
    return {name: 1000 * stated.jitter.value if stated else default.get(name, 0) for name, stated in senders.items()}


def repeat(scenario: RunSpec, experiment: Experiment, study_seed: int, repetition: int) -> RunSpec:
    """Return one repetition: with its seed, drawn clocks and distances, and starts moved by their jitter.

    The seed depends on the study's seed, the experiment and the repetition, not on the scenario: compared runs have
    common random numbers, and repetition k does not depend on the rest of the study. All other draws depend on the seed
    and the name of their purpose: starts, clocks and distances here, web users and losses of captures in the guest, the
    guest's entropy in the backend. Machines in real time have their own clocks and distances.

    Two experiments with the same settings have different runs, unless one ``pairs_with`` the other: then they share
    their draws, and a run that both need is one run.
    """
    seed = seed_of(study_seed, experiment.pairs_with or experiment.id, repetition)
    flows = tuple(
        dataclasses.replace(flow, start_us=flow.start_us + uniform(model.start_jitter.value, seed, flow.name))
        for flow, model in zip(scenario.flows, experiment.every_flow, strict=True)
    )
    run = dataclasses.replace(scenario, seed=seed, flows=flows)
    if not draws(traits_of(scenario.pins.get("backend", DEFAULT_BACKEND))):
        return run
    drawn = experiment.phases == "drawn"
    return with_draws(run, tolerance_ppm=experiment.clock_tolerance.value, phases_drawn=drawn)


def _node(
    name: str,
    role: Role,
    traffic: Sequence[TcpEntry],
    study: Study,
    stack: Stack,
    own: HostSettings | None,
    traits: Traits,
) -> Node:
    """Return a node with settings in ascending precedence: stack, study and experiment, algorithms, project."""
    if own is None:
        return Node(name, role, dict(_ROUTER_SYSCTLS))
    own_kernel = traits.kernel == "own"
    sysctls = {**stack.sysctls, **own.sysctls}
    for one in traffic:
        if one.sender == name:
            algorithm = study.algorithm(one.algorithm)
            if own_kernel or algorithm.parameters:  # other kernels have their own values, and no sysctl for them
                sysctls.update(algorithm.sysctls)
    if own_kernel and (role == "sender" or any(one.sender == name for one in traffic)):
        sysctls.update({setting.sysctl: setting.value for setting in SENDER_SETTINGS})
    if own_kernel and (role == "receiver" or any(one.receiver == name for one in traffic)):
        sysctls.update({setting.sysctl: setting.value for setting in RECEIVER_SETTINGS})
    return Node(name, role, sysctls, own.offloads, stack.initial_cwnd_segments, own.image, own.recovery)


def _buffer_limits(experiment: Experiment, hosts: HostSettings) -> dict[str, str]:
    """Return the limits of socket buffers that the windows of an experiment need above the kernel's own.

    All namespaces share them (``longfat.guest.sysctls``), so all hosts have the limits of the largest windows.
    """
    flows = experiment.every_flow
    receive = max((flow.window.value for flow in flows if flow.window), default=0)
    send = max((window.value for flow in flows if (window := flow.send_window or flow.window)), default=0)
    asked = {"rmem_max": hosts.requested_window(Size(receive)), "wmem_max": hosts.requested_window(Size(send))}
    return {f"net.core.{name}": str(size) for name, size in asked.items() if size > LARGEST_BUFFER_BYTES}


def _probes(probes: Probes) -> RunProbes:
    return RunProbes(
        socket_interval_us=probes.sockets.value,
        queue_interval_us=_us(probes.queues),
        capture=probes.capture,
        capture_at=probes.capture_at,
        capture_loss_percent=probes.capture_loss,
        ping_interval_us=_us(probes.ping),
    )


def _us(interval: Duration | None) -> int | None:
    return interval.value if interval else None
