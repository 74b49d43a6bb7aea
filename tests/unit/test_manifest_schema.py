# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas for editors, and the generated reference, follow the models."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import test_manifest_load as load
import test_manifest_records as records
from fabricated_results import CLAIMS, FIGURES, write_study
from jsonschema import Draft202012Validator
from manifests import changed, problems_of, refused

from longfat.cli.check import File, check, schema_of
from longfat.cli.console import Output
from longfat.data.study_folder import StudyFolder
from longfat.metrics import METRICS
from longfat.study.schema.source import read_source
from longfat.system.errors import StudyError

ROOT = Path(__file__).parents[2]
SCHEMAS = {name: Draft202012Validator(schema_of(name)) for name in get_args(File)}
SHIPPED = sorted(path for name in SCHEMAS for path in (ROOT / "experiments").glob(f"*/{name}.yaml"))
TEXTS = {"claims": CLAIMS, "figures": FIGURES}


def by_schema(folder: Path, text: str) -> list[str]:
    """Return the messages of the schema about a manifest."""
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return [error.message for error in SCHEMAS["study"].iter_errors(read_source(path).data)]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_shipped_file_is_accepted(path: Path) -> None:
    assert [error.message for error in SCHEMAS[path.stem].iter_errors(read_source(path).data)] == []


@pytest.mark.parametrize(("good", "faults"), [(load.GOOD, load.CASES), (records.GOOD, records.CASES)])
def test_the_schema_refuses_what_check_refuses_except_where_it_would_have_to_look_elsewhere(
    tmp_path: Path, good: str, faults: list[tuple[str, str, int, str]]
) -> None:
    assert by_schema(tmp_path, good) == []
    accepted = [key for old, new, _, key in faults if not by_schema(tmp_path, changed(good, (old, new)))]
    assert accepted == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("claims", "format: 2", "format: 3"),
        ("claims", "claims:", "claim:"),
        ("claims", "    statement: A drop halves the window.\n", ""),
        ("claims", "statement: A drop", "statment: A drop"),
        ("claims", "artifact: fig-2", "artifact: [fig-2]"),
        ("claims", "paper: {value: 0.5, where: figure 2}", "paper: figure 2"),
        ("claims", "relation: drop_ratio[one-drop, at=1500 ms] = 0.5", "relation: []"),
        ("figures", "bars: fig-1", "bar: fig-1"),
        ("figures", "    title: goodput\n", ""),
        ("figures", "series: algorithm", "serie: algorithm"),
        ("figures", "value: 940,", "value: much,"),
        ("figures", "runs: one-drop", "runs: one-drop\n    what: speed"),
    ],
)
def test_check_and_schema_refuse_a_fault_of_claims_or_figures(tmp_path: Path, file: str, old: str, new: str) -> None:
    study = write_study(tmp_path, **{file: changed(TEXTS[file], (old, new))})
    with pytest.raises(StudyError):
        _ = StudyFolder(study).claims if file == "claims" else StudyFolder(study).figures
    assert not SCHEMAS[file].is_valid(read_source(study / f"{file}.yaml").data)


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        ("dumbbell, rate", "dumbel, reverse_rate: 1Gbps, rate", {"kind": "dumbbell", "reverse_rate": "Mbit/s"}),
        ("{limit: 50}", "{kind: pie, limit: 100, interval: 1 s}", {"interval": "tupdate"}),
        ("{limit: 50}", "{kind: sqf, limit: 5 apples}", {"kind": "sfq", "limit": "packets"}),
        ("{limit: 50}", "{kind: red, limit: 100, min: 5 ms, ecn: true}", {"min": "", "max": "", "probability": ""}),
        ("rtt: 10 ms, senders: 1", "rtt: 10 ms, sendres: 1", {"sendres": "bottleneck_queue", "senders": ""}),
        ("rtt: 10 ms", "rtt: 10 ms, loss: {enter: 1 %, leaves: 2 %}", {"leave": "", "leaves": "in_burst"}),
        ("duration: 9 s", "duration: 9 s, start_jiter: 1 ms", {"start_jiter": "start_jitter"}),
    ],
)
def test_errors_are_of_the_kind_that_is_given_or_meant(
    tmp_path: Path, old: str, new: str, keys: dict[str, str]
) -> None:
    problems = problems_of(tmp_path, records.GOOD, (old, new))
    found = {str(one.key).rpartition(".")[2]: f"{one.message} {one.hint}" for one in problems}
    assert len(problems) == len(found)
    assert {key for key, word in keys.items() if word in found.get(key, ())} == keys.keys() == found.keys()
    messages = by_schema(tmp_path, changed(records.GOOD, (old, new)))
    assert messages and not any("valid under any" in message for message in messages)


def test_the_keys_of_a_figure_are_those_of_its_kind(tmp_path: Path) -> None:
    study = write_study(tmp_path, figures=FIGURES.replace("series: algorithm", "serie: algorithm", 1))
    (problem,) = refused(lambda: StudyFolder(study).figures)
    assert str(problem.key).endswith(".serie")
    assert "bars" in problem.message and "cells" not in problem.message


def test_the_tables_of_all_keys_have_every_model_and_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(Output(), keys=True)
    tables = capsys.readouterr().out
    for title in ("hosts.per_host.NAME", "topology.bottleneck_queue: cake", "requests[]", "profiles.NAME"):
        assert f"\n## `{title}`\n" in tables
    assert all(f"\n| `{name}` | " in tables for name, metric in METRICS.items() if metric.shipped)
