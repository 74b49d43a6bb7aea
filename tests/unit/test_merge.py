# SPDX-License-Identifier: Apache-2.0
"""Records from anywhere are joined when each is whole and no two contradict each other, and else nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import delay_spec
from typer.testing import CliRunner, Result

from longfat.cli import app
from longfat.execute.record.bundle import Bundle, RunFacts, RunStatus, run_folder_name
from longfat.execute.record.merge import Joined, merge_records
from longfat.execute.record.verify import find_records
from longfat.system.errors import RecordError


def commit(raw: Path, seed: int, *, status: RunStatus = "ok", flows: str = "[]", scenario: str = "a") -> Path:
    spec = delay_spec(seed)
    facts = RunFacts(spec.run_id, status, None, 1, "fake", 1.5, "2026-01-01T00:00:00+00:00")
    with Bundle(raw, run_folder_name(scenario, seed, spec.run_id), spec) as bundle:
        (bundle.folder / "flows.json").write_text(flows)
        return bundle.commit(facts)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["merge", *map(str, arguments)], env={"COLUMNS": "200"})


def shard(folder: Path, seed: int, *, lock: dict[str, object] | None = None) -> Path:
    """A results folder with one record, and a lock that no plan is read from."""
    commit(folder / "raw", seed)
    if lock is not None:
        (folder / "lock.json").write_text(json.dumps(lock))
    return folder


def test_records_of_several_folders_are_joined_and_stay_where_they_were(tmp_path: Path) -> None:
    first, second, target = tmp_path / "one", tmp_path / "two", tmp_path / "all"
    folders = [commit(first, 1), commit(second, 2), commit(second, 1)]
    target.mkdir()
    both = frozenset({delay_spec(1).run_id, delay_spec(2).run_id})
    assert merge_records(target, [first, second]) == Joined(copied=2, kept=0, ok=both, damaged=())
    assert {record.folder.name for record in find_records(target).values()} == {path.name for path in folders}
    assert all(path.exists() for path in folders)
    assert merge_records(target, [second]) == Joined(copied=0, kept=2, ok=both, damaged=())


def test_two_records_of_a_run_that_measured_different_things_are_both_named(tmp_path: Path) -> None:
    one, two = commit(tmp_path / "one", 1), commit(tmp_path / "two", 1, flows="[1]")
    commit(tmp_path / "two", 2)
    (tmp_path / "all").mkdir()
    with pytest.raises(RecordError, match=f"measured different things:\n  {one} and {two}\n  hint: find out which"):
        merge_records(tmp_path / "all", [tmp_path / "one", tmp_path / "two"])
    assert list((tmp_path / "all").iterdir()) == []


def test_a_conflict_with_what_is_there_already_names_both_and_has_status_3(tmp_path: Path) -> None:
    there, other = commit(tmp_path / "all/raw", 1), commit(tmp_path / "two/raw", 1, flows="[1]")
    result = call(tmp_path / "all", tmp_path / "two")
    assert result.exit_code == 3
    assert f"{there} and {other}" in result.stderr


def test_an_ok_record_replaces_a_failed_one_and_never_the_other_way_round(tmp_path: Path) -> None:
    failed = commit(tmp_path / "all", 1, status="failed")
    commit(tmp_path / "one", 1)
    commit(tmp_path / "two", 1, status="failed", scenario="b")
    assert merge_records(tmp_path / "all", [tmp_path / "two", tmp_path / "one"]).copied == 1
    (record,) = find_records(tmp_path / "all").values()
    assert (record.folder, record.status) == (failed, "ok")
    assert (tmp_path / "all/.superseded" / f"{failed.name}.1").is_dir()
    assert merge_records(tmp_path / "all", [tmp_path / "two"]).copied == 0


def test_a_damaged_record_is_named_and_left_alone(tmp_path: Path) -> None:
    bad = commit(tmp_path / "one/raw", 1)
    commit(tmp_path / "one/raw", 2)
    (bad / "flows.json").write_text("[2]")
    result = call(tmp_path / "all", tmp_path / "one")
    assert result.exit_code == 4
    assert f"damaged: {bad}: flows.json has SHA-256" in result.output
    assert "1 records copied, 0 kept" in result.output
    assert bad.exists() and not (tmp_path / "all/raw" / bad.name).exists()


def test_a_record_with_a_link_is_not_followed(tmp_path: Path) -> None:
    bad = commit(tmp_path / "one", 1)
    (tmp_path / "elsewhere").write_text("[]")
    (bad / "flows.json").unlink()
    (bad / "flows.json").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "all").mkdir()
    assert merge_records(tmp_path / "all", [tmp_path / "one"]).damaged == (
        f"{bad}: flows.json is neither a file nor a folder",
    )
    assert list((tmp_path / "all").iterdir()) == []


def test_a_damaged_record_of_the_target_is_replaced_by_a_whole_one(tmp_path: Path) -> None:
    bad, good = commit(tmp_path / "all", 1), commit(tmp_path / "one", 1)
    (bad / "flows.json").write_text("[2]")
    assert merge_records(tmp_path / "all", [tmp_path / "one"]).copied == 1
    assert (bad / "flows.json").read_bytes() == (good / "flows.json").read_bytes()


def test_folders_of_different_plans_are_not_joined_and_both_are_named(tmp_path: Path) -> None:
    one = shard(tmp_path / "one", 1, lock={"study": "tiny", "seed": 1})
    two = shard(tmp_path / "two", 2, lock={"study": "tiny", "seed": 2})
    result = call(tmp_path / "all", one, two)
    assert result.exit_code == 2
    assert f"{two}/lock.json: the lock differs from {one}/lock.json in seed" in result.stderr
    assert not (tmp_path / "all").exists()


def test_all_folders_that_cannot_be_joined_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    result = call(tmp_path / "all", tmp_path / "none", tmp_path / "all")
    assert result.exit_code == 2
    assert f"{tmp_path}/none: no such folder" in result.stderr
    assert f"{tmp_path}/all: the folder is the target itself" in result.stderr


def test_the_claims_that_were_seen_first_are_taken_over(tmp_path: Path) -> None:
    for name, time in (("one", "2026-01-02T00:00:00+00:00"), ("two", "2026-01-01T00:00:00+00:00")):
        shard(tmp_path / name, 1)
        (tmp_path / name / "claims-first.json").write_text(json.dumps({"time": time}))
    assert call(tmp_path / "all", tmp_path / "one", tmp_path / "two").exit_code == 0
    assert (tmp_path / "all/claims-first.json").read_bytes() == (tmp_path / "two/claims-first.json").read_bytes()
