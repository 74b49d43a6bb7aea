# SPDX-License-Identifier: Apache-2.0
"""RED at the bottleneck: from the manifest to tc, read back, judged by a gate, and its marks counted."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from fake_backend import FakeBackend
from test_guest_probes import channel

from longfat.dataset.parse import parse_run
from longfat.guest import counters, queues
from longfat.guest.qdisc import achieved_egress, egress_commands
from longfat.plan import build_plan
from longfat.spec.gates import Evidence
from longfat.spec.runspec import Queue, RunSpec
from longfat.study.load import load_study
from longfat.study.study import Study
from longfat.study.traffic import misses
from longfat.system.errors import StudyError

STUDY = """\
format: 2
study: example
title: An example
algorithms: {{standard: {{cca: reno}}}}
experiments:
  - id: first
    topology:
      kind: dumbbell
      rate: 100 Mbit/s
      host_rate: 1 Gbit/s
      rtt: 100 ms
      senders: 1
      bottleneck_queue: {queue}
    hosts: {hosts}
    flows: [{{name: f1, from: client1, to: server, algorithm: standard, duration: 1 s}}]
"""
RED = "{kind: red, limit: 900, min: 50, max: 150, probability: 10 %, ecn: true}"
FRAME = 1500 + 14 + 24


def study(tmp_path: Path, queue: str = RED, hosts: str = "{}") -> Study:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(queue=queue, hosts=hosts), encoding="utf-8")
    return load_study(path)


def red_spec(tmp_path: Path, queue: str = RED) -> RunSpec:
    (run,) = build_plan(study(tmp_path, queue), pins={}).runs
    return run.spec


def queue_of(spec: RunSpec) -> Queue:
    (queue,) = (link.a.egress.queue for link in spec.links if link.a.node == "switch")
    return queue


def problem(tmp_path: Path, queue: str) -> str:
    with pytest.raises(StudyError) as caught:
        study(tmp_path, queue)
    (found,) = caught.value.problems
    return f"{found.key}: {found.message}"


def test_thresholds_in_packets_become_bytes_of_full_frames(tmp_path: Path) -> None:
    queue = queue_of(red_spec(tmp_path))
    assert (queue.kind, queue.limit_packets, queue.limit_bytes) == ("red", None, 900 * FRAME)
    assert (queue.parameters["min"], queue.parameters["max"]) == (50 * FRAME, 150 * FRAME)
    assert (queue.parameters["avpkt"], queue.parameters["probability"]) == (FRAME, 0.1)
    assert queue.marks


def test_the_burst_follows_from_the_thresholds_unless_it_is_given(tmp_path: Path) -> None:
    assert queue_of(red_spec(tmp_path)).parameters["burst"] == 84  # (50 + 50 + 150) / 3, rounded up
    given = queue_of(red_spec(tmp_path, RED.replace("ecn", "burst: 200, ecn")))
    assert given.parameters["burst"] == 200


def test_tc_is_told_everything_it_would_otherwise_guess(tmp_path: Path) -> None:
    (port,) = (link.a.egress for link in red_spec(tmp_path).links if link.a.node == "switch")
    assert egress_commands("switch-eth1", port, 1500)[1] == (
        "qdisc add dev switch-eth1 parent 1:1 handle 10: red limit 1384200 avpkt 1538 bandwidth 100000000bit burst 84"
        " ecn max 230700 min 76900 probability 0.1"
    )


@pytest.mark.parametrize(("burst", "weight"), [(84, 6), (51, 2), (200, 9)])
def test_the_weight_is_the_largest_that_lets_the_burst_pass(burst: int, weight: int) -> None:
    queue = Queue("red", None, 1, {"min": 50 * FRAME, "avpkt": FRAME, "burst": burst})
    assert queue.red_weight_log == weight


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        (RED.replace("max: 150", "max: 40"), "bottleneck_queue: min 50, max 40 and limit 900 do not ascend"),
        (RED.replace("ecn: true", "ecn: true, burst: 20"), "bottleneck_queue: burst 20 is below min 50"),
        (
            "{kind: red, limit: 8333, min: 833, max: 2500, probability: 10 %, ecn: true}",
            "bottleneck_queue: 22 bits of max = 3845000 bytes and 10 of the weight 2^-10 are 32 or more",
        ),
        (
            "{kind: red, limit: 9, min: 1, max: 3, probability: 10 %, ecn: true, burst: 1000}",
            "bottleneck_queue: a burst of 1000 packets of 1538 bytes has no weight",
        ),
        (RED.replace("min: 50, ", ""), "bottleneck_queue.min: is required here but missing"),
        (RED.replace("10 %", "0.1"), "bottleneck_queue.probability: 0.1 has no unit"),
        ("{kind: blue, limit: 5}", "bottleneck_queue.kind: unknown kind 'blue'"),
        ("{kind: pfifo, limit: 5, ecn: true}", "bottleneck_queue.ecn: unknown key 'ecn'"),
        (RED.replace("ecn: true", "ecn: true, mx: 5"), "bottleneck_queue.mx: unknown key 'mx'"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, queue: str, said: str) -> None:
    assert said in problem(tmp_path, queue)


def test_red_is_read_back_with_its_parameters(tmp_path: Path) -> None:
    shown = json.loads((Path(__file__).parents[1] / "data" / "tc-6.1.0-red.json").read_text(encoding="utf-8"))
    found = achieved_egress(shown, "client1-eth0")["queue_parameters"]
    assert (found["min"], found["max"], found["ecn"], found["harddrop"]) == (30000, 90000, True, False)


def simulated(tmp_path: Path) -> tuple[RunSpec, Path]:
    spec, folder = red_spec(tmp_path), tmp_path / "run"
    folder.mkdir()
    FakeBackend().run(spec, folder)
    return spec, folder


@pytest.mark.parametrize(
    ("bent", "said"),
    [
        ({"min": 1}, "min of switch-eth1 is 1 bytes, declared 76900 bytes"),
        ({"probability": 0.2}, "probability of switch-eth1 is 0.2, declared 0.1"),
        ({"ewma": 9}, "weight of switch-eth1 is 2^-9, declared 2^-6"),
        ({"ecn": False}, "ecn of switch-eth1 is False, declared True"),
        ({"harddrop": True}, "harddrop of switch-eth1 is True, declared False"),
    ],
)
def test_a_parameter_of_red_that_reads_back_otherwise_is_a_miss(
    tmp_path: Path, bent: dict[str, Any], said: str
) -> None:
    spec, folder = simulated(tmp_path)
    achieved, reports = (json.loads((folder / f"{name}.json").read_text()) for name in ("achieved", "flows"))
    assert misses(Evidence(spec, achieved, reports)) == ()
    (port,) = (item for item in achieved["interfaces"] if item["queue_kind"] == "red")
    port["queue_parameters"].update(bent)
    assert misses(Evidence(spec, achieved, reports)) == (said,)


def test_what_no_kernel_has_is_left_out_with_the_reason_unless_a_simulator_runs_it(tmp_path: Path) -> None:
    gentle = study(tmp_path, RED.replace("ecn: true", "ecn: true, gentle: true"))
    plan = build_plan(gentle, pins={"backend": "virtual"})
    assert (plan.runs, [point.reason for point in plan.excluded]) == (
        (),
        ["backend virtual has no RED in gentle mode; backend ns2 has"],
    )
    assert len(build_plan(gentle, pins={"backend": "ns2"}).runs) == 1


@pytest.mark.parametrize(("recovery", "sack", "runs"), [("sack", "1", 1), ("newreno", "0", 1), ("reno", "0", 0)])
def test_a_way_of_recovery_is_told_to_a_kernel_that_has_it(tmp_path: Path, recovery: str, sack: str, runs: int) -> None:
    plain = study(tmp_path, hosts=f"{{recovery: {recovery}}}")
    assert len(build_plan(plain, pins={"backend": "virtual"}).runs) == runs
    (run,) = build_plan(plain, pins={"backend": "ns2"}).runs
    client = run.spec.nodes[0]
    assert (client.sysctls["net.ipv4.tcp_sack"], client.recovery) == (sack, recovery)


def test_the_marks_of_red_are_read_from_its_own_statistics() -> None:
    def attribute(kind: int, payload: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)

    statistics = attribute(1, struct.pack("=QI", 9000, 6)) + attribute(3, struct.pack("=5I", 2, 3076, 1, 0, 0))
    statistics += attribute(4, struct.pack("=4I", 5, 6, 7, 42))
    body = queues.TCMSG.pack(0, 2, 0x10 << 16, 0, 0) + attribute(1, b"red\0") + attribute(7, statistics)
    message = struct.pack("=IHHII", 16 + len(body), 36, 2, 1, 0) + body
    (state,) = queues.read_qdiscs(channel(message + struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)))
    assert (state.kind, state.backlog_packets, state.sent_packets, state.marked) == ("red", 2, 6, 42)


NETSTAT = """\
TcpExt: SyncookiesSent InCEPkts
TcpExt: 1 2
IpExt: InNoRoutes InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts ReasmOverlaps
IpExt: 9 10 0 200 7 9
"""


def test_arrivals_are_counted_by_their_mark() -> None:
    table = io.StringIO(NETSTAT)
    assert counters.read_arrivals(table) == (217, 7)
    assert counters.read_arrivals(table) == (217, 7)


@pytest.mark.parametrize("text", ["", "IpExt: InNoRoutes\nIpExt: 1\n"])
def test_a_kernel_that_does_not_count_marks_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="the kernel"):
        counters.read_arrivals(io.StringIO(text))


def test_a_run_that_marks_has_arrivals_and_the_rates_of_its_queues(tmp_path: Path) -> None:
    spec, folder = simulated(tmp_path)
    parsed = parse_run(folder, "id", spec)
    assert set(parsed.tables["arrivals"]["node"].to_pylist()) == {"server"}
    rates = dict(
        zip(
            parsed.tables["queues"]["interface"].to_pylist(),
            parsed.tables["queues"]["rate_bps"].to_pylist(),
            strict=True,
        )
    )
    assert (rates["switch-eth1"], rates["switch-eth0"]) == (pytest.approx(100_000_000, rel=50e-6), None)
