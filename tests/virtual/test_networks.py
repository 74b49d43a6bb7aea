# SPDX-License-Identifier: Apache-2.0
"""Networks beside a single line: a parking lot, a graph whose pairs have their own round-trip times, deep space."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import done, planned, samples

from longfat.spec.network import lay_out
from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: Networks
algorithms: {standard: {cca: reno}}
defaults: {flow: {duration: 8 s}}
experiments:
  - id: lot
    topology: {kind: parking_lot, bottlenecks: 3, rate: 10 Mbit/s, rtt: 30 ms, bottleneck_queue: {limit: 50}}
    flows:
      - {name: long, algorithm: standard, from: client1, to: server}
      - {name: cross, count: 3, algorithm: standard, from: cross1, to: sink1, start: 500 ms}
  - id: graph
    topology:
      kind: graph
      senders: [near, far]
      receivers: [home, office]
      routers: [core, mast]
      links:
        - {between: [near, core], rate: 100 Mbit/s}
        - {between: [far, core], rate: unlimited, rtt: 100 ms}
        - {between: [core, mast], rate: 10 Mbit/s, rtt: 10 ms, queue: {kind: fq_codel}}
        - {between: [mast, home], rate: 5 Mbit/s, reverse_rate: 1 Mbit/s, rtt: 6 ms, loss: 0.1 %}
        - {between: [office, mast], rate: 100 Mbit/s, rtt: 2 ms}
    flows:
      - {name: one, algorithm: standard, from: near, to: home, duration: 4 s}
      - {name: two, algorithm: standard, from: far, to: office, duration: 4 s}
  - id: space
    topology: {kind: direct, rate: 10 kbit/s, rtt: 20 min}
    hosts: {sysctls: {net.ipv4.tcp_syn_retries: 30, net.ipv4.tcp_synack_retries: 30}}
    flows: [{name: probe, algorithm: standard, from: client1, to: server, window: 20 kB, duration: 1260 s}]
    probes: {sockets: 10 s, queues: 10 s}
"""
SPACE_RTT_S = 1200


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    return planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)


def test_in_a_parking_lot_the_long_flow_has_less_than_each_that_it_meets(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["lot"], tmp_path / "run")
    goodput = {report["flow"]: report["goodput_bps"] for report in parsed.reports}
    long = goodput.pop("long")
    assert all(2 * long < cross for cross in goodput.values())
    for switch in ("switch1", "switch2", "switch3"):
        rows = [row for row in samples(parsed, specs["lot"], switch) if 2_000_000 <= row["t_us"] <= 7_000_000]
        assert (rows[-1]["sent_bytes"] - rows[0]["sent_bytes"]) * 8 / 5 > 0.95 * 10e6


def test_each_pair_of_a_graph_has_its_own_round_trip_time(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["graph"], tmp_path / "run")  # its gate holds each flow to the sum of its links
    base = {flow["flow"]: flow["base_rtt_us"] for flow in parsed.achieved["flows"]}
    assert 16_000 <= base["one"] < 25_000
    assert 112_000 <= base["two"] < 122_000
    (mast,) = (port for port in lay_out(specs["graph"]).ports["mast"] if port.egress.rate_bps == 5_000_000)
    assert mast.peer == "delay4"


def test_a_round_trip_may_take_twenty_minutes_and_a_link_ten_kilobits(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["space"], tmp_path / "run")
    (report,) = parsed.reports
    (flow,) = parsed.achieved["flows"]
    assert report["bytes_received"] == report["bytes_sent"] > 10_000
    assert SPACE_RTT_S * 1e6 <= flow["base_rtt_us"] < 1.05 * SPACE_RTT_S * 1e6
