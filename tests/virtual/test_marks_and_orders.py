# SPDX-License-Identifier: Apache-2.0
"""Marks at a step, policers, and the order of packets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from studies import done, planned, samples, waits_ms

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Marks and orders
algorithms: {standard: {cca: reno}}
hosts: {sysctls: {net.ipv4.tcp_ecn: 1}}
defaults: {flow: {from: client1, to: server, duration: 5 s}}
paths:
  line: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, senders: 2}
experiments:
  - id: step
    path: line
    topology: {bottleneck_queue: {kind: step, limit: 1000, threshold: 5 ms}}
    flows: [{name: flow, algorithm: standard}]
    probes: {queues: 10 ms}
  - id: policed
    path: line
    topology: {policer: {rate: 4 Mbit/s, burst: 20 kB}}
    flows: [{name: flow, algorithm: standard, start: 3 s, duration: 1 s}]
    udp: [{name: flood, from: client2, to: server, rate: 8 Mbit/s, duration: 2 s}]
  - id: free
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 5 ms, reverse_jitter: 5 ms}
    flows: [{name: flow, algorithm: standard, window: 100 kB}]
  - id: kept
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 5 ms, reverse_jitter: 5 ms, jitter_order: kept}
    flows: [{name: flow, algorithm: standard, window: 100 kB}]
  - id: overtaking
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, overtaking: 1 %}
    flows: [{name: flow, algorithm: standard, window: 100 kB}]
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    return planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)


def counted(folder: Path, node: str, name: str) -> int:
    """A protocol counter of a node, as the run left it."""
    found: dict[str, int] = json.loads((folder / "counters.json").read_text())[node]
    return found.get(name, 0)


def test_a_step_marks_what_has_waited_for_longer_and_drops_nothing(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["step"]
    parsed = done(spec, tmp_path / "run")
    rows = samples(parsed, spec, "switch", since_us=2_000_000)
    assert rows[-1]["marked_total"] > rows[0]["marked_total"]
    assert rows[-1]["drops_total"] == 0
    waits = waits_ms(parsed, spec, since_us=2_000_000)
    packet_ms = 1538 * 8 / 20_000
    assert 5 - packet_ms < max(waits) < 2 * 5
    # A packet that is marked has waited behind those of the samples before: a mark needs a long queue shortly before.
    marked = [place for place in range(3, len(rows)) if rows[place]["marked_total"] > rows[place - 1]["marked_total"]]
    assert marked
    assert all(max(waits[place - 3 : place + 1]) > 5 - 1 for place in marked)


def test_a_policer_passes_its_burst_and_its_rate(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["policed"]
    parsed = done(spec, tmp_path / "run")
    (port,) = (port for port in parsed.achieved["interfaces"] if "policer" in port)
    (udp,) = parsed.told["udp"]
    assert port["policer"]["drops"] > 0
    passed, filled = 1514 * udp["arrived_packets"], 20_000 + 4e6 / 8 * 2
    assert abs(passed - filled) <= 2 * 1514


def test_jitter_that_keeps_the_order_delays_and_reorders_nothing(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    for name in ("free", "kept"):
        done(specs[name], tmp_path / name)
    out_of_order = {name: counted(tmp_path / name, "server", "TcpExt.TCPOFOQueue") for name in ("free", "kept")}
    assert out_of_order["kept"] == 0
    assert out_of_order["free"] > 100


def test_the_declared_share_of_packets_overtakes(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["overtaking"], tmp_path / "run")
    (report,) = parsed.reports
    packets = report["bytes_received"] / 1448
    overtaking = counted(tmp_path / "run", "server", "TcpExt.TCPOFOQueue")  # each comes before those that it overtook
    assert packets > 1000
    assert abs(overtaking - 0.01 * packets) <= 6 * (0.01 * 0.99 * packets) ** 0.5
