# SPDX-License-Identifier: Apache-2.0
"""Aggregation: from the manifest to a node that holds packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import keys_of, spec_of

from longfat.spec.network import route

BOTH = "aggregation: 3 ms, reverse_aggregation: 9 ms"
LINE = f"{{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, {BOTH}}}"
STUDY = f"""\
format: 2
study: example
title: A path that holds packets
algorithms: {{standard: {{cca: reno}}}}
experiments:
  - id: held
    topology: {LINE}
    flows: [{{name: flow, from: client1, to: server, algorithm: standard, duration: 2 s}}]
"""
PATHS = {
    "direct": f"{{kind: direct, rate: 20 Mbit/s, rtt: 40 ms, {BOTH}}}",
    "delay": f"{{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 1 ms, jitter_order: kept, {BOTH}}}",
    "two": LINE.replace("senders: 1", "senders: 2, receivers: 2, further_delays: [0 ms, 4 ms]"),
    "graph": (
        f"{{kind: graph, senders: [client1], receivers: [server], routers: [mast], links: [{{between: [client1, mast], "
        f"rate: 1 Gbit/s}}, {{between: [mast, server], rate: 20 Mbit/s, rtt: 40 ms, loss: 1 %, {BOTH}}}]}}"
    ),
}


@pytest.mark.parametrize("path", PATHS)
def test_each_way_passes_one_node_that_holds_its_packets(tmp_path: Path, path: str) -> None:
    spec = spec_of(tmp_path, STUDY, (LINE, PATHS[path]), ("to: server", f"to: server{'2' * (path == 'two')}"))
    receiver = spec.flows[0].receiver
    ways = route(spec, "client1", receiver), route(spec, receiver, "client1")
    held_us = [[port.egress.card.moderation_us for port in way if port.egress.card] for way in ways]
    assert held_us == [[3_000], [9_000]]


@pytest.mark.parametrize("given", ["-1 ms", "1.1 s", "9"])
def test_a_time_out_of_range_is_refused(tmp_path: Path, given: str) -> None:
    (key,) = keys_of(tmp_path, STUDY, ("9 ms", given))
    assert key == "experiments[0].topology.reverse_aggregation"
