# SPDX-License-Identifier: Apache-2.0
"""Kernel named by a study: for the whole study, for an experiment, or as a factor of a sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from manifests import HEAD, keys_of, study_of

from longfat.cli.console import Output
from longfat.cli.run import run
from longfat.plan import Plan, build_plan
from longfat.plan.lockfile import read_lock
from longfat.study.catalog.kernels import DEFAULT_KERNEL, ERA_KERNEL

NEWER = "linux-7.3"
STUDY = (
    HEAD
    + """\
  - id: first
    topology: {kind: delay, rate: 100 Mbit/s, rtt: 30 ms}
    flows: [{name: f1, from: client1, to: server, algorithm: standard, duration: 1 s, start_jitter: 1 ms}]
"""
)
SWEPT = STUDY + f'    kernel: "${{kernel}}"\n    sweep: {{product: {{kernel: [{DEFAULT_KERNEL}, {NEWER}]}}}}\n'
NAMED = STUDY.replace("algorithms:", f"kernel: {NEWER}\nalgorithms:")
ERA = STUDY.replace("algorithms:", "stack: linux-2.4\nalgorithms:", 1)
PINS = {"backend": "virtual", "kernel": "k6", "image": "i", "lab": "l"}
DIGESTS = {DEFAULT_KERNEL: "k6", NEWER: "k7"}


def plan(tmp_path: Path, text: str, pins: dict[str, str] = PINS, kernels: dict[str, str] = DIGESTS) -> Plan:
    return build_plan(study_of(tmp_path, text), profile="paper", pins=pins, kernels=kernels)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        (STUDY, "k6"),
        (STUDY.replace("algorithms:", f"kernel: {DEFAULT_KERNEL}\nalgorithms:"), "k6"),
        (NAMED, "k7"),
        (NAMED + f"    kernel: {DEFAULT_KERNEL}\n", "k6"),
        (ERA, ERA_KERNEL),  # it is not there, and never replaced by another
    ],
)
def test_a_run_pins_the_kernel_of_its_experiment_its_study_its_stack_or_the_default_one(
    tmp_path: Path, text: str, kernel: str
) -> None:
    (run,) = plan(tmp_path, text).runs
    assert run.spec.pins == {**PINS, "kernel": kernel}


def test_the_arms_of_a_sweep_over_kernels_differ_in_nothing_but_the_kernel(tmp_path: Path) -> None:
    made = plan(tmp_path, SWEPT)
    pinned = {run.factors["kernel"]: run.spec.pins["kernel"] for run in made.runs}
    assert pinned == DIGESTS
    assert len({run.run_id for run in made.runs}) == 2
    assert len({(run.spec.seed, run.spec.flows) for run in made.runs}) == 1
    assert {run.scenario for run in made.runs} == {f"first.kernel-{name}" for name in DIGESTS}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (STUDY.replace("algorithms:", "kernel: linux-7.2\nalgorithms:"), "kernel"),
        (STUDY + "    kernel: linux-7.2\n", "experiments[0].kernel"),
        (SWEPT.replace(f"{NEWER}]", "linux-7.2]"), "experiments[0].sweep.product.kernel[1]"),
    ],
)
def test_an_unknown_kernel_is_refused(tmp_path: Path, text: str, key: str) -> None:
    assert keys_of(tmp_path, text) == [key]


def test_a_study_over_kernels_is_run_with_each_under_its_own_pin(tmp_path: Path) -> None:
    study = tmp_path / "example"
    study.mkdir()
    (study / "study.yaml").write_text(SWEPT)
    assert run(Output(), str(study), profile="paper", backend="fake", jobs=1, results=tmp_path / "results")
    records = [json.loads(path.read_text()) for path in (tmp_path / "results/raw").glob("*/spec.json")]
    assert sorted(spec["pins"]["kernel"] for spec in records) == [NEWER, "none"]  # the fake backend's names of kernels
    assert read_lock(tmp_path / "results/lock.json").pins["kernel"] == "none"
