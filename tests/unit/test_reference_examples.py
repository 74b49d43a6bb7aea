# SPDX-License-Identifier: Apache-2.0
"""Every path, queue and kind of traffic has an example in the reference, which the schema and the loader accept."""

from __future__ import annotations

from pathlib import Path

from jsonschema import Draft202012Validator
from reference_examples import examples, write_study

from longfat.manifest import changing, graphs, impairments, topologies
from longfat.manifest.load import load_study
from longfat.manifest.schema import json_schema
from longfat.plan import build_plan
from longfat.queues import KINDS as QUEUES
from longfat.schema.source import read_source
from longfat.traffic import SECTIONS

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
