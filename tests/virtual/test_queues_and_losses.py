# SPDX-License-Identifier: Apache-2.0
"""Queues that decide by delay, and losses of a path: read back from the kernel, and doing what they are for."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from guests import run
from studies import done, planned, waits_ms

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
format: 2
study: example
title: One flow through a queue, and one over a path that loses packets
algorithms: {standard: {cca: reno}}
experiments:
  - id: queues
    topology:
      kind: dumbbell
      rate: 20 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 40 ms
      senders: 1
      bottleneck_queue: {kind: "${queue}", limit: 4 MiB}
    flows: [{name: flow, from: client1, to: server, algorithm: standard, duration: 15 s}]
    probes: {sockets: 100 ms, queues: 20 ms}
    sweep: {product: {queue: [codel, pie]}}
  - id: path
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: "${loss}", reverse_loss: 1 %, jitter: 1 ms}
    flows: [{name: flow, from: client1, to: server, algorithm: standard, duration: 10 s}]
    sweep: {product: {loss: [1 %]}}
  - id: bursts
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: {enter: 0.2 %, leave: 50 %}}
    flows: [{name: flow, from: client1, to: server, algorithm: standard, duration: 10 s}]
  - id: everything
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: 100 %}
    flows: [{name: flow, from: client1, to: server, algorithm: standard, duration: 1 s}]
  - id: receivers
    topology: {kind: dumbbell, rate: 20 Mbit/s, rtt: 30 ms, senders: 1, receivers: 2, further_delays: [0 ms, 100 us],
      loss: 0.5 %}
    flows:
      - {name: near, from: client1, to: server1, algorithm: standard, duration: 2 s}
      - {name: far, from: client1, to: server2, algorithm: standard, duration: 2 s}
"""


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunSpec]:
    found = planned(tmp_path_factory.mktemp("study") / "study.yaml", STUDY)
    return {name.removeprefix("queues ").split()[0]: spec for name, spec in found.items()}


def test_codel_holds_the_wait_near_its_target(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["codel"]
    waits = waits_ms(done(spec, tmp_path / "run"), spec, since_us=5_000_000)
    assert statistics.median(waits) <= 2 * 5
    assert max(waits) <= 10 * 5


def test_pie_holds_the_wait_near_its_target(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["pie"]
    waits = waits_ms(done(spec, tmp_path / "run"), spec, since_us=5_000_000)
    assert 15 / 4 < statistics.mean(waits) < 2 * 15


def test_random_loss_is_binomial_and_the_same_again(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["path"]
    found = done(spec, tmp_path / "run").achieved["interfaces"]
    lossy = [port for port in found if port.get("impairment", {}).get("loss")]
    assert len(lossy) == 2
    assert min(port["drops"] for port in lossy) > 10  # the gate holds the number to its binomial interval
    run(spec, tmp_path / "again")
    for name in ("sockets.csv", "achieved.json", "flows.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_losses_in_bursts_follow_each_other(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["bursts"]
    found = done(spec, tmp_path / "run").achieved["interfaces"]
    (port,) = (port for port in found if "enter" in port.get("impairment", {}))
    share = port["drops"] / (port["drops"] + port["passed_packets"])
    # The chain is in a burst for 0.2 / (0.2 + 50) % of the packets, and its bursts are few here.
    assert 0.2 * 0.002 / 0.502 < share < 5 * 0.002 / 0.502


def test_a_path_that_loses_everything_is_named_as_the_reason(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    outcome = json.loads((run(specs["everything"], tmp_path / "run") / "outcome.json").read_text(encoding="ascii"))
    assert outcome["status"] == "failed" and "no data of flow arrived" in outcome["reason"]


def test_receivers_whose_round_trips_differ_by_a_tenth_of_a_millisecond_are_valid_with_loss(
    specs: dict[str, RunSpec], tmp_path: Path
) -> None:
    parsed = done(specs["receivers"], tmp_path / "run")
    near, far = (flow["base_rtt_us"] for flow in parsed.achieved["flows"])
    assert 0 < far - near < 1000
