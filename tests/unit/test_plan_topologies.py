# SPDX-License-Identifier: Apache-2.0
"""Topologies become explicit links: where rate, queue, delay and drops stand."""

from dataclasses import replace
from pathlib import Path

import pytest

from longfat.plan import build_plan
from longfat.spec.network import route
from longfat.spec.runspec import Egress, RunSpec
from longfat.study.load import load_study

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
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(topology=topology, to=to, drops=drops), encoding="utf-8")
    (run,) = build_plan(load_study(path), pins={"backend": backend}).runs
    return run.spec


def egresses(found: RunSpec) -> dict[tuple[str, str], Egress]:
    """What each node does with the packets it sends to another."""
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
    ("placement", "forward", "reverse"),
    [("split", 15_000, 15_000), ("forward", 30_000, 0), ("reverse", 0, 30_000)],
)
def test_a_path_with_a_delay_is_a_wire_with_a_delay(tmp_path: Path, placement: str, forward: int, reverse: int) -> None:
    topology = f"{{kind: delay, rate: 1 Gbit/s, rtt: 30 ms, delay_placement: {placement}}}"
    found = spec(tmp_path, topology, drops="[{at: 3 s}]")
    sent = egresses(found)
    assert [node.name for node in found.nodes] == ["client1", "server"]
    assert (sent["client1", "server"].delay_us, sent["server", "client1"].delay_us) == (forward, reverse)
    assert sent["client1", "server"].rate_bps == sent["server", "client1"].rate_bps == 10**9
    assert [drop.at_us for drop in sent["client1", "server"].drops] == [3_000_000]
    assert not sent["server", "client1"].drops


def test_a_dumbbell_of_wires_ends_at_its_receiver(tmp_path: Path) -> None:
    topology = "{kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2, bottleneck_queue: {limit: 70}}"
    found = spec(tmp_path, topology)
    sent = egresses(found)
    assert [node.name for node in found.nodes] == ["client1", "client2", "switch", "server"]
    bottleneck, back = sent["switch", "server"], sent["server", "switch"]
    assert (bottleneck.rate_bps, bottleneck.queue.limit_packets, bottleneck.delay_us) == (10**9, 70, 15_000)
    assert (back.rate_bps, back.delay_us) == (10**9, 15_000)
    assert (sent["switch", "client1"].rate_bps, sent["client2", "switch"].rate_bps) == (None, 10**9)


def test_several_receivers_of_wires_meet_at_a_second_switch(tmp_path: Path) -> None:
    topology = "{kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 1, receivers: 2}"
    found = spec(tmp_path, topology, to="server2")
    sent = egresses(found)
    assert [node.name for node in found.nodes] == ["client1", "switch", "switch2", "server1", "server2"]
    assert (sent["switch", "switch2"].delay_us, sent["switch2", "switch"].delay_us) == (15_000, 15_000)
    assert (sent["switch2", "switch"].rate_bps, sent["switch2", "server1"].rate_bps) == (None, None)


@pytest.mark.parametrize("kind", ["direct", "delay", "dumbbell, senders: 1", "dumbbell, senders: 1, receivers: 2"])
def test_both_layouts_have_the_declared_round_trip_time(tmp_path: Path, kind: str) -> None:
    to = "server2" if "receivers" in kind else "server"
    for backend in ("virtual", "mininet"):
        found = spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", to=to, backend=backend)
        there, back = route(found, "client1", to), route(found, to, "client1")
        assert sum(port.egress.delay_us for port in (*there, *back)) == 30_000


def test_direct_without_such_wires_shapes_the_sender_and_delays_the_answers(tmp_path: Path) -> None:
    found = spec(tmp_path, "{kind: direct, rate: 1 Gbit/s}", backend="mininet")
    client, server = egresses(found)["client1", "server"], egresses(found)["server", "client1"]
    assert [node.name for node in found.nodes] == ["client1", "server"]
    assert (client.rate_bps, client.framing_bytes, client.delay_us) == (10**9, 24, 0)
    assert (client.queue.kind, client.queue.limit_packets) == ("pfifo", 50)
    assert (server.rate_bps, server.delay_us) == (None, 100)
    assert found.links[0].mtu_bytes == 9000


def test_a_host_queues_what_its_interface_and_the_ring_of_its_card_hold(tmp_path: Path) -> None:
    text = STUDY.format(topology="{kind: direct, rate: 1 Gbit/s}", to="server", drops="[]")
    path = tmp_path / "study.yaml"
    path.write_text(text.replace("txqueuelen: 50", "txqueuelen: 50, tx_ring: 85"), encoding="utf-8")
    (run,) = build_plan(load_study(path), pins={"backend": "mininet"}).runs
    assert egresses(run.spec)["client1", "server"].queue.limit_packets == 135


@pytest.mark.parametrize(
    ("placement", "forward", "reverse"),
    [("split", 15_000, 15_000), ("forward", 30_000, 0), ("reverse", 0, 30_000)],
)
def test_delay_stands_on_the_router_alone(tmp_path: Path, placement: str, forward: int, reverse: int) -> None:
    topology = f"{{kind: delay, rate: 1 Gbit/s, rtt: 30 ms, delay_placement: {placement}}}"
    found = spec(tmp_path, topology, drops="[{at: 3 s}]", backend="mininet")
    sent = egresses(found)
    assert [(node.name, node.role) for node in found.nodes] == [
        ("client1", "sender"),
        ("delay", "router"),
        ("server", "receiver"),
    ]
    assert (sent["delay", "server"].delay_us, sent["delay", "client1"].delay_us) == (forward, reverse)
    assert sent["delay", "server"].rate_bps is None
    assert sent["client1", "delay"].rate_bps == sent["server", "delay"].rate_bps == 10**9
    assert [drop.at_us for drop in sent["delay", "server"].drops] == [3_000_000]
    assert not sent["delay", "client1"].drops


def test_the_delay_element_holds_more_than_can_be_under_way(tmp_path: Path) -> None:
    sent = egresses(spec(tmp_path, "{kind: delay, rate: 1 Gbit/s, rtt: 30 ms}", backend="mininet"))
    smallest_frames_in_15_ms = 10**9 * 0.015 / 8 / 84
    limit = sent["delay", "server"].queue.limit_packets
    assert limit is not None
    assert limit > smallest_frames_in_15_ms


def test_dumbbell_has_its_bottleneck_at_the_switch(tmp_path: Path) -> None:
    topology = "{kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 2, bottleneck_queue: {limit: 70}}"
    found = spec(tmp_path, topology, backend="mininet")
    sent = egresses(found)
    assert [node.name for node in found.nodes] == ["client1", "client2", "switch", "delay", "server"]
    assert sent["client1", "switch"].queue.limit_packets == 50
    assert sent["client2", "switch"].rate_bps == 10**9
    assert (sent["switch", "delay"].rate_bps, sent["switch", "delay"].queue.limit_packets) == (10**9, 70)
    assert sent["switch", "client1"].rate_bps is None
    assert sent["delay", "server"].delay_us == sent["delay", "switch"].delay_us == 15_000


def test_several_receivers_are_numbered_and_share_the_delay_element(tmp_path: Path) -> None:
    topology = "{kind: dumbbell, rate: 1 Gbit/s, rtt: 30 ms, senders: 1, receivers: 2}"
    found = spec(tmp_path, topology, to="server2", backend="mininet")
    assert [node.name for node in found.nodes if node.role == "receiver"] == ["server1", "server2"]
    assert egresses(found)["delay", "server2"].delay_us == 15_000
    assert egresses(found)["switch", "delay"].queue.limit_packets == 100


@pytest.mark.parametrize("kind", ["direct", "delay", "dumbbell, senders: 3"])
def test_no_interface_has_both_a_rate_and_a_delay_where_a_node_delays(tmp_path: Path, kind: str) -> None:
    found = egresses(spec(tmp_path, f"{{kind: {kind}, rate: 1 Gbit/s, rtt: 30 ms}}", backend="mininet"))
    assert all(egress.rate_bps is None or egress.delay_us == 0 for egress in found.values())
    assert any(egress.delay_us for egress in found.values())


def test_hosts_of_a_dumbbell_may_be_slower_than_what_they_meet_at(tmp_path: Path) -> None:
    found = egresses(
        spec(
            tmp_path,
            "{kind: dumbbell, rate: 2400 Mbit/s, host_rate: 1 Gbit/s, rtt: 120 ms, senders: 2}",
            backend="mininet",
        )
    )
    assert [found[f"client{k}", "switch"].rate_bps for k in (1, 2)] == [10**9, 10**9]
    assert found["switch", "delay"].rate_bps == 2_400_000_000
    assert found["server", "delay"].rate_bps == 10**9


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
