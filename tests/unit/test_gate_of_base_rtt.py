# SPDX-License-Identifier: Apache-2.0
"""The gate of the base RTT judges the path, not the queue that a flow finds when it begins."""

from __future__ import annotations

import dataclasses

import pytest

from longfat.spec.gates import Evidence
from longfat.spec.gates.behaviour import base_rtt_holds
from longfat.spec.runspec import Egress, Flow, Interface, Link, Node, Probes, Queue, RunSpec

# 20 ms both ways together; the switch sends a packet of 1538 bytes in 1.23 ms and holds 50 of them, 61.5 ms.
DECLARED_US, PACKET_US, QUEUE_US = 20_000, 1230, 61_520


def spec(starts_us: tuple[int, int]) -> RunSpec:
    """Two senders that meet at a switch, then a delay; the second sends to a receiver of its own."""
    narrow = Egress(rate_bps=10_000_000, queue=Queue(limit_packets=50))
    names = ("client1", "client2", "switch", "server1", "server2")
    flows = (("f1", "client1", "server1"), ("f2", "client2", "server2"))
    return RunSpec(
        nodes=(*(Node(name, "router" if name == "switch" else "sender") for name in names), Node("delay", "router")),
        links=(
            Link(Interface("client1"), Interface("switch")),
            Link(Interface("client2"), Interface("switch")),
            Link(Interface("switch", narrow), Interface("delay", Egress(delay_us=DECLARED_US // 2))),
            Link(Interface("delay", Egress(delay_us=DECLARED_US // 2)), Interface("server1")),
            Link(Interface("delay", Egress(delay_us=DECLARED_US // 2)), Interface("server2")),
        ),
        flows=tuple(
            Flow(name, sender, receiver, "reno", 10_000_000, start_us=start)
            for (name, sender, receiver), start in zip(flows, starts_us, strict=True)
        ),
        probes=Probes(),
        seed=1,
    )


def missed(run: RunSpec, first_us: int, second_us: int) -> list[str]:
    flows = [{"flow": name, "base_rtt_us": found} for name, found in (("f1", first_us), ("f2", second_us))]
    return [reason.split()[3] for reason in base_rtt_holds(Evidence(run, {"flows": flows, "interfaces": []}, []))]


@pytest.mark.parametrize(
    ("starts_us", "found_us", "right"),
    [
        ((0, 2_000_000), DECLARED_US + 2900 + PACKET_US, True),  # a queue that it finds
        ((0, 2_000_000), DECLARED_US + QUEUE_US, True),
        ((0, 2_000_000), DECLARED_US + QUEUE_US + 5000, False),
        ((0, 2_000_000), DECLARED_US - 1, False),
        ((0, 0), DECLARED_US + 2 * PACKET_US + 2000, False),  # it could see an empty queue
        ((2_000_000, 0), DECLARED_US + 2 * PACKET_US + 2000, False),
    ],
)
def test_the_gate_allows_the_queue_that_a_flow_finds(starts_us: tuple[int, int], found_us: int, right: bool) -> None:
    assert missed(spec(starts_us), DECLARED_US + 1300, found_us) == ([] if right else ["f2"])


@pytest.mark.parametrize(("found_us", "right"), [(19_000, True), (18_000, False), (19_500, False), (20_000, True)])
@pytest.mark.parametrize("timestamps", ["1", "0"])
def test_whole_milliseconds_may_come_from_timestamps(found_us: int, right: bool, timestamps: str) -> None:
    run = spec((0, 2_000_000))
    nodes = (dataclasses.replace(node, sysctls={"net.ipv4.tcp_timestamps": timestamps}) for node in run.nodes)
    found = missed(dataclasses.replace(run, nodes=tuple(nodes)), DECLARED_US + 1300, found_us)
    assert found == ([] if right and (timestamps == "1" or found_us >= DECLARED_US) else ["f2"])


@pytest.mark.parametrize(
    ("cca", "found_us", "right"), [("bbr", 4000, True), ("bbr", 4001, False), ("reno", 4000, False)]
)
def test_a_timestamp_of_a_paced_packet_may_lie_ahead(cca: str, found_us: int, right: bool) -> None:
    run = spec((0, 2_000_000))
    flows = tuple(dataclasses.replace(flow, cca=cca) for flow in run.flows)
    assert missed(dataclasses.replace(run, flows=flows), DECLARED_US + 1300, found_us) == ([] if right else ["f2"])


def test_a_flow_of_another_way_leaves_the_queue_empty() -> None:
    run = spec((0, 2_000_000))
    aside = dataclasses.replace(run.flows[0], receiver="client2")  # not through the narrow port
    apart = dataclasses.replace(run, flows=(aside, run.flows[1]))
    assert missed(apart, 100, DECLARED_US + 2 * PACKET_US + 2000) == ["f2"]
