# SPDX-License-Identifier: Apache-2.0
"""Every kind of traffic keeps to the protocol, and every path, queue and traffic has an example that is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from manifests import HEAD, spec_of
from reference_examples import examples, write_study

from longfat.backends.protocol import FEATURES, Feature, needed
from longfat.plan import build_plan
from longfat.spec.runspec import KINDS, RunSpec
from longfat.study import changing, graphs, impairments, topologies
from longfat.study.load import load_study
from longfat.study.queues import KINDS as QUEUES
from longfat.study.schema.source import read_source
from longfat.study.study_schema import json_schema
from longfat.study.traffic import SECTIONS, section_of

MANIFEST = """\
  - id: only
    topology: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}}
    {section}: [{entry}]
{beside}
"""
BESIDE = "    flows: [{name: beside, from: client2, to: server, algorithm: reno, duration: 60 s}]"


@pytest.fixture
def spec(kind: str, tmp_path: Path) -> RunSpec:
    """The run of the example of the kind, and of a flow next to it."""
    beside = "" if kind == "flows" else BESIDE
    text = MANIFEST.format(section=kind, entry=SECTIONS[kind].model.examples[0], beside=beside)
    return spec_of(tmp_path, HEAD.replace("standard", "reno") + text)


@pytest.mark.parametrize("kind", SECTIONS)
def test_the_example_of_a_kind_is_a_run_that_reads_back(kind: str, spec: RunSpec) -> None:
    (record,) = getattr(spec, kind)
    assert record in spec.sent
    assert section_of(record) is SECTIONS[kind]
    assert RunSpec.from_json(spec.to_json()) == spec
    assert spec.end_us == record.start_us + record.duration_us


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_backend_that_lacks_it_can_name_it(kind: str, spec: RunSpec) -> None:
    wanted = {KINDS[kind].what: KINDS[kind].what}
    drawn = {Feature.CLOCKS, Feature.PROCESSING}
    found = {feature: words for feature, words in needed(spec).items() if feature not in drawn}
    assert found == (wanted if kind != "flows" else {})
    assert set(needed(spec)) <= FEATURES


TOPOLOGIES = {"direct": topologies.Direct, "delay": topologies.Delay, "dumbbell": topologies.Dumbbell,
              "parking_lot": graphs.ParkingLot, "graph": graphs.Graph}  # fmt: skip
OF_PATHS = (*changing.Changing.model_fields, *impairments.Impaired.model_fields, "policer", "reverse_queue")


def test_each_kind_and_each_key_of_a_path_has_an_example() -> None:
    titles = [
        *(f"topology: {name}" for name in TOPOLOGIES),
        *(f"topology.bottleneck_queue: {name}" for name in QUEUES),
        *(f"{name}[]" for name in SECTIONS),
    ]
    found = examples()
    assert [title for title in titles if not found.get(title)] == []
    assert [key for key in OF_PATHS if f"{key}:" not in str(found).replace("'", "")] == []


def test_the_schema_and_the_loader_accept_all_of_them(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(read_source(path).data)] == []
    experiments = {run.experiment for run in build_plan(load_study(path), profile="quick", pins={}).runs}
    assert len(experiments) >= len(TOPOLOGIES) + len(QUEUES) + len(SECTIONS)
