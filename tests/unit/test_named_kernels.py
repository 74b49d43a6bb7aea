# SPDX-License-Identifier: Apache-2.0
"""Kernel named by a study: for the whole study, for an experiment, or as a factor of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longfat.backends.ns2 import Ns2Backend
from longfat.backends.ns3 import Ns3Backend
from longfat.backends.protocol import Backend, Capabilities
from longfat.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL, KERNELS, require_kernel
from longfat.cli.console import Output
from longfat.cli.run import named_kernels, run
from longfat.errors import RigError, StudyError
from longfat.manifest.load import load_study
from longfat.manifest.schema import json_schema
from longfat.plan import Plan, build_plan
from longfat.plan.lockfile import read_lock
from longfat.runspec import RunSpec

NEWER = "linux-7.3"
STUDY = """\
format: 2
study: example
title: An example
algorithms:
  standard: {cca: reno}
experiments:
  - id: first
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 30 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: standard, duration: 1 s, start_jitter: 1 ms}]
"""
SWEPT = STUDY + f'    kernel: "${{kernel}}"\n    sweep: {{product: {{kernel: [{DEFAULT_KERNEL}, {NEWER}]}}}}\n'
NAMED = STUDY.replace("algorithms:", f"kernel: {NEWER}\nalgorithms:")
PINS = {"backend": "virtual", "kernel": "k6", "image": "i", "lab": "l"}
DIGESTS = {DEFAULT_KERNEL: "k6", NEWER: "k7"}


def plan(tmp_path: Path, text: str, pins: dict[str, str] = PINS, kernels: dict[str, str] = DIGESTS) -> Plan:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return build_plan(load_study(path), profile="paper", pins=pins, kernels=kernels)


def specs(tmp_path: Path, text: str) -> list[RunSpec]:
    return [run.spec for run in plan(tmp_path, text).runs]


def test_a_study_that_names_no_kernel_has_the_default_one_and_so_has_one_that_names_it(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, STUDY)
    assert spec.pins == PINS
    assert specs(tmp_path, STUDY.replace("algorithms:", f"kernel: {DEFAULT_KERNEL}\nalgorithms:")) == [spec]


def test_a_run_pins_the_digest_of_its_studys_kernel(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, NAMED)
    assert spec.pins == {**PINS, "kernel": "k7"}


def test_a_run_that_names_no_kernel_has_the_kernel_of_its_stack(tmp_path: Path) -> None:
    era = STUDY.replace("algorithms:", "stack: linux-2.4\nalgorithms:", 1)
    digests = {**DIGESTS, ERA_KERNEL: "k6-hz100"}
    made = plan(tmp_path, era, kernels=digests)
    assert made.pins["kernel"] == "k6-hz100"
    assert [run.spec.pins["kernel"] for run in made.runs] == ["k6-hz100"]
    named = plan(tmp_path, era + f"    kernel: {DEFAULT_KERNEL}\n", kernels=digests)
    assert [run.spec.pins["kernel"] for run in named.runs] == ["k6"]


def test_a_kernel_of_a_stack_that_is_not_there_is_never_replaced_by_another(tmp_path: Path) -> None:
    made = plan(tmp_path, STUDY.replace("algorithms:", "stack: linux-2.4\nalgorithms:", 1))
    assert [run.spec.pins["kernel"] for run in made.runs] == [ERA_KERNEL]


def test_a_study_of_the_era_needs_no_other_kernel(tmp_path: Path) -> None:
    era = STUDY.replace("algorithms:", "stack: linux-2.4\nalgorithms:", 1)
    assert named_kernels(plan(tmp_path, era, {"backend": "virtual"}, {})) == (ERA_KERNEL,)


def test_an_experiments_kernel_goes_before_its_studys(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, NAMED + f"    kernel: {DEFAULT_KERNEL}\n")
    assert spec.pins == PINS


def test_the_arms_of_a_sweep_over_kernels_differ_in_nothing_but_the_kernel(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEPT)
    pinned = {run.factors["kernel"]: run.spec.pins["kernel"] for run in made.runs}
    assert pinned == DIGESTS
    assert len({run.run_id for run in made.runs}) == 2
    assert len({(run.spec.seed, run.spec.flows) for run in made.runs}) == 1
    assert {run.scenario for run in made.runs} == {f"first.kernel-{name}" for name in DIGESTS}


@pytest.mark.parametrize(
    ("text", "names"),
    [(STUDY, [DEFAULT_KERNEL]), (NAMED, [NEWER]), (SWEPT, [DEFAULT_KERNEL, NEWER])],
    ids=["none named", "one named", "both named"],
)
def test_only_the_kernels_that_a_plan_needs_are_built(tmp_path: Path, text: str, names: list[str]) -> None:
    assert list(named_kernels(plan(tmp_path, text, {"backend": "virtual"}, {}))) == names


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (STUDY.replace("algorithms:", "kernel: linux-7.2\nalgorithms:"), "kernel"),
        (STUDY + "    kernel: linux-7.2\n", "experiments[0].kernel"),
        (SWEPT.replace(f"{NEWER}]", "linux-7.2]"), "experiments[0].sweep.product.kernel[1]"),
    ],
    ids=["study", "experiment", "factor"],
)
def test_an_unknown_kernel_is_refused_with_the_nearest(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(StudyError) as caught:
        plan(tmp_path, text)
    (problem,) = caught.value.problems
    assert problem.key == key
    assert problem.message.endswith(f"unknown kernel 'linux-7.2'; allowed: {', '.join(KERNELS)}")
    assert problem.hint == f"did you mean {NEWER!r}?"


def test_a_kernel_that_cannot_be_built_is_refused_with_the_nearest() -> None:
    with pytest.raises(StudyError, match=f"unknown kernel 'linux-7.4'; allowed: {', '.join(KERNELS)}") as caught:
        require_kernel("linux-7.4")
    assert caught.value.hint == f"did you mean {NEWER!r}?"


@pytest.mark.parametrize("backend", [Ns2Backend(None, "none", ()), Ns3Backend(None, "none", ())], ids=["ns2", "ns3"])
def test_a_backend_without_named_kernels_refuses_a_run_that_names_one(tmp_path: Path, backend: Backend) -> None:
    (named,) = plan(tmp_path, NAMED, {"backend": "ns2"}, {}).runs
    (other,) = plan(tmp_path, STUDY, {"backend": "ns2"}, {}).runs
    assert backend.refuses(named.spec) == (f"backend {backend.name} has no kernel {NEWER!r}; backend virtual has",)
    assert backend.refuses(other.spec) == ()


def test_the_schema_allows_a_kernel_as_a_factor() -> None:
    schema = json_schema()
    assert {"$ref": "#/$defs/Reference"} in schema["$defs"]["Experiment"]["properties"]["kernel"]["anyOf"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "example"
    folder.mkdir()
    (folder / "study.yaml").write_text(SWEPT)
    return folder


def test_a_study_over_kernels_is_run_with_each_under_its_own_pin(study: Path, tmp_path: Path) -> None:
    assert run(Output(), str(study), profile="paper", backend="fake", jobs=1, results=tmp_path / "results")
    records = [json.loads(path.read_text()) for path in (tmp_path / "results/raw").glob("*/spec.json")]
    assert sorted(spec["pins"]["kernel"] for spec in records) == [NEWER, "none"]  # the fake backend's names of kernels
    assert read_lock(tmp_path / "results/lock.json").pins["kernel"] == "none"


def test_a_study_over_kernels_is_refused_before_anything_is_run_where_there_are_none(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ns2Backend, "capabilities", lambda self: Capabilities(frozenset({"reno"})))  # as if installed
    with pytest.raises(RigError, match=r"1 runs: backend ns2 has no kernel 'linux-7.3'; backend virtual has"):
        run(Output(), str(study), profile="paper", backend="ns2", jobs=1, results=tmp_path / "results")
    assert not list((tmp_path / "results").glob("raw/*"))
