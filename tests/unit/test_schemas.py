# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of claims.yaml and figures.yaml accept what ships and refuse what `check` refuses, if they can."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabricated_results import CLAIMS, FIGURES, write_study
from jsonschema import Draft202012Validator

from longfat.cli.check import schema_of
from longfat.data.study_folder import StudyFolder
from longfat.study.schema.source import read_source
from longfat.system.errors import StudyError

ROOT = Path(__file__).parents[2]
SCHEMAS = {"claims": Draft202012Validator(schema_of("claims")), "figures": Draft202012Validator(schema_of("figures"))}
TEXTS = {"claims": CLAIMS, "figures": FIGURES}
SHIPPED = sorted(path for name in SCHEMAS for path in (ROOT / "experiments").glob(f"*/{name}.yaml"))


def test_each_schema_has_an_id_and_a_title_of_its_own() -> None:
    told = [(one.schema["$id"], one.schema["title"]) for one in SCHEMAS.values()]
    assert told == [
        (f"urn:longfat:schema:{name}:2", f"{name}.yaml of a Longfat study") for name in ("claims", "figures")
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_shipped_file_is_accepted(path: Path) -> None:
    assert list(SCHEMAS[path.stem].iter_errors(read_source(path).data)) == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("claims", "format: 2", "format: 3"),
        ("claims", "study: small", "study: Small Study"),
        ("claims", "claims:", "claim:"),
        ("claims", "id: halves", "id: Halves!"),
        ("claims", "    statement: A drop halves the window.\n", ""),
        ("claims", "statement: A drop", "statment: A drop"),
        ("claims", "artifact: fig-2", "artifact: [fig-2]"),
        ("claims", "paper: {value: 0.5, where: figure 2}", "paper: figure 2"),
        ("claims", "where: figure 2", "were: figure 2"),
        ("claims", "relation: drop_ratio[one-drop, at=1500 ms] = 0.5", "relation: 5"),
        ("claims", "relation: drop_ratio[one-drop, at=1500 ms] = 0.5", "relation: []"),
        ("figures", "format: 2", "format: two"),
        ("figures", "bars: fig-1", "bar: fig-1"),
        ("figures", "timeseries: fig-2", "bars: fig-2"),
        ("figures", "    title: goodput\n", ""),
        ("figures", "    of: goodput[delay]\n", ""),
        ("figures", "series: algorithm", "series: 5"),
        ("figures", "series: algorithm", "serie: algorithm"),
        ("figures", "value: 940,", "value: much,"),
        ("figures", "runs: one-drop", "runs: one-drop\n    what: speed"),
        ("figures", "paper: {artifacts: 40, claims: 90}", "paper: {artifacts: many}"),
    ],
)
def test_what_check_refuses_the_schema_refuses(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert old in TEXTS[file]
    text = TEXTS[file].replace(old, new, 1)
    study = write_study(tmp_path, **{file: text})
    with pytest.raises(StudyError):
        _ = StudyFolder(study).claims if file == "claims" else StudyFolder(study).figures
    assert list(SCHEMAS[file].iter_errors(read_source(study / f"{file}.yaml").data))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("claims", "drop_ratio[one-drop", "drop_ratoi[one-drop"),  # names in a relation
        ("claims", "at=1500 ms", "at=1500"),  # units in a relation
        ("claims", "id: halves", "id: window-limits"),  # ids that are given twice
        ("figures", "goodput[delay]", "goodput[dely]"),
        ("figures", "x: window in MiB", "x: window in MIB"),
        ("figures", "timeseries: fig-2", "timeseries: fig-1"),
    ],
)
def test_what_only_the_loader_can_say(tmp_path: Path, file: str, old: str, new: str) -> None:
    assert old in TEXTS[file]
    study = write_study(tmp_path, **{file: TEXTS[file].replace(old, new, 1)})
    assert list(SCHEMAS[file].iter_errors(read_source(study / f"{file}.yaml").data)) == []
    with pytest.raises(StudyError):
        _ = StudyFolder(study).claims if file == "claims" else StudyFolder(study).figures
