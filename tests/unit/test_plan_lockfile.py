# SPDX-License-Identifier: Apache-2.0
"""The lock: written whole, read back equal, refused when damaged; the text of a RunSpec; the estimate of the cost."""

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import delay_spec
from manifests import HEAD, plan_of, study_of

from longfat.cli.reproduce import merge_plans
from longfat.plan import Plan, build_plan, estimate, read_lock, write_lock
from longfat.plan.estimate import BYTES_PER_CAPTURED_PACKET
from longfat.spec.runspec import Probes, RunSpec
from longfat.study.load import load_study
from longfat.system.errors import RecordError
from longfat.system.identity import KernelSource

STUDY = (
    HEAD
    + """\
  - id: first
    topology: {kind: delay, rate: 1 Gbit/s, rtt: 30 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: standard, window: "${window}", duration: 10 s}]
    sweep: {product: {window: [16 MiB, 375 kB]}}
    probes: {capture: [f1]}
"""
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    plan = build_plan(study_of(tmp_path, STUDY), pins={"kernel": "k"}, manifest_sha256="aa", claims_sha256="bb")
    return dataclasses.replace(plan, kernels={"k": KernelSource("6.12.117", True)})


def test_a_lock_reads_back_as_the_plan_it_was(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "results" / "lock.json"
    write_lock(plan, path)
    assert read_lock(path) == plan
    assert read_lock(path).to_json() == path.read_text(encoding="ascii")


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


def test_one_lock_has_the_runs_of_all_backends_with_the_pins_of_each(tmp_path: Path) -> None:
    study = load_study(Path(__file__).parents[2] / "experiments/_crosscheck/study.yaml")
    kernels = {name: f"kernel of {name}" for name in ("virtual", "mininet")}
    pins = [{"backend": name, "kernel": kernel} for name, kernel in kernels.items()]
    plans = [build_plan(study, profile="paper", only=["pair"], pins=one) for one in pins]
    write_lock(merge_plans(plans), tmp_path / "lock.json")
    both = read_lock(tmp_path / "lock.json")
    assert both.pins["backend"] == "virtual+mininet"
    assert {(run.factors["backend"], run.spec.pins["kernel"]) for run in both.runs} == {*kernels.items()}
    assert len({run.run_id for run in both.runs}) == 48


def windowed(plan: Plan, window: int) -> Plan:
    """Return the plan of the runs with a window."""
    return dataclasses.replace(plan, runs=tuple(run for run in plan.runs if run.factors["window"] == window))


def test_the_captures_of_two_flows_have_the_packets_of_one_link(tmp_path: Path) -> None:
    second = "}, {name: f2, from: client1, to: server, algorithm: standard, window: 16 MiB, duration: 10 s}]\n    sweep"
    one = plan_of(tmp_path, STUDY)
    two = plan_of(tmp_path, STUDY, ("}]\n    sweep", second), ("[f1]", "[f1, f2]"))
    first, both = (estimate(windowed(plan, 16 << 20), jobs=1).disk_bytes for plan in (one, two))
    assert both == pytest.approx(first, rel=0.01)
    assert first == pytest.approx(833_333 * BYTES_PER_CAPTURED_PACKET, rel=0.01)


def test_an_estimate_counts_a_shared_run_once_and_divides_no_run_among_cores(plan: Plan) -> None:
    doubled = dataclasses.replace(plan, runs=plan.runs * 2)
    once, twice = estimate(plan, jobs=1), estimate(doubled, jobs=1)
    assert (twice.runs, twice.distinct_runs) == (4, 2)
    assert (twice.wall_seconds, twice.disk_bytes) == (once.wall_seconds, once.disk_bytes)
    longest = estimate(windowed(plan, 16 << 20), jobs=1)
    assert estimate(plan, jobs=100).wall_seconds == longest.wall_seconds


def with_image(image: str | None) -> RunSpec:
    spec = delay_spec()
    return dataclasses.replace(spec, nodes=(dataclasses.replace(spec.nodes[0], image=image), *spec.nodes[1:]))


def test_a_later_field_is_part_of_the_identity_only_if_it_is_set() -> None:
    first = {"name", "role", "sysctls", "offloads", "initial_cwnd_segments"}
    assert set(json.loads(with_image(None).to_json())["nodes"][0]) == first
    assert json.loads(with_image("web:1").to_json())["nodes"][0]["image"] == "web:1"
    assert with_image("web:1").run_id != with_image(None).run_id
    text = RunSpec((), (), (), Probes(), 1).to_json()
    assert not [kind for kind in ("udp", "ping", "web", "programs") if kind in text]
