# SPDX-License-Identifier: Apache-2.0
"""Aggregation: from the manifest to a node that holds packets, read back, judged by a gate, refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bottleneck import missed
from manifests import keys_of, spec_of

from longfat.backends.registry import refused_features
from longfat.plan.holders import card_words
from longfat.spec.network import lay_out, route
from longfat.spec.runspec import Card, RunSpec

BOTH = "aggregation: 3 ms, reverse_aggregation: 9 ms"
STUDY = f"""\
format: 2
study: example
title: A path that holds packets
algorithms: {{standard: {{cca: reno}}}}
experiments:
  - id: held
    topology: {{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, {BOTH}}}
    flows: [{{name: flow, from: client1, to: server, algorithm: standard, duration: 2 s}}]
"""
GRAPH = (
    f"{{kind: graph, senders: [client1], receivers: [server], routers: [mast], links: [{{between: [client1, mast], "
    f"rate: 1 Gbit/s}}, {{between: [mast, server], rate: 20 Mbit/s, rtt: 40 ms, loss: 1 %, {BOTH}}}]}}"
)
LINE = f"{{kind: dumbbell, rate: 20 Mbit/s, rtt: 40 ms, senders: 1, {BOTH}}}"
PATHS = {
    "direct": f"{{kind: direct, rate: 20 Mbit/s, rtt: 40 ms, {BOTH}}}",
    "delay": f"{{kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 1 ms, jitter_order: kept, {BOTH}}}",
    "two": LINE.replace("senders: 1", "senders: 2, receivers: 2, further_delays: [0 ms, 4 ms]"),
    "graph": GRAPH,
}


def held_us(spec: RunSpec, start: str, end: str) -> list[int]:
    return [port.egress.card.moderation_us for port in route(spec, start, end) if port.egress.card]


@pytest.mark.parametrize("path", PATHS)
def test_each_way_passes_one_node_that_holds_its_packets(tmp_path: Path, path: str) -> None:
    spec = spec_of(tmp_path, STUDY, (LINE, PATHS[path]), ("to: server", f"to: server{'2' * (path == 'two')}"))
    receiver = spec.flows[0].receiver
    assert (held_us(spec, "client1", receiver), held_us(spec, receiver, "client1")) == ([3_000], [9_000])


def test_a_path_of_one_direction_holds_nothing_on_the_other(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, STUDY, ("aggregation: 3 ms", "aggregation: 0 ms"))
    assert (held_us(spec, "client1", "server"), held_us(spec, "server", "client1")) == ([], [9_000])
    assert [card_words(port) for port in lay_out(spec).all_ports() if port.egress.card] == ["aggregation 9 ms"]


@pytest.mark.parametrize("given", ["-1 ms", "1.1 s", "9"])
def test_a_time_out_of_range_is_refused(tmp_path: Path, given: str) -> None:
    (key,) = keys_of(tmp_path, STUDY, ("9 ms", given))
    assert key == "experiments[0].topology.reverse_aggregation"


@pytest.mark.parametrize("backend", ["hosts", "mininet", "ns2", "ns3"])
def test_a_backend_without_it_refuses_aggregation_by_name(tmp_path: Path, backend: str) -> None:
    assert [reason for reason in refused_features(backend, spec_of(tmp_path, STUDY)) if "aggregation" in reason]
    assert not [*refused_features("virtual", spec_of(tmp_path, STUDY))]


def test_another_time_than_the_declared_one_invalidates_the_run(tmp_path: Path) -> None:
    def holds(port: dict[str, Any]) -> bool:
        return bool(port["interface"] == first)

    spec = spec_of(tmp_path, STUDY)
    (first, _) = (port.name for port in lay_out(spec).all_ports() if port.egress.card)
    other = [{key: value for key, value in Card(1).settings()[0].items() if key != "latency"}]
    assert missed(spec, tmp_path / "right", holds, lambda port: None) == ()
    assert len(missed(spec, tmp_path / "wrong", holds, lambda port: port.update(card=other))) == 1
