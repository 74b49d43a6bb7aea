# SPDX-License-Identifier: Apache-2.0
"""One sender with settings of its own, in a guest: they are read back there, and nowhere else."""

from __future__ import annotations

from pathlib import Path

from studies import done, planned

STUDY = """\
format: 2
study: one
title: ECN on one of two senders
algorithms: {cubic: {cca: cubic}}
defaults: {flow: {algorithm: cubic, to: server, duration: 3 s}}
experiments:
  - id: two
    topology:
      kind: dumbbell
      rate: 20 Mbit/s
      host_rate: 100 Mbit/s
      rtt: 20 ms
      senders: 2
      bottleneck_queue: {kind: red, limit: 200, min: 10, max: 60, probability: 10 %, ecn: true}
    hosts:
      sysctls: {net.ipv4.tcp_ecn: 0}
      per_host:
        server: {sysctls: {net.ipv4.tcp_ecn: 2}}
        client2: {sysctls: {net.ipv4.tcp_ecn: 1}, offloads: [gro], packet_time: 2 us}
    flows: [{name: plain, from: client1}, {name: marked, from: client2}]
"""


def test_a_sender_with_ecn_competes_with_one_without(tmp_path: Path) -> None:
    (spec,) = planned(tmp_path / "study.yaml", STUDY).values()
    nodes = done(spec, tmp_path / "run").achieved["nodes"]
    read = {name: (node["sysctls"].get("net.ipv4.tcp_ecn"), node["offloads_on"]) for name, node in nodes.items()}
    assert read["client1"] == ("0", [])
    assert read["client2"] == ("1", ["gro"])
    assert read["server"] == ("2", [])
    assert "card2" in nodes and "card1" not in nodes
