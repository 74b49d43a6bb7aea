# SPDX-License-Identifier: Apache-2.0
"""Small studies in a guest: no TCP flow, settings of single hosts, many hosts, and declared windows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from studies import done, planned

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: small
title: Small studies
algorithms: {reno: {cca: reno}}
experiments:
  - id: camera
    topology: {kind: dumbbell, rate: 10 Mbit/s, host_rate: 1 Gbit/s, rtt: 40 ms, senders: 1}
    udp: [{name: camera, from: client1, to: server, rate: 6 Mbit/s, duration: 2 s}]
  - id: pings
    topology: {kind: delay, rate: 10 Mbit/s, rtt: 40 ms}
    duration: 2 s
    probes: {ping: 100 ms}
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
    flows:
      - {name: plain, from: client1, to: server, algorithm: reno, duration: 2 s}
      - {name: marked, from: client2, to: server, algorithm: reno, duration: 2 s}
  - id: many
    topology: {kind: dumbbell, rate: 100 Mbit/s, rtt: 20 ms, senders: 70, receivers: 3}
    flows: [{name: last, from: client70, to: server3, algorithm: reno, window: 64 KiB, duration: 400 ms}]
    probes: {sockets: 1 ms, queues: null}
  - id: windows
    topology: {kind: delay, rate: 200 Mbit/s, rtt: 80 ms}
    flows:
      - {name: a, from: client1, to: server, algorithm: reno, duration: 2 s, window: 1500 kB, streams: 3}
      - {name: b, from: client1, to: server, algorithm: reno, duration: 2 s, window: 1500 kB, transfer: 30 kB}
      - {name: c, from: client1, to: server, algorithm: reno, duration: 2 s, window: 1500 kB, send_window: 600 kB}
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    return planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)


def test_udp_alone_keeps_its_rate(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["camera"], tmp_path / "run")
    (report,) = parsed.told["udp"]
    assert report["sent_packets"] == report["arrived_packets"] == 2 * 6_000_000 // (8 * 1500)
    counts = parsed.tables["datagrams"]["received_packets"].to_pylist()
    rates = [12e9 * (after - before) / 100_000 for before, after in pairwise(counts[1:])]
    assert len(counts) == 19
    assert all(abs(rate - 6e6) < 0.2e6 for rate in rates)


def test_pings_alone_last_for_the_declared_duration(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["pings"], tmp_path / "run")
    assert parsed.end_us == pytest.approx(2_000_000, abs=10_000)
    assert max(parsed.tables["pings"]["t_us"].to_pylist()) == pytest.approx(1_900_000, abs=100_000)


def test_a_sender_with_ecn_competes_with_one_without(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    nodes = done(specs["two"], tmp_path / "run").achieved["nodes"]
    read = {name: (node["sysctls"].get("net.ipv4.tcp_ecn"), node["offloads_on"]) for name, node in nodes.items()}
    assert {name: read[name] for name in ("client1", "client2", "server")} == {
        "client1": ("0", []),
        "client2": ("1", ["gro"]),
        "server": ("2", []),
    }
    assert "card2" in nodes and "card1" not in nodes


def test_the_first_packet_of_the_last_of_many_hosts_gets_through(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    rows = done(specs["many"], tmp_path / "run").tables["sockets"].to_pylist()
    connected = [row["t_us"] for row in rows if row["state"] == "1"]
    assert connected[0] < 25_000  # one round trip after its program has started


def test_the_buffers_are_those_of_the_window(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    achieved = done(specs["windows"], tmp_path / "run").achieved
    sending = {flow["flow"]: flow["send_buffer_bytes"] for flow in achieved["flows"]}
    assert sending == {"a": 1_500_000, "b": 1_500_000, "c": 600_000}
    assert achieved["receive_buffers"] == dict.fromkeys("abc", 1_500_000)
