# SPDX-License-Identifier: Apache-2.0
"""Networks of nodes and links by name, and the parking lot: from the manifest to links, queues and routes."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import HEAD, keys_of, spec_of

from longfat.spec.network import base_rtt_us, lay_out, route
from longfat.spec.runspec import Change, Impairment, Queue, RunSpec

MBPS = 1_000_000
STUDY = """\
  - id: first
    clock_tolerance: 0 ppm
    phases: fixed
    topology: {topology}
    flows:
{flows}
"""
FLOW = "      - {{name: {0}, from: {1}, to: {2}, algorithm: standard, duration: 10 s}}"
LOT = "{kind: parking_lot, bottlenecks: 3, rate: 20 Mbit/s, rtt: 100 ms, senders: 2, bottleneck_queue: {limit: 50}}"
GRAPH = """
      kind: graph
      senders: [near, far]
      receivers: [home]
      routers: [mast, core]
      links:
        - {between: [near, core], rate: 1 Gbit/s, rtt: 10 ms}
        - {between: [far, core], rate: unlimited, rtt: 200 ms}
        - {between: [core, mast], rate: 100 Mbit/s, queue: {limit: 1 bdp}, rtt: 4 ms, changes: [{at: 5 s, outage: 1 s}]}
        - {between: [mast, home], rate: 20 Mbit/s, reverse_rate: 2 Mbit/s, rtt: 30 ms"""
RADIO = ", queue: {kind: codel}, loss: 1 %}"


def planned(tmp_path: Path, topology: str, *flows: tuple[str, str, str], backend: str = "virtual") -> RunSpec:
    text = HEAD + STUDY.format(topology=topology, flows="\n".join(FLOW.format(*flow) for flow in flows))
    return spec_of(tmp_path, text, backend=backend)


def test_long_flows_of_a_parking_lot_cross_every_bottleneck_and_others_one(tmp_path: Path) -> None:
    spec = planned(tmp_path, LOT, ("long", "client2", "server"), ("second", "cross2", "sink2"))
    long, second = spec.flows

    def bottlenecks(flow: tuple[str, str]) -> list[str]:
        return [port.node for port in route(spec, *flow) if port.egress.rate_bps]

    assert bottlenecks((long.sender, long.receiver)) == ["switch1", "switch2", "switch3"]
    assert bottlenecks((second.sender, second.receiver)) == ["switch2"]
    assert (base_rtt_us(spec, long), base_rtt_us(spec, second)) == (100_000, 33_334)
    queues = [port.egress.queue for port in lay_out(spec).all_ports() if port.egress.rate_bps]
    assert queues == [Queue("pfifo", 50)] * 3


def test_a_graphs_links_have_rate_delay_queue_and_changes_of_their_own(tmp_path: Path) -> None:
    spec = planned(tmp_path, GRAPH + "}", ("one", "near", "home"))
    there = {(link.a.node, link.b.node): link for link in spec.links}
    core, mast = there["core", "mast"], there["mast", "home"]
    # One product is that of the link's rate and the longest round-trip time, 234 ms, in packets of 1538 bytes.
    assert core.a.egress.queue == Queue("pfifo", 100 * MBPS * 234 // 8000 // 1538)
    held = (Change(5_000_000, held=True), Change(6_000_000, held=False))
    assert (core.a.egress.changes, core.b.egress.changes) == (held, held)
    assert (mast.a.egress.rate_bps, mast.a.egress.delay_us) == (20 * MBPS, 15_000)
    assert (mast.b.egress.rate_bps, mast.b.egress.queue) == (2 * MBPS, Queue("pfifo", 1000))
    assert (there["far", "core"].a.egress.rate_bps, there["far", "core"].a.egress.delay_us) == (None, 100_000)


FORK = """
      kind: graph
      senders: [a]
      receivers: [b]
      routers: [west, upper, lower, east]
      links:
        - {between: [a, west], rate: 1 Gbit/s}
        - {between: [west, lower], rate: 20 Mbit/s, rtt: 6 ms, queue: {limit: 1 bdp}}
        - {between: [upper, east], rate: 20 Mbit/s, rtt: 70 ms}
        - {between: [west, upper], rate: 20 Mbit/s, rtt: 50 ms}
        - {between: [lower, east], rate: 20 Mbit/s, rtt: 8 ms}
        - {between: [east, b], rate: 1 Gbit/s, rtt: 2 ms}"""


@pytest.mark.parametrize("backend", ["virtual", "mininet"])
@pytest.mark.parametrize("upper", ["", ", loss: 1 %"])
def test_a_round_trip_is_the_way_there_and_the_way_back(tmp_path: Path, backend: str, upper: str) -> None:
    topology = FORK.replace("rtt: 70 ms", f"rtt: 70 ms{upper}")
    spec = planned(tmp_path, topology, ("one", "a", "b"), backend=backend)
    nodes = [[port.peer for port in route(spec, *ends)] for ends in (("a", "b"), ("b", "a"))]
    there, back = ([name for name in way if not name.startswith("delay")] for way in nodes)
    assert (there, back) == (["west", "lower", "east", "b"], ["east", "upper", "west", "a"])
    assert base_rtt_us(spec, spec.flows[0]) == 1000 * (3 + 4 + 1 + 1 + 35 + 25)
    assert route(spec, "west", "lower")[0].egress.queue.limit_packets == 20_000_000 * 69 // 8000 // 1538


def test_a_link_that_loses_packets_has_a_node_that_delays_in_its_middle(tmp_path: Path) -> None:
    spec = planned(tmp_path, GRAPH + RADIO, ("one", "near", "home"))
    assert [node.name for node in spec.nodes if node.role == "router"] == ["mast", "core", "delay4"]
    *_, before, behind = spec.links
    assert (before.a.egress.queue.kind, before.a.egress.delay_us) == ("codel", 0)
    assert (behind.a.node, behind.a.egress.delay_us, behind.a.egress.impairment) == (
        "delay4",
        15_000,
        Impairment(10_000),
    )


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("[near, far]", "[near, core]", "routers"),
        ("[far, core]", "[far, cor]", "links[1].between"),
        ("[far, core]", "[near, core]", "links"),
        ("[mast, home]", "[near, home]", "links"),
        ("rtt: 4 ms", "rtt: 3 us", "links[2].rtt"),
        ("1 Gbit/s, rtt", "1 Gbit/s, queue: {limit: 9}, rtt", "links[0].queue"),
        ("routers: [mast", "routers: [delay", "routers[0]"),
    ],
)
def test_what_is_no_network_is_refused(tmp_path: Path, old: str, new: str, key: str) -> None:
    text = HEAD + STUDY.format(topology=GRAPH + "}", flows=FLOW.format("one", "near", "home"))
    assert f"experiments[0].topology.{key}" in keys_of(tmp_path, text, (old, new))
