# SPDX-License-Identifier: Apache-2.0
"""The lock: written whole, read back equal, refused when damaged; and the estimate of its cost."""

import dataclasses
import json
from pathlib import Path

import pytest

from longfat.plan import Plan, build_plan, estimate, read_lock, write_lock
from longfat.plan.estimate import (
    BYTES_PER_CAPTURED_PACKET,
    FIXED_SECONDS,
    IDLE_PACKETS_PER_S,
    SECONDS_PER_CAPTURED_PACKET,
    SECONDS_PER_PACKET_HOP,
    TYPICAL,
)
from longfat.study.load import load_study
from longfat.system.errors import RecordError
from longfat.system.identity import KernelSource

STUDY = """\
format: 2
study: example
title: An example
algorithms: {standard: {cca: reno}}
hosts: {mtu: 1500 B}
experiments:
  - id: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: standard, window: "${window}", duration: 10 s}]
    sweep: {product: {window: [16 MiB, 375 kB]}}
    probes: {capture: [f1]}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY, encoding="utf-8")
    plan = build_plan(load_study(path), pins={"kernel": "k"}, manifest_sha256="aa", claims_sha256="bb")
    return dataclasses.replace(plan, kernels={"k": KernelSource("6.12.117", True)})


def test_a_lock_reads_back_as_the_plan_it_was(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "results" / "lock.json"
    write_lock(plan, path)
    assert read_lock(path) == plan
    assert read_lock(path).to_json() == path.read_text(encoding="ascii")


def test_a_lock_has_the_release_of_the_kernel_if_it_is_known(plan: Plan) -> None:
    assert json.loads(plan.to_json())["kernels"] == {"k": {"version": "6.12.117", "pinned": True}}
    assert plan.source_of(plan.runs[0]) == KernelSource("6.12.117", True)
    foreign = dataclasses.replace(plan, kernels={})
    assert foreign.source_of(plan.runs[0]) is None
    assert Plan.from_dict(json.loads(foreign.to_json())) == foreign


def test_the_lock_has_the_documented_keys(plan: Plan) -> None:
    data = json.loads(plan.to_json())
    names = "format study profile stack seed kernels manifest_sha256 claims_sha256 pins runs excluded"
    assert set(data) == set(names.split())
    assert set(data["runs"][0]) == {"run_id", "scenario", "experiment", "factors", "repetition", "spec"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format":1', '"format":2'),
        ('"duration_us":10000000', '"duration_us":10000001'),
        ('"seed":1,"stack"', '"stack"'),
        ('"excluded":[],', ""),
        ('"scenario":', '"scenery":'),
        ('"study":"example"', '"study": "example"'),
        ("}\n", ""),
        ("k", "\u00e9"),
    ],
)
def test_a_damaged_lock_is_refused(plan: Plan, tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "lock.json"
    assert old in plan.to_json()
    path.write_text(plan.to_json().replace(old, new), encoding="utf-8")
    with pytest.raises(RecordError):
        read_lock(path)


def test_an_older_lock_lacks_the_kinds_of_traffic_that_came_later(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "lock.json"
    text = plan.to_json().replace('"requests":[],', "")
    assert text != plan.to_json()
    path.write_text(text, encoding="ascii")
    assert read_lock(path) == plan


def test_an_estimate_counts_packets_of_rate_or_window(plan: Plan) -> None:
    # 16 MiB fills the path: 833,333 packets over one link; 375 kB in 30 ms is a tenth of it.
    each = SECONDS_PER_PACKET_HOP + SECONDS_PER_CAPTURED_PACKET
    idle = IDLE_PACKETS_PER_S * 10 * SECONDS_PER_PACKET_HOP
    longest = FIXED_SECONDS + TYPICAL * (833_333 * each + idle)
    both = longest + FIXED_SECONDS + TYPICAL * (83_333 * each + idle)
    assert estimate(plan, jobs=1).wall_seconds == pytest.approx(both, rel=1e-3)
    assert estimate(plan, jobs=100).wall_seconds == pytest.approx(longest, rel=1e-3)


def test_the_captures_of_two_flows_have_the_packets_of_one_link(tmp_path: Path) -> None:
    path, disk = tmp_path / "study.yaml", []
    second = ", {name: f2, from: client1, to: server, algorithm: standard, window: 16 MiB, duration: 10 s}]"
    for flows, captured in (("}]", "[f1]"), ("}" + second, "[f1, f2]")):
        path.write_text(
            STUDY.replace("}]\n    sweep", flows + "\n    sweep").replace("[f1]", captured), encoding="utf-8"
        )
        plan = build_plan(load_study(path), pins={"kernel": "k"}, manifest_sha256="aa", claims_sha256="bb")
        filled = dataclasses.replace(plan, runs=tuple(run for run in plan.runs if run.factors["window"] == 16 << 20))
        disk.append(estimate(filled, jobs=1).disk_bytes)
    assert disk[1] == pytest.approx(disk[0], rel=0.01)
    assert disk[0] == pytest.approx(833_333 * BYTES_PER_CAPTURED_PACKET, rel=0.01)


def test_an_estimate_counts_a_shared_run_once(plan: Plan) -> None:
    doubled = Plan(**{**vars(plan), "runs": plan.runs * 2})
    once, twice = estimate(plan, jobs=1), estimate(doubled, jobs=1)
    assert (twice.runs, twice.distinct_runs) == (4, 2)
    assert twice.wall_seconds == once.wall_seconds
    assert twice.disk_bytes == once.disk_bytes
