# SPDX-License-Identifier: Apache-2.0
"""Kinds of queue other than RED: from the manifest to the attributes of the kernel, read back, and judged by a gate."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from bottleneck import missed, planned, problem, queue_of, study
from test_guest_requests import shown

from longfat.guest.netlink import attribute
from longfat.guest.options import FORMS, MARKED, marked
from longfat.guest.qdisc import achieved_egress, queue_commands
from longfat.spec.network import lay_out
from longfat.spec.runspec import Egress, Queue
from longfat.study.queues import KINDS
from longfat.system.errors import StudyError

FRAME = 1500 + 14 + 24
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
    ("threshold", "us"),
    [("300 us", 300), ("20", 20 * FRAME * 8 // 100), ("30 kB", 2_400), ("0.2 bdp", 20_000)],
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
        ("{kind: cake, flowmode: all}", ".flowmode"),
        ("{kind: sfq, limit: 20000}", ".limit"),
        ("{kind: sfq, limit: 5}", ".flows"),
        ("{kind: fq, ecn: true}", ".ecn"),
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
        ("{kind: red, limit: 60, min: 10, max: 30, probability: 10 %, ecn: true}", True),
        ("{kind: red, limit: 60, min: 10, max: 30, probability: 10 %, ecn: false}", False),
    ],
)
def test_a_queue_that_can_mark_is_known_as_such(tmp_path: Path, queue: str, marks: bool) -> None:
    assert told(tmp_path, queue).marks is marks


@pytest.mark.parametrize("backend", ["virtual", "mininet"])
def test_the_way_back_may_be_slower(tmp_path: Path, backend: str) -> None:
    keys = "reverse_rate: 1 Mbit/s\n      reverse_queue: {limit: 1 bdp}"
    spec = planned(tmp_path, "{limit: 9}", keys, backend=backend)
    (port,) = (port for port in lay_out(spec).ports["switch2"] if port.egress.rate_bps)
    assert (port.egress.rate_bps, port.egress.queue) == (1_000_000, Queue("pfifo", 100_000 // 8 // FRAME))


@pytest.mark.parametrize(
    ("bent", "count"), [({"target": 4_998}, 0), ({"target": 4_000}, 1), ({"ecn": 0}, 1), ({"quantum": 1514}, 0)]
)
def test_a_setting_that_reads_back_otherwise_is_a_miss(tmp_path: Path, bent: dict[str, int], count: int) -> None:
    found = missed(
        planned(tmp_path, "{kind: fq_codel}"),
        tmp_path / "run",
        lambda port: port["queue_kind"] == "fq_codel",
        lambda port: port["queue_parameters"].update(bent),
    )
    assert ["switch-eth1" in miss for miss in found] == [True] * count


@pytest.mark.parametrize("kind", sorted(MARKED))
def test_marks_are_read_from_a_kinds_own_statistics(kind: str) -> None:
    statistics = bytearray(80)
    for number, offset in enumerate(MARKED[kind]):
        struct.pack_into("=I", statistics, offset, 42 - number)
    assert marked(kind, bytes(statistics)) == sum(42 - number for number in range(len(MARKED[kind])))


def test_the_marks_of_cake_are_those_of_its_classes() -> None:
    tins = b"".join(attribute(number, attribute(8, struct.pack("=I", 20 + number))) for number in (1, 2))
    assert marked("cake", attribute(4, bytes(4)) + attribute(10, tins)) == 43
    assert marked("pfifo", b"") == 0


@pytest.mark.parametrize("name", list(KINDS))
def test_a_limit_in_packets_and_segments_of_64_kib_are_refused_together(tmp_path: Path, name: str) -> None:
    queue = KINDS[name].examples[0]
    study(tmp_path, queue, hosts="{offloads: [gro]}")
    if name in ("bfifo", "red", "cake"):
        study(tmp_path, queue, hosts="{offloads: [gro, gso]}")
        return
    with pytest.raises(StudyError) as caught:
        study(tmp_path, queue, hosts="{offloads: [gro, gso]}")
    assert [problem.key for problem in caught.value.problems] == ["experiments[0].hosts.offloads"]
