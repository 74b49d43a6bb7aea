# SPDX-License-Identifier: Apache-2.0
"""The comparison of results with a committed reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabricated_results import change_json, judge_study, write_results, write_study

from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.plan import PlannedRun
from longfat.report.reference import compare, other_verdicts, write_reference
from longfat.system.errors import StudyError


def analysed(folder: Path, **options: object) -> Path:
    study = write_study(folder)
    write_results(study, folder, **options)  # type: ignore[arg-type]
    build_dataset(folder)
    judge_study(folder, study)
    return study


def test_equal_results_are_identical_to_their_reference(tmp_path: Path) -> None:
    study = StudyFolder(analysed(tmp_path))
    assert compare(tmp_path, study).status == "no_reference"
    path = write_reference(tmp_path, study)
    assert path.parent == study.path / "reference"
    assert "runs" not in json.loads(path.read_text(encoding="ascii"))
    assert compare(tmp_path, study).status == "identical"
    change_json(path, lambda data: data["tables"].update(table_of_an_older_version="0"))
    assert compare(tmp_path, study).status == "identical"


def test_a_reference_has_each_run_if_runs_make_no_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = StudyFolder(analysed(tmp_path))
    monkeypatch.setattr("longfat.report.reference.makes_evidence", lambda backend: False)
    found = json.loads(write_reference(tmp_path, study).read_text(encoding="ascii"))["runs"]
    assert found.keys() == {folder.name for folder in (tmp_path / "raw").iterdir()}


def test_references_of_other_backends_have_verdicts_by_program_and_profile(tmp_path: Path) -> None:
    study = StudyFolder(analysed(tmp_path))
    path = write_reference(tmp_path, study)
    one = json.loads(path.read_text(encoding="ascii"))
    assert other_verdicts(study, one["key"]["backend"]) == {}
    change_json(path, lambda data: data["key"].update(backend="ns2", kernel="ns-2.35"))
    assert other_verdicts(study, one["key"]["backend"]) == {f"ns-2.35, {one['profile']}": one["verdicts"]}


def test_a_changed_number_differs_and_its_table_and_claim_are_named(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    write_reference(tmp_path, StudyFolder(study))

    def bend(run: PlannedRun, record: Path) -> None:
        change_json(record / "flows.json", lambda data: data[0].update(goodput_bps=1.0))

    again = tmp_path / "again"
    write_results(study, again, bend)
    build_dataset(again)
    judge_study(again, study)
    match = compare(again, StudyFolder(study))
    assert match.status == "differs"
    assert match.lines[0].startswith("table flows is ")
    assert "claim window-limits is not reproduced, the reference has reproduced" in match.lines


def test_other_inputs_have_no_reference_and_the_differences_from_the_nearest_are_named(tmp_path: Path) -> None:
    study = analysed(tmp_path)
    path = write_reference(tmp_path, StudyFolder(study))
    change_json(path, lambda data: data["key"].update(kernel="0123456789abcdef"))
    change_json(path, lambda data: data["verdicts"].update(halves="not reproduced"))
    match = compare(tmp_path, StudyFolder(study))
    assert match.status == "no_reference"
    assert "kernel is none, the reference has 0123456789ab" in match.lines
    assert match.lines[-1].startswith("claim halves is ")
    change_json(path, lambda data: data.update(profile="smoke"))
    assert not compare(tmp_path, StudyFolder(study)).lines[-1].startswith("claim")


def test_results_with_excluded_runs_make_no_reference(tmp_path: Path) -> None:
    study = analysed(tmp_path, omit=lambda run: run.experiment == "one-drop")
    with pytest.raises(StudyError, match="1"):
        write_reference(tmp_path, StudyFolder(study))


@pytest.mark.parametrize("text", ["{}", "{"])
def test_a_damaged_reference_is_named(tmp_path: Path, text: str) -> None:
    study = analysed(tmp_path)
    path = write_reference(tmp_path, StudyFolder(study))
    path.write_text(text, encoding="ascii")
    with pytest.raises(StudyError, match=path.name):
        compare(tmp_path, StudyFolder(study))
