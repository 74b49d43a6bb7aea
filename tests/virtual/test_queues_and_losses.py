# SPDX-License-Identifier: Apache-2.0
"""Queues that decide by delay or mark, policers, pauses, losses and orders of packets: read back, and at work.

Every mark is seen where it arrives.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest
from guests import run
from studies import done, samples, specs_of, waits_ms

from longfat.spec.runspec import RunSpec

pytestmark = pytest.mark.virtual

STUDY = """\
algorithms: {standard: {cca: reno}}
defaults: {flow: {from: client1, to: server, algorithm: standard, duration: 10 s}}
paths:
  line: {kind: dumbbell, rate: 20 Mbit/s, host_rate: 1 Gbit/s, rtt: 20 ms, senders: 2}
experiments:
  - id: delay
    path: line
    topology: {rtt: 40 ms, bottleneck_queue: {kind: "${queue}", limit: 4 MiB}}
    flows: [{name: flow}]
    probes: {sockets: 100 ms, queues: 20 ms}
    sweep: {product: {queue: [codel, pie]}}
  - id: red
    path: line
    topology:
      rate: 100 Mbit/s
      receivers: 2
      bottleneck_queue: {kind: red, limit: 500, min: 20, max: 60, probability: 10 %, ecn: "${ecn}"}
    hosts: {sysctls: {net.ipv4.tcp_ecn: 1}}
    flows:
      - {name: one, to: server1, duration: 5 s, streams: 2}
      - {name: two, from: client2, to: server2, duration: 5 s, streams: 2}
    probes: {sockets: 100 ms, queues: 50 ms}
    sweep: {product: {ecn: [true, false]}}
  - id: step
    path: line
    topology: {bottleneck_queue: {kind: step, limit: 1000, threshold: 5 ms}}
    hosts: {sysctls: {net.ipv4.tcp_ecn: 1}}
    flows: [{name: flow, duration: 5 s}]
    probes: {queues: 10 ms}
  - id: policed
    path: line
    topology: {policer: {rate: 4 Mbit/s, burst: 20 kB}}
    flows: [{name: flow, start: 3 s, duration: 1 s}]
    udp: [{name: flood, from: client2, to: server, rate: 8 Mbit/s, duration: 2 s}]
  - id: paused
    path: line
    topology: {bottleneck_queue: {limit: "${limit}"}, pause: {above: 25, below: 10}}
    hosts: {txqueuelen: 40}
    flows: [{name: flow, start: 3 s, duration: 1 s}]
    udp:
      - {name: one, from: client1, to: server, rate: 16 Mbit/s, duration: 2 s}
      - {name: two, from: client2, to: server, rate: 16 Mbit/s, duration: 2 s}
    probes: {queues: 10 ms}
    sweep: {product: {limit: [40, 28]}}
  - id: path
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: 1 %, reverse_loss: 1 %, jitter: 1 ms}
    flows: [{name: flow}]
  - id: bursts
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: {enter: 0.2 %, leave: 50 %}}
    flows: [{name: flow}]
  - id: everything
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, loss: 100 %}
    flows: [{name: flow, duration: 1 s}]
  - id: receivers
    path: line
    topology: {rtt: 30 ms, receivers: 2, further_delays: [0 ms, 100 us], loss: 0.5 %}
    flows: [{name: near, to: server1, duration: 2 s}, {name: far, to: server2, duration: 2 s}]
  - id: free
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, jitter: 5 ms, reverse_jitter: 5 ms}
    flows: [{name: flow, window: 100 kB, duration: 5 s}]
  - {id: kept, like: free, topology: {jitter_order: kept}}
  - id: overtaking
    topology: {kind: delay, rate: 20 Mbit/s, rtt: 40 ms, overtaking: 1 %}
    flows: [{name: flow, window: 100 kB, duration: 5 s}]
"""
specs = specs_of(STUDY)


def counted(folder: Path, node: str, name: str) -> int:
    """A protocol counter of a node, as the run left it."""
    found: dict[str, int] = json.loads((folder / "counters.json").read_text())[node]
    return found.get(name, 0)


@pytest.mark.parametrize(("queue", "target_ms"), [("codel", 5), ("pie", 15)])
def test_a_queue_holds_the_wait_near_its_target(
    specs: dict[str, RunSpec], tmp_path: Path, queue: str, target_ms: int
) -> None:
    spec = specs[f"delay {queue}"]
    waits = waits_ms(done(spec, tmp_path / "run"), spec, since_us=5_000_000)
    assert target_ms / 4 < statistics.mean(waits) < 2 * target_ms
    assert max(waits) <= 10 * target_ms


def test_with_ecn_red_drops_nothing_and_every_mark_arrives(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["red True"]
    parsed = done(spec, tmp_path / "run")
    last = samples(parsed, spec, "switch")[-1]
    arrived = {row["node"]: row["marked_packets"] for row in parsed.tables["arrivals"].to_pylist()}
    assert last["marked_total"] > 10
    assert last["drops_total"] == 0
    assert parsed.tables["flows"]["retrans_segments"].to_pylist() == [0, 0]
    # What is marked in the last moments is still under way.
    assert last["marked_total"] - 10 <= sum(arrived.values()) <= last["marked_total"]
    assert min(arrived.values()) > 0


def test_without_ecn_red_drops_and_marks_nothing(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["red False"]
    parsed = done(spec, tmp_path / "run")
    last = samples(parsed, spec, "switch")[-1]
    assert last["marked_total"] == 0
    assert last["drops_total"] > 10
    assert sum(parsed.tables["flows"]["retrans_segments"].to_pylist()) >= last["drops_total"] - 10
    assert len(parsed.tables.get("arrivals", ())) == 0


def test_a_step_marks_what_has_waited_for_longer_and_drops_nothing(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    spec = specs["step"]
    parsed = done(spec, tmp_path / "run")
    rows = samples(parsed, spec, "switch", since_us=2_000_000)
    assert rows[-1]["drops_total"] == 0
    waits = waits_ms(parsed, spec, since_us=2_000_000)
    packet_ms = 1538 * 8 / 20_000
    assert 5 - packet_ms < max(waits) < 2 * 5
    # A marked packet waited behind the packets of earlier samples: a mark needs a long queue shortly before.
    marked = [place for place in range(3, len(rows)) if rows[place]["marked_total"] > rows[place - 1]["marked_total"]]
    assert marked
    assert all(max(waits[place - 3 : place + 1]) > 5 - 1 for place in marked)


def test_a_policer_passes_its_burst_and_its_rate(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    parsed = done(specs["policed"], tmp_path / "run")
    (port,) = (port for port in parsed.achieved["interfaces"] if "policer" in port)
    (udp,) = parsed.told["udp"]
    assert port["policer"]["drops"] > 0
    passed, filled = 1514 * udp["arrived_packets"], 20_000 + 4e6 / 8 * 2
    assert abs(passed - filled) <= 2 * 1514


@pytest.mark.parametrize("limit", [40, 28])
def test_a_switch_that_pauses_its_senders_moves_the_losses_to_them(
    specs: dict[str, RunSpec], tmp_path: Path, limit: int
) -> None:
    spec = specs[f"paused {limit}"]
    parsed = done(spec, tmp_path / "run")
    drops = {port["interface"]: port["drops"] for port in parsed.achieved["interfaces"]}
    (paused,) = (port for port in parsed.achieved["interfaces"] if "pause" in port)
    waiting = [
        row["backlog_packets"] for row in samples(parsed, spec, "switch", since_us=500_000) if row["t_us"] < 2_000_000
    ]
    assert drops[paused["interface"]] == 0
    assert min(drops["client1-eth0"], drops["client2-eth0"]) > 100
    assert paused["pause"]["pauses"] > 50
    # Each of the two senders still completes a frame, and another may be on its way.
    assert 10 <= min(waiting) < max(waiting) <= 25 + 2 * 2


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
    found = done(specs["bursts"], tmp_path / "run").achieved["interfaces"]
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


def test_jitter_that_keeps_the_order_delays_and_reorders_nothing(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    for name in ("free", "kept"):
        done(specs[name], tmp_path / name)
    out_of_order = {name: counted(tmp_path / name, "server", "TcpExt.TCPOFOQueue") for name in ("free", "kept")}
    assert out_of_order["kept"] == 0
    assert out_of_order["free"] > 100


def test_the_declared_share_of_packets_overtakes(specs: dict[str, RunSpec], tmp_path: Path) -> None:
    (report,) = done(specs["overtaking"], tmp_path / "run").reports
    packets = report["bytes_received"] / 1448
    overtaking = counted(tmp_path / "run", "server", "TcpExt.TCPOFOQueue")  # each comes before those that it overtook
    assert packets > 1000
    assert abs(overtaking - 0.01 * packets) <= 6 * (0.01 * 0.99 * packets) ** 0.5
