# SPDX-License-Identifier: Apache-2.0
"""Kinds of queue: from the manifest to the attributes of the kernel, read back, and judged by a gate."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from bottleneck import missed, planned, problem, queue_of, study
from test_guest_requests import shown

from longfat.guest import counters
from longfat.guest.netlink import attribute
from longfat.guest.options import FORMS, marked
from longfat.guest.qdisc import achieved_egress, queue_commands
from longfat.plan import build_plan
from longfat.spec.network import lay_out
from longfat.spec.runspec import Egress, Queue
from longfat.study.queues import KINDS

FRAME = 1500 + 14 + 24
RED = "{kind: red, limit: 900, min: 50, max: 150, probability: 10 %, ecn: true}"
KEYS = {"policer": "policer: {rate: 50 Mbit/s, burst: 30 kB}", "pause": "pause: {above: 60, below: 30}"}
MADE_OF_OTHERS = {"step"}
TOLD_BY_NUMBERS = sorted(KINDS.keys() - {"pfifo", "bfifo", "red"} - MADE_OF_OTHERS)
WITHOUT_LIMIT = {"cake"}


def told(tmp_path: Path, queue: str) -> Queue:
    return queue_of(planned(tmp_path, queue))


@pytest.mark.parametrize("kind", TOLD_BY_NUMBERS)
def test_a_queue_comes_back_as_the_kernel_was_told(tmp_path: Path, kind: str) -> None:
    queue = told(tmp_path, f"{{kind: {kind}}}")
    assert (queue.limit_packets is None) == (kind in WITHOUT_LIMIT)
    assert len(queue.parameters) > 0 and set(queue.parameters) <= FORMS[kind].names
    (line,) = queue_commands("a-eth0", Egress(10**9, queue=queue))
    found = achieved_egress([shown(line, drops=3)], "a-eth0")
    assert (found["queue_kind"], found["limit_packets"], found["drops"]) == (kind, queue.limit_packets, 3)
    assert {key: found["queue_parameters"][key] for key in queue.parameters} == queue.parameters


@pytest.mark.parametrize(
    ("queue", "told_to_the_kernel"),
    [
        ("{kind: codel, target: 5 ms, interval: 0.1 s, ecn: true}", {"target": 5_000, "interval": 100_000, "ecn": 1}),
        ("{kind: fq_pie, ecn_prob: 15 %, memory_limit: 1 MiB}", {"ecn_prob": 15, "memory_limit": 1 << 20}),
        ("{kind: cake, limit: 4 MiB, flowmode: flows}", {"memory_limit": 4 << 20, "flowmode": 4, "ack_filter": 0}),
        (
            "{kind: dualpi2, step_thresh: 500 us, ecn_mask: any_ect}",
            {"target": 15_000, "step_thresh": 500, "ecn_mask": 3},
        ),
    ],
)
def test_settings_are_in_the_units_of_the_kernel(
    tmp_path: Path, queue: str, told_to_the_kernel: dict[str, int]
) -> None:
    assert told_to_the_kernel.items() <= told(tmp_path, queue).parameters.items()


@pytest.mark.parametrize(
    ("threshold", "us"), [("300 us", 300), ("20", 20 * FRAME * 8 // 100), ("30 kB", 2_400), ("0.2 bdp", 20_000)]
)
def test_a_step_is_a_codel_that_marks_what_has_waited_for_its_threshold(
    tmp_path: Path, threshold: str, us: int
) -> None:
    queue = told(tmp_path, f"{{kind: step, limit: 250, threshold: {threshold}}}")
    assert (queue.kind, queue.limit_packets, queue.parameters["ce_threshold"]) == ("codel", 250, us)
    assert queue.parameters["target"] == queue.parameters["interval"] == 60_000_000
    assert queue.marks
    (line,) = queue_commands("a-eth0", Egress(10**9, queue=queue))
    assert achieved_egress([shown(line)], "a-eth0")["queue_parameters"] == queue.parameters


@pytest.mark.parametrize(
    ("limit", "size"), [("10", 10 * FRAME), ("1.5 bdp", 1_875_000), ("30 ms", 375_000), ("150 kB", 150_000)]
)
def test_a_limit_may_be_packets_bdps_a_time_or_a_size(tmp_path: Path, limit: str, size: int) -> None:
    assert told(tmp_path, f"{{limit: {limit}}}") == Queue("pfifo", size // FRAME)
    assert told(tmp_path, f"{{kind: codel, limit: {limit}}}").limit_packets == size // FRAME
    assert told(tmp_path, f"{{kind: bfifo, limit: {limit}}}") == Queue("bfifo", None, size)


@pytest.mark.parametrize(
    ("queue", "key"),
    [
        *((f"{{limit: {limit}}}", ".limit") for limit in ("0", "1.5", "3 furlongs", "0 ms")),
        ("{kind: codel, target: 5}", ".target"),
        ("{kind: codel, target: 1 s}", ""),  # not below the interval
        ("{kind: pie, tupdate: 1500 us}", ""),
        ("{kind: fq_pie, ecn_prob: 12.5 %}", ".ecn_prob"),
        ("{kind: cake, flowmode: all}", ".flowmode"),
        ("{kind: sfq, limit: 20000}", ".limit"),
        ("{kind: sfq, limit: 5}", ".flows"),
        ("{kind: fq, ecn: true}", ".ecn"),
        ("{kind: pfifo, limit: 5, ecn: true}", ".ecn"),
        ("{kind: blue, limit: 5}", ".kind"),
        (RED.replace("max: 150", "max: 40"), ""),
        (RED.replace("ecn: true", "ecn: true, burst: 20"), ""),
        ("{kind: red, limit: 8333, min: 833, max: 2500, probability: 10 %, ecn: true}", ""),
        ("{kind: red, limit: 9, min: 1, max: 3, probability: 10 %, ecn: true, burst: 1000}", ""),
        (RED.replace("min: 50, ", ""), ".min"),
        (RED.replace("10 %", "0.1"), ".probability"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, queue: str, key: str) -> None:
    assert problem(tmp_path, queue).startswith(f"experiments[0].topology.bottleneck_queue{key}: ")


@pytest.mark.parametrize(
    ("queue", "marks"),
    [
        ("{kind: dualpi2}", True),
        ("{kind: fq_codel, ecn: false, ce_threshold: 2 ms}", True),
        ("{kind: fq_codel, ecn: false}", False),
        ("{kind: pie, ecn: true}", True),
        (RED.replace("10 %", "2.5 %"), True),
        (RED.replace("true", "false"), False),
    ],
)
def test_a_queue_that_can_mark_is_known_as_such(tmp_path: Path, queue: str, marks: bool) -> None:
    assert told(tmp_path, queue).marks is marks


@pytest.mark.parametrize(
    ("queue", "marks", "key"),
    [
        ("{limit: 60}", "above: 60, below: 1", "above: 60 is never exceeded: the queue holds 60 packets"),
        ("{limit: 61}", "above: 60, below: 61", "below: 61 is more than above, 60"),
        ("{limit: 61}", "above: 0, below: 0", "above: 0"),
    ],
)
def test_marks_that_never_pause_are_refused(tmp_path: Path, queue: str, marks: str, key: str) -> None:
    assert problem(tmp_path, queue, f"pause: {{{marks}}}").startswith(f"experiments[0].topology.pause.{key}")


@pytest.mark.parametrize("backend", ["virtual", "mininet"])
def test_the_way_back_may_be_slower(tmp_path: Path, backend: str) -> None:
    keys = "reverse_rate: 1 Mbit/s\n      reverse_queue: {limit: 1 bdp}"
    spec = planned(tmp_path, "{limit: 9}", keys, backend=backend)
    (port,) = (port for port in lay_out(spec).ports["switch2"] if port.egress.rate_bps)
    assert (port.egress.rate_bps, port.egress.queue) == (1_000_000, Queue("pfifo", 100_000 // 8 // FRAME))


@pytest.mark.parametrize(
    ("queue", "part", "bent", "count"),
    [
        ("{kind: fq_codel}", "queue_parameters", {"target": 4_998}, 0),
        ("{kind: fq_codel}", "queue_parameters", {"target": 4_000}, 1),
        ("{kind: fq_codel}", "queue_parameters", {"ecn": 0}, 1),
        ("{kind: fq_codel}", "queue_parameters", {"quantum": 1514}, 0),
        (RED, "queue_parameters", {}, 0),
        (RED, "queue_parameters", {"min": 1}, 1),
        (RED, "queue_parameters", {"probability": 0.2}, 1),
        (RED, "queue_parameters", {"ewma": 9}, 1),
        (RED, "queue_parameters", {"harddrop": True}, 1),
        ("{limit: 100}", "policer", {}, 0),
        ("{limit: 100}", "policer", {"rate_bps": 1}, 1),
        ("{limit: 100}", "policer", {"burst_bytes": 9}, 1),
        ("{limit: 100}", "pause", {"pauses": 0}, 0),
        ("{limit: 100}", "pause", {"above": 59, "below": 0}, 2),
    ],
)
def test_a_setting_that_reads_back_otherwise_is_a_miss(
    tmp_path: Path, queue: str, part: str, bent: dict[str, Any], count: int
) -> None:
    found = missed(
        planned(tmp_path, queue, KEYS.get(part, "")),
        tmp_path / "run",
        lambda port: port["interface"] == "switch-eth1",
        lambda port: port[part].update(bent),
    )
    assert ["switch-eth1" in miss for miss in found] == [True] * count


@pytest.mark.parametrize(("burst", "weight"), [(84, 6), (51, 2), (200, 9)])
def test_the_weight_of_red_is_the_largest_that_lets_the_burst_pass(burst: int, weight: int) -> None:
    queue = Queue("red", None, 1, {"min": 50 * FRAME, "avpkt": FRAME, "burst": burst})
    assert queue.red_weight_log == weight


def test_a_setting_that_no_kernel_has_is_left_out_unless_a_simulator_runs_it(tmp_path: Path) -> None:
    gentle = study(tmp_path, RED.replace("ecn: true", "ecn: true, gentle: true"))
    plan = build_plan(gentle, pins={"backend": "virtual"})
    assert (plan.runs, len(plan.excluded)) == ((), 1)
    assert len(build_plan(gentle, pins={"backend": "ns2"}).runs) == 1


@pytest.mark.parametrize(
    ("kind", "marks"),
    [("red", 3), ("codel", 6 + 8), ("fq_codel", 3 + 7), ("pie", 9), ("fq_pie", 4), ("dualpi2", 6), ("pfifo", 0)],
)
def test_marks_are_read_from_a_kinds_own_statistics(kind: str, marks: int) -> None:
    assert marked(kind, struct.pack("=20I", *range(20))) == marks


def test_the_marks_of_cake_are_those_of_its_classes() -> None:
    tins = b"".join(attribute(number, attribute(8, struct.pack("=I", 20 + number))) for number in (1, 2))
    assert marked("cake", attribute(4, bytes(4)) + attribute(10, tins)) == 43


@pytest.mark.parametrize("name", list(KINDS))
def test_a_limit_in_packets_and_segments_of_64_kib_are_refused_together(tmp_path: Path, name: str) -> None:
    queue = KINDS[name].examples[0]
    study(tmp_path, queue, hosts="{offloads: [gro]}")
    if name in ("bfifo", "red", "cake"):
        study(tmp_path, queue, hosts="{offloads: [gro, gso]}")
        return
    assert problem(tmp_path, queue, hosts="{offloads: [gro, gso]}").startswith("experiments[0].hosts.offloads: ")


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
