# SPDX-License-Identifier: Apache-2.0
"""Topologies become explicit links: where rate, queue, delay and drops stand."""

from dataclasses import replace
from pathlib import Path

import pytest
from manifests import spec_of

from longfat.spec.network import route
from longfat.spec.runspec import Egress, RunSpec

STUDY = """\
format: 2
study: example
title: An example
algorithms: {{standard: {{cca: reno}}}}
hosts: {{mtu: 9000 B, txqueuelen: 50}}
experiments:
  - id: first
    topology: {topology}
    flows: [{{name: f1, from: client1, to: {to}, algorithm: standard, duration: 10 s}}]
    drops: {drops}
"""


def spec(tmp_path: Path, topology: str, *, to: str = "server", drops: str = "[]", backend: str = "virtual") -> RunSpec:
    return spec_of(tmp_path, STUDY.format(topology=topology, to=to, drops=drops), backend=backend)


def egresses(found: RunSpec) -> dict[tuple[str, str], Egress]:
    """Return the egress of each node towards each other."""
    towards = {}
    for link in found.links:
        towards[link.a.node, link.b.node] = link.a.egress
        towards[link.b.node, link.a.node] = link.b.egress
    return towards


def test_direct_is_one_wire_with_rate_and_delay_both_ways(tmp_path: Path) -> None:
    found = spec(tmp_path, "{kind: direct, rate: 1 Gbit/s, rtt: 101 us}")
    client, server = egresses(found)["client1", "server"], egresses(found)["server", "client1"]
    assert [node.name for node in found.nodes] == ["client1", "server"]
    assert (client.rate_bps, server.rate_bps) == (10**9, 10**9)
    assert (client.delay_us, server.delay_us) == (50, 51)


@pytest.mark.parametrize(
    ("backend", "there", "back"), [("virtual", "client1", "server"), ("mininet", "delay", "delay")]
)
@pytest.mark.parametrize(
    ("placement", "us"), [("split", (15_000, 15_000)), ("forward", (30_000, 0)), ("reverse", (0, 30_000))]
)
def test_a_delay_and_drops_stand_on_the_wire_or_on_a_router(
    tmp_path: Path, backend: str, there: str, back: str, placement: str, us: tuple[int, int]
) -> None:
    topology = f"{{kind: delay, rate: 1 Gbit/s, rtt: 30 ms, delay_placement: {placement}}}"
    found = spec(tmp_path, topology, drops="[{at: 3 s}]", backend=backend)
    sent = egresses(found)
    assert (sent[there, "server"].delay_us, sent[back, "client1"].delay_us) == us
    assert [drop.at_us for drop in sent[there, "server"].drops] == [3_000_000]
    assert not sent[back, "client1"].drops
    first_hop = "server" if backend == "virtual" else "delay"
    assert sent["client1", first_hop].rate_bps == 10**9


@pytest.mark.parametrize("kind", ["direct", "delay", "dumbbell, senders: 1", "dumbbell, senders: 1, receivers: 2"])
def test_both_layouts_have_the_declared_round_trip_time(tmp_path: Path, kind: str) -> None:
    to = "server2" if "receivers" in kind else "server"
    for backend in ("virtual", "mininet"):
        found = spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", to=to, backend=backend)
        there, back = route(found, "client1", to), route(found, to, "client1")
        assert sum(port.egress.delay_us for port in (*there, *back)) == 30_000


@pytest.mark.parametrize("kind", ["direct", "delay", "dumbbell, senders: 3"])
def test_no_interface_has_both_a_rate_and_a_delay_where_a_node_delays(tmp_path: Path, kind: str) -> None:
    found = egresses(spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", backend="mininet"))
    assert all(egress.rate_bps is None or egress.delay_us == 0 for egress in found.values())
    assert any(egress.delay_us for egress in found.values())


def test_a_dumbbell_may_have_a_bottleneck_on_the_way_back(tmp_path: Path) -> None:
    topology = (
        "{kind: dumbbell, rate: 1 Gbit/s, host_rate: 10 Gbit/s, rtt: 30 ms, senders: 2, receivers: 2, "
        "bottleneck_queue: {limit: 70}, reverse_queue: {limit: 60}}"
    )
    found = spec(tmp_path, topology, to="server2", backend="mininet")
    sent = egresses(found)
    assert [node.name for node in found.nodes if node.role == "router"] == ["switch", "delay", "switch2"]
    assert (sent["switch2", "delay"].rate_bps, sent["switch2", "delay"].queue.limit_packets) == (10**9, 60)
    assert (sent["delay", "switch2"].rate_bps, sent["delay", "switch2"].delay_us) == (None, 15_000)
    assert sent["switch2", "server1"].rate_bps is None
    assert sent["server1", "switch2"].rate_bps == 10**10
    assert sent["switch", "delay"].queue.limit_packets == 70


def test_hosts_of_unlimited_rate_send_in_no_time_and_queue_nothing(tmp_path: Path) -> None:
    dumbbell = (
        "{kind: dumbbell, rate: 10 Mbit/s, host_rate: unlimited, rtt: 20 ms, senders: 1, delay_placement: reverse}"
    )
    found = egresses(spec(tmp_path, dumbbell))
    assert replace(found["client1", "switch"], distance_ns=0) == Egress()
    assert found["switch", "server"].rate_bps == 10_000_000
    assert replace(found["server", "switch"], distance_ns=0) == Egress(delay_us=20_000)
