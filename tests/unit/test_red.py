# SPDX-License-Identifier: Apache-2.0
"""RED at the bottleneck: from the manifest to tc, read back, judged by a gate, and its marks counted."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from bottleneck import missed, planned, problem, queue_of, study
from fake_backend import FakeBackend
from test_guest_probes import channel

from longfat.dataset.parse import parse_run
from longfat.guest import counters, queues
from longfat.guest.qdisc import egress_commands
from longfat.plan import build_plan
from longfat.spec.runspec import Queue, RunSpec

RED = "{kind: red, limit: 900, min: 50, max: 150, probability: 10 %, ecn: true}"
FRAME = 1500 + 14 + 24


def red_spec(tmp_path: Path) -> RunSpec:
    return planned(tmp_path, RED)


def test_thresholds_in_packets_become_bytes_of_full_frames(tmp_path: Path) -> None:
    queue = queue_of(red_spec(tmp_path))
    assert (queue.kind, queue.limit_packets, queue.limit_bytes) == ("red", None, 900 * FRAME)
    assert (queue.parameters["min"], queue.parameters["max"]) == (50 * FRAME, 150 * FRAME)
    assert (queue.parameters["avpkt"], queue.parameters["probability"]) == (FRAME, 0.1)
    assert queue.parameters["burst"] == 84  # (50 + 50 + 150) / 3, rounded up
    assert queue.marks


def test_tc_gets_every_parameter_that_it_would_otherwise_guess(tmp_path: Path) -> None:
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
    ("queue", "key"),
    [
        (RED.replace("max: 150", "max: 40"), ""),
        (RED.replace("ecn: true", "ecn: true, burst: 20"), ""),
        ("{kind: red, limit: 8333, min: 833, max: 2500, probability: 10 %, ecn: true}", ""),
        ("{kind: red, limit: 9, min: 1, max: 3, probability: 10 %, ecn: true, burst: 1000}", ""),
        (RED.replace("min: 50, ", ""), ".min"),
        (RED.replace("10 %", "0.1"), ".probability"),
        ("{kind: blue, limit: 5}", ".kind"),
        ("{kind: pfifo, limit: 5, ecn: true}", ".ecn"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, queue: str, key: str) -> None:
    assert problem(tmp_path, queue).startswith(f"experiments[0].topology.bottleneck_queue{key}: ")


@pytest.mark.parametrize(
    ("bent", "count"), [({}, 0), ({"min": 1}, 1), ({"probability": 0.2}, 1), ({"ewma": 9}, 1), ({"harddrop": True}, 1)]
)
def test_a_parameter_of_red_that_reads_back_otherwise_is_a_miss(
    tmp_path: Path, bent: dict[str, Any], count: int
) -> None:
    found = missed(
        red_spec(tmp_path),
        tmp_path / "run",
        lambda port: port["queue_kind"] == "red",
        lambda port: port["queue_parameters"].update(bent),
    )
    assert ["switch-eth1" in miss for miss in found] == [True] * count


def test_a_setting_that_no_kernel_has_is_left_out_unless_a_simulator_runs_it(tmp_path: Path) -> None:
    gentle = study(tmp_path, RED.replace("ecn: true", "ecn: true, gentle: true"))
    plan = build_plan(gentle, pins={"backend": "virtual"})
    assert (plan.runs, len(plan.excluded)) == ((), 1)
    assert len(build_plan(gentle, pins={"backend": "ns2"}).runs) == 1


@pytest.mark.parametrize(("recovery", "sack", "runs"), [("sack", "1", 1), ("newreno", "0", 1), ("reno", "0", 0)])
def test_a_recovery_algorithm_is_set_on_a_kernel_that_has_it(
    tmp_path: Path, recovery: str, sack: str, runs: int
) -> None:
    plain = study(tmp_path, RED, hosts=f"{{recovery: {recovery}}}")
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
    assert [counters.read_arrivals(table) for _ in range(2)] == [(217, 7)] * 2
    with pytest.raises(ValueError, match="the kernel"):
        counters.read_arrivals(io.StringIO("IpExt: InNoRoutes\nIpExt: 1\n"))


def test_a_run_that_marks_has_arrivals_and_the_rates_of_its_queues(tmp_path: Path) -> None:
    spec = red_spec(tmp_path)
    FakeBackend().run(spec, tmp_path)
    parsed = parse_run(tmp_path, "id", spec)
    assert set(parsed.tables["arrivals"]["node"].to_pylist()) == {"server"}
    queues = parsed.tables["queues"]
    rates = dict(zip(queues["interface"].to_pylist(), queues["rate_bps"].to_pylist(), strict=True))
    assert (rates["switch-eth1"], rates["switch-eth0"]) == (pytest.approx(100_000_000, rel=50e-6), None)
