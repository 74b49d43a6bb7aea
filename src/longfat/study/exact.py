# SPDX-License-Identifier: Apache-2.0
"""Warnings about constant phases of flows at a drop-tail queue, for ``longfat.study.warn``."""

from __future__ import annotations

from collections.abc import Iterator

from longfat.study.graphs import Graph, ParkingLot
from longfat.study.models import Experiment, Hosts
from longfat.study.queues.fifo import Bfifo, Pfifo
from longfat.study.schema.names import Finding
from longfat.study.study import host_settings
from longfat.study.topologies import Dumbbell


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
