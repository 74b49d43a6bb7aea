# SPDX-License-Identifier: Apache-2.0
"""Flows that meet in exact step at a drop-tail queue, for ``longfat.manifest.warn``."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.manifest.graphs import Graph, ParkingLot
from longfat.manifest.models import Dumbbell, Experiment, Hosts
from longfat.manifest.names import Finding
from longfat.manifest.study import host_settings
from longfat.queues.fifo import Bfifo, Pfifo


def exact_step(experiment: Experiment, hosts: Hosts) -> Iterator[Finding]:
    """Warn of phases or clocks that stay as they are for a whole run where several hosts share a drop-tail queue.

    Then the phase decides who loses, for the whole run and in every repetition alike (docs/virtual-time.md).
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
    told = "several hosts send through a drop-tail queue, and the phase between their packets decides who loses"
    if experiment.phases == "fixed":
        yield Finding(("phases",), f"{told}: it is fixed, alike in every repetition", "drawn, or a processing_time")
    elif not experiment.clock_tolerance.value and _equal_rates(experiment):
        message = f"{told}: clocks are exact and hosts have the rate of the queue, so that it never changes"
        yield Finding(("clock_tolerance",), message, "50 ppm, or a processing_time")


def _equal_rates(experiment: Experiment) -> bool:
    """Whether data come to some queue of a router at exactly the rate at which they leave it."""
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
