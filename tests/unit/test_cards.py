# SPDX-License-Identifier: Apache-2.0
"""Nodes that hold packets: cards of busy hosts and aggregation, from the manifest to nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from bottleneck import planned, problem
from manifests import HEAD, spec_of

from longfat.spec.network import lay_out, route
from longfat.spec.runspec import Card, Egress

BOTH = "{interrupt_moderation: 100 us, packet_time: 8 us, input_queue: 300}"


def test_each_host_has_a_card_that_what_it_is_sent_passes(tmp_path: Path) -> None:
    spec = planned(tmp_path, hosts=BOTH)
    assert [node.name for node in spec.nodes if node.name.startswith("card")] == ["card1", "card2"]
    arriving = {port.peer: port.egress for port in lay_out(spec).all_ports() if port.egress.card}
    assert arriving == dict.fromkeys(("client1", "server"), Egress(card=Card(100, 8, 300)))


HELD = "aggregation: 3 ms, reverse_aggregation: 9 ms"
LINE = f"{{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, {HELD}}}"
HOLDING = (
    HEAD
    + f"""\
  - id: held
    topology: {LINE}
    flows: [{{name: flow, from: client1, to: server, algorithm: standard, duration: 2 s}}]
"""
)
PATHS = {
    "direct": f"{{kind: direct, rate: 20 Mbit/s, rtt: 40 ms, {HELD}}}",
    "delay": f"{{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 1 ms, jitter_order: kept, {HELD}}}",
    "two": LINE.replace("senders: 1", "senders: 2, receivers: 2, further_delays: [0 ms, 4 ms]"),
    "graph": (
        f"{{kind: graph, senders: [client1], receivers: [server], routers: [mast], links: [{{between: [client1, mast], "
        f"rate: 1 Gbit/s}}, {{between: [mast, server], rate: 20 Mbit/s, rtt: 40 ms, loss: 1 %, {HELD}}}]}}"
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_each_way_passes_one_node_that_holds_its_packets(tmp_path: Path, path: str) -> None:
    spec = spec_of(tmp_path, HOLDING, (LINE, PATHS[path]), ("to: server", f"to: server{'2' * (path == 'two')}"))
    receiver = spec.flows[0].receiver
    ways = route(spec, "client1", receiver), route(spec, receiver, "client1")
    held_us = [[port.egress.card.moderation_us for port in way if port.egress.card] for way in ways]
    assert held_us == [[3_000], [9_000]]


@pytest.mark.parametrize("given", ["-1 ms", "1.1 s", "9"])
def test_a_time_out_of_range_is_refused(tmp_path: Path, given: str) -> None:
    assert "topology.reverse_aggregation: " in problem(tmp_path, keys=f"reverse_aggregation: {given}")
