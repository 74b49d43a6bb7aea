# SPDX-License-Identifier: Apache-2.0
"""Kinds of queue beside RED: from the manifest to the kernel's attributes, read back, and judged by a gate."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from fake_backend import FakeBackend
from test_guest_requests import shown
from test_red import STUDY, problem, queue_of, study

from longfat.errors import StudyError
from longfat.gates import Evidence
from longfat.guest.netlink import attribute
from longfat.guest.options import FORMS, MARKED, marked
from longfat.guest.qdisc import achieved_egress, queue_commands
from longfat.links import MARKING
from longfat.manifest.load import load_study
from longfat.network import lay_out
from longfat.plan import build_plan
from longfat.queues import KINDS
from longfat.queues.limit import Place
from longfat.runspec import Egress, Queue, RunSpec
from longfat.traffic import misses
from longfat.units import Duration, Rate

FRAME = 1500 + 14 + 24
MADE_OF_OTHERS = {"step"}
TOLD_BY_NUMBERS = sorted(KINDS.keys() - {"pfifo", "bfifo", "red"} - MADE_OF_OTHERS)
WITHOUT_LIMIT = {"cake"}


def planned(tmp_path: Path, queue: str) -> RunSpec:
    (run,) = build_plan(study(tmp_path, queue), pins={}).runs
    return run.spec


def told(tmp_path: Path, queue: str) -> Queue:
    return queue_of(planned(tmp_path, queue))


def test_the_guest_can_read_every_kind() -> None:
    assert set(KINDS) - {"red"} - MADE_OF_OTHERS <= set(FORMS)


@pytest.mark.parametrize("kind", TOLD_BY_NUMBERS)
def test_a_kind_needs_no_other_key_and_the_kernel_is_told_its_defaults(tmp_path: Path, kind: str) -> None:
    queue = told(tmp_path, f"{{kind: {kind}}}")
    assert queue.kind == kind
    assert (queue.limit_packets is None) == (kind in WITHOUT_LIMIT)
    assert queue.parameters
    assert all(type(value) is int for value in queue.parameters.values())
    assert set(queue.parameters) <= FORMS[kind].names


@pytest.mark.parametrize("kind", TOLD_BY_NUMBERS)
def test_a_queue_comes_back_as_the_kernel_was_told(tmp_path: Path, kind: str) -> None:
    queue = told(tmp_path, f"{{kind: {kind}}}")
    (line,) = queue_commands("a-eth0", Egress(10**9, queue=queue))
    found = achieved_egress([shown(line, drops=3)], "a-eth0")
    assert (found["queue_kind"], found["limit_packets"], found["drops"]) == (kind, queue.limit_packets, 3)
    assert {key: found["queue_parameters"][key] for key in queue.parameters} == queue.parameters


def test_kinds_may_be_swept_over_though_they_have_different_keys(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    sweep = "\n    sweep: {product: {queue: [codel, pie, cake]}}\n"
    path.write_text(STUDY.format(queue='{kind: "${queue}"}', hosts="{}").rstrip() + sweep, encoding="utf-8")
    runs = build_plan(load_study(path), pins={}).runs
    assert {queue_of(run.spec).kind for run in runs} == {"codel", "pie", "cake"}


def test_settings_are_told_in_the_units_of_the_kernel(tmp_path: Path) -> None:
    codel = told(tmp_path, "{kind: codel, limit: 300, target: 5 ms, interval: 0.1 s, ecn: true}")
    assert codel == Queue("codel", 300, None, {"target": 5_000, "interval": 100_000, "ecn": 1})
    assert codel.marks
    fq_pie = told(tmp_path, "{kind: fq_pie, ecn_prob: 15 %, quantum: 300, memory_limit: 1 MiB}")
    assert [fq_pie.parameters[key] for key in ("ecn_prob", "quantum", "memory_limit")] == [15, 300, 1 << 20]
    cake = told(tmp_path, "{kind: cake, limit: 4 MiB, flowmode: flows, diffserv: diffserv4}")
    assert [cake.parameters[key] for key in ("memory_limit", "flowmode", "diffserv", "ack_filter")] == [
        4 << 20,
        4,
        1,
        0,
    ]


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


def test_a_dual_queue_is_told_the_step_of_one_and_the_target_of_the_other(tmp_path: Path) -> None:
    queue = told(tmp_path, "{kind: dualpi2, step_thresh: 500 us, c_protection: 5 %, ecn_mask: any_ect}")
    names = ("target", "step_thresh", "c_protection", "ecn_mask", "coupling")
    assert [queue.parameters[name] for name in names] == [15_000, 500, 5, 3, 2]


@pytest.mark.parametrize(
    ("limit", "packets"),
    [
        ("583", 583),
        ("1.5 bdp", 150 * 100_000_000 // 8_000 // FRAME),
        ("0.001 bdp", 1),
        ("30 ms", 30 * 100_000_000 // 8_000 // FRAME),
        ("150 kB", 150_000 // FRAME),
    ],
)
def test_a_limit_may_be_packets_products_a_time_or_a_size(tmp_path: Path, limit: str, packets: int) -> None:
    assert told(tmp_path, f"{{limit: {limit}}}") == Queue("pfifo", packets)
    assert told(tmp_path, f"{{kind: codel, limit: {limit}}}").limit_packets == packets


@pytest.mark.parametrize(("limit", "size"), [("10", 10 * FRAME), ("1.5 bdp", 1_875_000), ("150 kB", 150_000)])
def test_a_queue_in_bytes_has_the_same_limits_in_bytes(tmp_path: Path, limit: str, size: int) -> None:
    assert told(tmp_path, f"{{kind: bfifo, limit: {limit}}}") == Queue("bfifo", None, size)


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("{limit: 0}", "bottleneck_queue.limit: 0 is out of range; allowed: 1 to 1000000 packets"),
        ("{limit: 1.5}", "bottleneck_queue.limit: 1.5 is not a limit of a queue"),
        ("{limit: 3 furlongs}", "bottleneck_queue.limit: '3 furlongs' is not a limit of a queue"),
        ("{limit: 0 ms}", "bottleneck_queue.limit: '0 ms' is 0; a queue holds at least one packet"),
        ("{kind: codel, target: 5}", "bottleneck_queue.target: 5 has no unit"),
        ("{kind: codel, target: 1 s}", "bottleneck_queue: target 1 s is not below interval 100 ms"),
        ("{kind: pie, tupdate: 1500 us}", "bottleneck_queue: tupdate 1500 us is not a multiple of 1 ms"),
        ("{kind: cake, flowmode: all}", "bottleneck_queue.flowmode:"),
        ("{kind: sfq, limit: 20000}", "bottleneck_queue.limit: 20000 packets are more than 127 flows of 127 packets"),
        ("{kind: sfq, limit: 5}", "bottleneck_queue.flows: 127 flows are more than 5 packets"),
        ("{kind: fq, ecn: true}", "bottleneck_queue.ecn: unknown key 'ecn'"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, queue: str, said: str) -> None:
    assert said in problem(tmp_path, queue)


@pytest.mark.parametrize(
    ("queue", "marks"),
    [
        ("{kind: dualpi2}", True),
        ("{kind: cake}", True),
        ("{kind: codel, ce_threshold: 1 ms}", True),
        ("{kind: fq_codel, ecn: false, ce_threshold: 2 ms}", True),
        ("{kind: fq_codel, ecn: false}", False),
        ("{kind: fq_pie}", False),
        ("{kind: pie, ecn: true}", True),
        ("{kind: step, threshold: 20}", True),
        ("{kind: red, limit: 60, min: 10, max: 30, probability: 10 %, ecn: true}", True),
        ("{kind: red, limit: 60, min: 10, max: 30, probability: 10 %, ecn: false}", False),
        ("{kind: sfq}", False),
    ],
)
def test_a_queue_that_the_kernel_lets_mark_says_so(tmp_path: Path, queue: str, marks: bool) -> None:
    assert told(tmp_path, queue).marks is marks


def test_every_kind_whose_marks_are_counted_is_declared_as_one_that_can_mark() -> None:
    assert {*MARKING} == {*MARKED, "cake"}


@pytest.mark.parametrize("backend", ["virtual", "mininet"])
def test_the_way_back_may_be_slower(tmp_path: Path, backend: str) -> None:
    given = study(tmp_path, "{limit: 9}\n      reverse_rate: 1 Mbit/s\n      reverse_queue: {limit: 1 bdp}")
    (run,) = build_plan(given, pins={"backend": backend}).runs
    (port,) = (port for port in lay_out(run.spec).ports["switch2"] if port.egress.rate_bps)
    assert (port.egress.rate_bps, port.egress.queue) == (1_000_000, Queue("pfifo", 100_000 // 8 // FRAME))


@pytest.mark.parametrize(
    ("bent", "said"),
    [
        ({"target": 4_998}, ()),
        ({"target": 4_000}, ("target of switch-eth1 is 4000, declared 5000",)),
        ({"ecn": 0}, ("ecn of switch-eth1 is 0, declared 1",)),
        ({"quantum": 1514}, ()),
    ],
)
def test_a_setting_that_reads_back_otherwise_is_a_miss(
    tmp_path: Path, bent: dict[str, int], said: tuple[str, ...]
) -> None:
    spec, folder = planned(tmp_path, "{kind: fq_codel}"), tmp_path / "run"
    folder.mkdir()
    FakeBackend().run(spec, folder)
    achieved, reports = (json.loads((folder / f"{name}.json").read_text()) for name in ("achieved", "flows"))
    (port,) = (item for item in achieved["interfaces"] if item["queue_kind"] == "fq_codel")
    port["queue_parameters"].update(bent)
    assert misses(Evidence(spec, achieved, reports)) == said


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
    manifest = f"""\
format: 2
study: s
title: t
algorithms: {{a: {{cca: reno}}}}
experiments:
  - id: one
    topology: {{kind: dumbbell, rate: 5 Mbit/s, rtt: 4 ms, senders: 1, bottleneck_queue: {KINDS[name].examples[0]}}}
    hosts: {{offloads: [gro]}}
    flows: [{{name: f, from: client1, to: server, algorithm: a, duration: 1 s}}]
"""
    path = tmp_path / "study.yaml"
    path.write_text(manifest)
    load_study(path)
    path.write_text(manifest.replace("[gro]", "[gro, gso]"))
    if name in ("bfifo", "red", "cake"):
        load_study(path)
        return
    with pytest.raises(StudyError) as caught:
        load_study(path)
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (8, "experiments[0].hosts.offloads")
    assert f"the limit of queue {name} counts packets" in problem.message


@pytest.mark.parametrize("limit", ["6 GB", "100 bdp", "4000 s"])
def test_a_limit_beyond_the_kernels_numbers_is_refused_in_any_unit(tmp_path: Path, limit: str) -> None:
    for kind in ("pfifo", "bfifo", "codel"):
        queue = Place(Rate.parse("1 Tbit/s"), Duration.parse("600 s"), 1500)
        faults = list(KINDS[kind].model_validate({"kind": kind, "limit": limit}).range_findings(queue))
        assert [fault.path for fault in faults] == [("limit",)], kind
        assert "allowed: up to" in faults[0].message
