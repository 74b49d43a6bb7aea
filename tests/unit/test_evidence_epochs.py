# SPDX-License-Identifier: Apache-2.0
"""Epochs: combinations that behave alike share one; a new one starts empty, and old ones stay."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from evidenced import ANOTHER, add, change, copied, with_evidence
from fabricated_results import write_results
from fake_backend import FakeBackend

from longfat.errors import RigError, StudyError
from longfat.evidence.epochs import FOLDER, Combination, Epoch, begin, read_epochs, united, write_epoch
from longfat.evidence.judged import evidence_of
from longfat.plan.lockfile import read_lock
from longfat.studies import StudyFolder
from longfat.verbs import evidence

HERE = Combination.of(FakeBackend().pins())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a study whose nine runs are in its evidence, made once."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        with_evidence(root, patch)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that repository; its results are made anew with another combination, that of this machine."""
    study = copied(made, tmp_path, monkeypatch)
    results = tmp_path / "results" / "small"
    shutil.rmtree(results)
    write_results(study, results, backend=ANOTHER)
    monkeypatch.setattr(evidence, "open_backend", lambda name, settings, say: ANOTHER)
    return tmp_path


def the_epoch(root: Path) -> Epoch:
    (epoch,) = read_epochs(root / FOLDER)
    return epoch


def test_the_first_evidence_begins_an_epoch_with_what_its_canaries_measure(made: Path) -> None:
    epoch = the_epoch(made)
    assert [member.how for member in epoch.members.values()] == ["began"]
    assert set(epoch.members) == {HERE.key}
    assert len(epoch.canaries) == 3 and all(epoch.canaries.values())


def test_a_combination_whose_canaries_behave_alike_joins_the_epoch_and_its_runs_are_the_same(root: Path) -> None:
    told = add(root / "results" / "small")
    assert f"epoch {the_epoch(root).name} also has backend fake" in told
    assert "0 runs added, 9 were there" in told
    assert sorted(member.how for member in the_epoch(root).members.values()) == ["began", "canaries"]


def test_one_whose_canaries_differ_is_refused_and_may_begin_an_empty_epoch_while_the_old_one_stays(root: Path) -> None:
    (path,) = (root / FOLDER).iterdir()
    old = the_epoch(root)
    change(path, f'"era":"{old.canaries["era"]}"', '"era":"0"')
    with pytest.raises(RigError, match=r"does not behave as epoch .* 2 of 3 .*: era"):
        add(root / "results" / "small")
    assert len(the_epoch(root).members) == 1
    # The old epoch is of an earlier day.
    older = dataclasses.replace(the_epoch(root), name="2000-01-01-000000")
    path.unlink()
    write_epoch(older, root / FOLDER)
    study = root / "experiments" / "small"
    (study / "evidence" / old.name).rename(study / "evidence" / older.name)
    for file in (study / "evidence").rglob("*.jsonl"):
        change(file, old.name, older.name)
    assert "9 runs added" in add(root / "results" / "small", new_epoch=True)
    epochs = read_epochs(root / FOLDER)
    assert epochs[0].name == older.name
    assert epochs[1].canaries == old.canaries
    newest, dated = evidence_of(StudyFolder(study), epochs), evidence_of(StudyFolder(study), epochs, epoch=older.name)
    assert newest is not None and dated is not None
    assert (newest.epoch, dated.epoch) == (epochs[1].name, older.name)
    assert newest.runs == dated.runs == 9


def test_results_of_an_unknown_combination_that_this_machine_does_not_have_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "open_backend", lambda name, settings, say: FakeBackend())
    with pytest.raises(StudyError, match="which no epoch lists") as caught:
        add(root / "results" / "small")
    assert "add them where they were made" in str(caught.value)


def test_canaries_that_fail_tell_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "measure", lambda backend, jobs, console: {"era": "", "cca": "1"})
    with pytest.raises(RigError, match=r"canaries failed, so that nothing is known .*: era"):
        add(root / "results" / "small")


def test_runs_in_real_time_make_no_evidence(root: Path) -> None:
    lock = root / "results" / "small" / "lock.json"
    plan = read_lock(lock)
    with pytest.raises(StudyError, match="runs of backend 'mininet' make no evidence"):
        evidence.combination_of(dataclasses.replace(plan, pins={**plan.pins, "backend": "mininet"}))


def test_an_epoch_file_reads_in_any_order_and_a_damaged_one_is_an_error(root: Path) -> None:
    (path,) = (root / FOLDER).iterdir()
    before = the_epoch(root)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[::-1], lines[1]]))
    assert the_epoch(root) == before
    path.write_text(lines[0].replace('"format":1', '"format":9') + lines[1])
    (root / FOLDER / "2001-01-01-abcdef.jsonl").write_text(lines[1])
    with pytest.raises(StudyError, match="format 9, and this version reads 1") as caught:
        read_epochs(root / FOLDER)
    assert "it does not begin one epoch" in str(caught.value)


def test_a_canary_that_one_version_does_not_have_decides_nothing_but_some_must_be_common() -> None:
    epoch = begin([HERE], {"a": "1", "b": "2"}, "2026-01-01")
    assert epoch.compare({"b": "2", "c": "3"}).differing == ()
    assert epoch.compare({"b": "3"}).differing == ("b",)
    assert epoch.compare({"c": "3"}).differing


def test_two_epochs_of_one_name_are_united_only_if_they_behave_alike() -> None:
    epoch = begin([HERE], {"a": "1"}, "2026-01-01")
    other = epoch.with_members([Combination("fake", "k", "i", "l")], "2026-01-02", "canaries")
    assert set(united(epoch, other).members) == set(other.members)
    with pytest.raises(StudyError, match="their canaries measure otherwise"):
        united(epoch, dataclasses.replace(other, canaries={"a": "2"}))
    assert json.loads(other.text().splitlines()[2])["date"] == "2026-01-02"
