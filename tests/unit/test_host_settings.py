# SPDX-License-Identifier: Apache-2.0
"""Settings of single hosts, from the manifest to the RunSpec."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifests import HEAD, keys_of, spec_of, study_of

from longfat.spec.network import lay_out

STUDY = """\
  - id: first
    topology: {{kind: {kind}}}
    hosts: {own}
    flows: [{{name: f, from: client1, to: server1, duration: 1 s, algorithm: standard}}]
hosts: {general}
"""
DUMBBELL = "dumbbell, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, senders: 3, receivers: 2"
GRAPH = "graph, senders: [client1], receivers: [server1], links: [{between: [client1, server1], rate: 1 Gbit/s}]"


def text(general: str = "{}", own: str = "{}", kind: str = DUMBBELL) -> str:
    return HEAD + STUDY.format(general=general, own=own, kind=kind)


def test_long_segments_of_one_sender_are_refused_before_a_queue_that_counts_packets(tmp_path: Path) -> None:
    faulty = text(own="{per_host: {client1: {offloads: [gso]}}}")
    assert keys_of(tmp_path, faulty) == ["experiments[0].hosts.offloads"]
    assert study_of(tmp_path, text("{offloads: [gso]}", "{per_host: {client1: {offloads: []}}}"))


@pytest.mark.parametrize("kind", [DUMBBELL, GRAPH, "delay, rate: 10 Mbit/s, rtt: 20 ms", "direct, rate: 10 Mbit/s"])
def test_each_host_has_its_own_local_queue(tmp_path: Path, kind: str) -> None:
    server = "server1" if "server1" in kind or "receivers" in kind else "server"
    queues = text("{txqueuelen: 70}", f"{{per_host: {{{server}: {{txqueuelen: 300, tx_ring: 5}}}}}}", kind)
    spec = spec_of(tmp_path, queues, ("to: server1", f"to: {server}"))
    ports = {port.node: port.egress.queue.limit_packets for port in lay_out(spec).all_ports()}
    assert (ports["client1"], ports[server]) == (70, 305)


def test_a_sysctl_of_the_experiment_replaces_the_studys_recovery(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, text("{recovery: sack}", "{sysctls: {net.ipv4.tcp_sack: 0}}"))
    assert next(node for node in spec.nodes if node.name == "client1").sysctls["net.ipv4.tcp_sack"] == "0"
