# SPDX-License-Identifier: Apache-2.0
"""Every kind of traffic keeps to the protocol: what it promises here, all else in the project relies on."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from longfat.backends.protocol import FEATURES, Feature, needed
from longfat.dataset.columns import TABLES, schema_of
from longfat.plan import build_plan, estimate
from longfat.spec.runspec import KINDS, Probes, RunSpec
from longfat.study.load import load_study
from longfat.study.reference import reference
from longfat.study.schema.source import read_source
from longfat.study.study_schema import json_schema
from longfat.study.traffic import KINDS as MODULES
from longfat.study.traffic import SECTIONS, section_of

SOURCE = Path(__file__).parents[2] / "src/longfat"
KNOWS = re.compile(r"import .*\bUdp\b|^class Udp\b", re.MULTILINE)
MANIFEST = """\
format: 2
study: example
title: One entry of a kind
algorithms: {{reno: {{cca: reno}}}}
experiments:
  - id: only
    topology: {{kind: dumbbell, rate: 10 Mbit/s, rtt: 40 ms, senders: 2}}
    {section}: [{entry}]
{beside}
profiles: {{quick: {{duration: 10 s}}}}
"""
BESIDE = "    flows: [{name: beside, from: client2, to: server, algorithm: reno, duration: 60 s}]"


@pytest.fixture
def manifest(kind: str, tmp_path: Path) -> Path:
    """A study with the example of the kind, and a flow beside it."""
    beside = "" if kind == "flows" else BESIDE
    text = MANIFEST.format(section=kind, entry=SECTIONS[kind].model.examples[0], beside=beside)
    (tmp_path / "study.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "study.yaml"


def planned(path: Path, profile: str = "paper") -> RunSpec:
    return build_plan(load_study(path), profile=profile, pins={}).runs[0].spec


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_a_module_here_and_one_in_the_guest(kind: str) -> None:
    assert MODULES[kind] is import_module(f"longfat.study.traffic.{kind}").KIND
    guest = import_module(f"longfat.guest.kinds.{kind}")
    assert {"Traffic", "report"} <= set(vars(guest))


@pytest.mark.parametrize("kind", KINDS)
def test_its_tables_are_among_those_of_the_dataset(kind: str) -> None:
    for table in MODULES[kind].tables:
        assert table.name in TABLES
        assert schema_of(table).names == ["run_id", *table.columns]


@pytest.mark.parametrize("kind", SECTIONS)
def test_its_example_is_a_run_that_reads_back(kind: str, manifest: Path) -> None:
    spec = planned(manifest)
    (record,) = getattr(spec, kind)
    assert record in spec.sent
    assert section_of(record) is SECTIONS[kind]
    assert RunSpec.from_json(spec.to_json()) == spec
    assert spec.end_us == record.start_us + record.duration_us


@pytest.mark.parametrize("kind", SECTIONS)
def test_its_example_stands_in_the_reference_and_the_schema_accepts_it(kind: str, manifest: Path) -> None:
    assert f"{kind}:\n  - {SECTIONS[kind].model.examples[0]}\n" in reference()
    assert list(Draft202012Validator(json_schema()).iter_errors(read_source(manifest).data)) == []


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_profile_shortens_it_and_so_its_cost(kind: str, manifest: Path) -> None:
    assert getattr(planned(manifest, "quick"), kind)[0].duration_us == 10_000_000
    long, short = (build_plan(load_study(manifest), profile=name, pins={}) for name in ("paper", "quick"))
    assert estimate(long, jobs=1).wall_seconds > estimate(short, jobs=1).wall_seconds


@pytest.mark.parametrize("kind", SECTIONS)
def test_a_backend_that_lacks_it_can_say_so(kind: str, manifest: Path) -> None:
    wanted = {KINDS[kind].what: KINDS[kind].what}
    drawn = {Feature.CLOCKS, Feature.PROCESSING}
    found = {feature: words for feature, words in needed(planned(manifest)).items() if feature not in drawn}
    assert found == (wanted if kind != "flows" else {})
    assert set(needed(planned(manifest))) <= FEATURES


def test_a_new_kind_is_known_to_three_modules_alone() -> None:
    """docs/extending.md says so, and shows the commit that added this one."""
    naming = {path for path in SOURCE.rglob("*.py") if KNOWS.search(path.read_text(encoding="utf-8"))}
    assert naming == {SOURCE / name for name in ("spec/runspec.py", "study/traffic/udp.py", "guest/kinds/udp.py")}


def test_a_run_says_nothing_of_kinds_that_it_does_not_have() -> None:
    said = json.loads(RunSpec((), (), (), Probes(), 1).to_json())
    assert set(KINDS) & set(said) == {"flows"}
