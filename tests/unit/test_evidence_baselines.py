# SPDX-License-Identifier: Apache-2.0
"""Baselines: combinations with equal kernel checks share one; a new one starts empty, and old ones stay."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from evidenced import ANOTHER, add, change, copied
from fabricated_results import write_results
from fake_backend import FakeBackend
from test_kernel_check import differ

from longfat.cli import rows
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, Baseline, Combination, begin, merge, read_baselines, write_baseline
from longfat.evidence.judged import evidence_of
from longfat.system.errors import RigError, StudyError

HERE = Combination.of(FakeBackend().pins())


@pytest.fixture
def root(evidence_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that repository; its results are made again with another combination, which this machine has."""
    study = copied(evidence_made, tmp_path, monkeypatch)
    results = tmp_path / "results" / "small"
    shutil.rmtree(results)
    write_results(study, results, backend=ANOTHER)
    monkeypatch.setattr(rows, "open_backend", lambda name, settings, say: ANOTHER)
    return tmp_path


def the_baseline(root: Path) -> Baseline:
    (baseline,) = read_baselines(root / FOLDER)
    return baseline


def test_a_combination_with_the_same_kernel_checks_joins_the_baseline_and_its_runs_are_equal(root: Path) -> None:
    text = add(root / "results" / "small")
    assert f"baseline {the_baseline(root).name} also has backend fake" in text
    assert "0 runs added, 9 were there" in text
    assert sorted(member.how for member in the_baseline(root).members.values()) == ["began", "canaries"]


def test_one_with_other_kernel_checks_is_refused_and_may_begin_an_empty_baseline(root: Path) -> None:
    (path,) = (root / FOLDER).iterdir()
    old = differ(path, "era")
    with pytest.raises(RigError, match=r"does not behave as baseline .* 2 of 3 .*: era"):
        add(root / "results" / "small")
    assert len(the_baseline(root).members) == 1
    older = dataclasses.replace(the_baseline(root), name=f"2000-01-01-{the_baseline(root).name[-6:]}")
    shutil.rmtree(root / FOLDER)
    write_baseline(older, root / FOLDER)
    study = root / "experiments" / "small"
    (study / "evidence" / old.name).rename(study / "evidence" / older.name)
    for file in (study / "evidence").rglob("*.jsonl"):
        change(file, old.name, older.name)
    assert "9 runs added" in add(root / "results" / "small", new_baseline=True)
    baselines = read_baselines(root / FOLDER)
    assert baselines[0].name == older.name
    assert baselines[1].canaries == old.canaries
    newest, dated = (
        evidence_of(StudyFolder(study), baselines),
        evidence_of(StudyFolder(study), baselines, baseline=older.name),
    )
    assert newest is not None and dated is not None
    assert (newest.baseline, dated.baseline) == (baselines[1].name, older.name)
    assert newest.runs == dated.runs == 9


def test_results_of_an_unknown_combination_that_this_machine_does_not_have_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "open_backend", lambda name, settings, say: FakeBackend())
    with pytest.raises(StudyError, match="which no baseline lists") as caught:
        add(root / "results" / "small")
    assert "add them where they were made" in str(caught.value)


def test_a_baseline_file_reads_in_any_order_and_a_damaged_one_is_an_error(root: Path) -> None:
    (path,) = (root / FOLDER).iterdir()
    before = the_baseline(root)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[::-1], lines[1]]))
    assert the_baseline(root) == before
    path.write_text(lines[0].replace('"format":1', '"format":9') + lines[1])
    (root / FOLDER / "2001-01-01-abcdef.jsonl").write_text(lines[1])
    (root / FOLDER / "2002-01-01-abcdef.jsonl").write_text("[" * 99999)
    with pytest.raises(StudyError, match="format 9, and this version reads 1") as caught:
        read_baselines(root / FOLDER)
    assert "the file must have one head" in str(caught.value) and "2002-01-01" in str(caught.value)


def test_a_baseline_of_another_name_is_refused_by_the_digits_of_its_checks(root: Path) -> None:
    (path,) = (root / FOLDER).iterdir()
    newer = "2027-01-01T0000-abcdef"
    change(path, the_baseline(root).name, newer)
    path.rename(path.with_name(f"{newer}.jsonl"))
    with pytest.raises(StudyError, match=f"{newer}.*the name does not end in the digits of its checks"):
        read_baselines(root / FOLDER)


def test_only_checks_that_both_versions_have_decide_and_there_must_be_some() -> None:
    baseline = begin([HERE], {"a": "1", "b": "2"}, "2026-01-01")
    assert baseline.compare({"b": "2", "c": "3"}).differing == ()
    assert baseline.compare({"b": "3"}).differing == ("b",)
    assert baseline.compare({"c": "3"}).differing


def test_two_baselines_of_one_name_are_united_only_if_their_checks_are_equal() -> None:
    baseline = begin([HERE], {"a": "1"}, "2026-01-01")
    other = baseline.with_members([Combination("fake", "k", "i", "l")], "2026-01-02", "canaries")
    assert set(merge(baseline, other).members) == set(other.members)
    with pytest.raises(StudyError, match="different digests"):
        merge(baseline, dataclasses.replace(other, canaries={"a": "2"}))
    assert json.loads(other.text().splitlines()[2])["date"] == "2026-01-02"
