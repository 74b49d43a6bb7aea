# SPDX-License-Identifier: Apache-2.0
"""A few runs of ns-2 have the digests of experiments/trinh-2004/ns2.json: simulators make no evidence."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from scarce_backends import simulator

from longfat.cli.study import Choices, resolve
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.execute.record.bundle import run_folder_name
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan import write_lock

STUDY = StudyFolder(Path(__file__).parents[2] / "experiments" / "trinh-2004")
SAMPLE = 3


def test_a_sample_of_the_runs_has_the_committed_digests(tmp_path: Path) -> None:
    backend = simulator("ns2")
    reference = json.loads((STUDY.path / "ns2.json").read_text(encoding="ascii"))
    plan = resolve(STUDY, Choices(reference["profile"], stack=reference["stack"]), backend.pins())
    if plan.pins["kernel"] != reference["key"]["kernel"]:
        pytest.skip(f"no reference for {plan.pins['kernel']}")
    made = {name: plan.pins[name] for name in ("backend", "kernel", "image", "code")}
    lock = hashlib.sha256(plan.to_json().encode()).hexdigest()
    assert made.items() <= reference["key"].items(), "the digests are of another model"
    names = {run_folder_name(run.scenario, run.repetition, run.run_id): run for run in plan.runs}
    assert names.keys() == reference["runs"].keys()

    drawn = sorted(names, key=lambda name: hashlib.sha256(f"{lock} {name}".encode()).hexdigest())[:SAMPLE]
    sample = dataclasses.replace(plan, runs=tuple(names[name] for name in drawn))
    with open_results(tmp_path / "results") as results:
        write_lock(sample, results.lock)
        execute(sample.runs, backend, results, jobs=2)
        build_dataset(results.path)
        runs = load_dataset(results.path).runs
    found = {run_folder_name(run.scenario, run.repetition, run.run_id): run.measured for run in runs}
    assert len(found) == SAMPLE and None not in found.values()
    assert found == {name: reference["runs"][name] for name in drawn}
