# SPDX-License-Identifier: Apache-2.0
"""Records: written once, believed only when every checksum holds, and joined only when they do not contradict."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from conftest import delay_spec
from tiny_study import call

from longfat.execute.record.bundle import Bundle, RunFacts, RunStatus, measured_digest, run_folder_name
from longfat.execute.record.merge import Joined, merge_records
from longfat.execute.record.verify import find_records, read_record, remove_leftovers
from longfat.relations.firsts import FIRST, First, digest
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RecordError
from longfat.system.events import Event, Kind, Level

DEAD_PROCESS = 2**22 + 1  # above the largest number that Linux gives a process (PID_MAX_LIMIT)


def commit(
    raw: Path,
    seed: int = 1,
    files: Mapping[str, str] = MappingProxyType({}),
    *,
    status: RunStatus = "ok",
    scenario: str = "a",
    seconds: float = 1.5,
) -> Path:
    """Commit a run with two files, and with others or with other content."""
    spec = delay_spec(seed)
    facts = RunFacts(spec.run_id, status, None, 1, "fake", seconds, "2026-01-01T00:00:00+00:00")
    with Bundle(raw, run_folder_name(scenario, seed, spec.run_id), spec) as bundle:
        for name, text in {"flows.json": "[]", "iperf/f.txt": "goodput\n", **files}.items():
            (bundle.folder / name).parent.mkdir(exist_ok=True)
            (bundle.folder / name).write_text(text)
        return bundle.commit(facts)


def test_a_committed_run_reads_back(tmp_path: Path) -> None:
    folder = commit(tmp_path)
    record = read_record(folder)
    assert (record.run_id, record.status, record.attempt) == (delay_spec().run_id, "ok", 1)
    assert folder.name == f"a.r01.{record.run_id[:8]}"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_a_committed_run_is_never_overwritten(tmp_path: Path) -> None:
    folder = commit(tmp_path)
    before = (folder / "run.json").read_bytes()
    with pytest.raises(RecordError):
        commit(tmp_path, status="failed")
    assert (folder / "run.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_an_abandoned_bundle_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Bundle(tmp_path, "a.r01.x", delay_spec()) as bundle:
        (bundle.folder / "half").write_text("written")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_before_the_first_file_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(spec: RunSpec) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunSpec, "to_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Bundle(tmp_path, "a.r01.x", delay_spec())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("flows.json", "[1]", "flows.json has SHA-256"),
        ("flows.json", None, "flows.json is missing"),
        ("extra.csv", "t_us", "extra.csv is not listed in SHA256SUMS"),
        ("run.json", None, "run.json is missing"),
        ("SHA256SUMS", "", "flows.json is not listed"),
        ("SHA256SUMS", None, "cannot be read: FileNotFoundError"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(tmp_path: Path, name: str, text: str | None, problem: str) -> None:
    folder = commit(tmp_path)
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(RecordError, match=problem):
        read_record(folder)


def test_a_record_of_another_spec_is_damaged(tmp_path: Path) -> None:
    spec, other = delay_spec(1), delay_spec(2)
    with Bundle(tmp_path, "a.r01.x", spec) as bundle:
        folder = bundle.commit(RunFacts(other.run_id, "ok", None, 1, "fake", 1.0, "2026"))
    with pytest.raises(RecordError, match=other.run_id):
        read_record(folder)


def test_a_damaged_record_is_set_aside_with_a_warning(tmp_path: Path) -> None:
    good, bad = commit(tmp_path, 1), commit(tmp_path, 2)
    (bad / "flows.json").write_text("[")
    events: list[Event] = []
    records = find_records(tmp_path, events.append)
    assert [record.folder for record in records.values()] == [good]
    assert (tmp_path / ".damaged" / f"{bad.name}.1" / "flows.json").read_text() == "["
    assert [(event.kind, event.level) for event in events] == [(Kind.RECORD_SET_ASIDE, Level.WARNING)]
    assert "flows.json has SHA-256" in events[0].message


def test_the_ok_one_of_two_records_of_a_run_is_taken(tmp_path: Path) -> None:
    commit(tmp_path, scenario="a", status="failed")
    good = commit(tmp_path, scenario="b")
    commit(tmp_path, scenario="c", status="failed")
    commit(tmp_path, scenario="d")
    assert [record.folder for record in find_records(tmp_path).values()] == [good]
    commit(tmp_path, files={"flows.json": "[3]"}, scenario="e")
    with pytest.raises(RecordError, match="other measurements of the same run"):
        find_records(tmp_path)


def test_only_the_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    mine = tmp_path / f".partial-a.r01.x-{os.getpid()}"
    dead = tmp_path / f".partial-a.r01.x-{DEAD_PROCESS}"
    mine.mkdir()
    dead.mkdir()
    (dead / "half").write_text("written")
    events: list[Event] = []
    remove_leftovers(tmp_path, events.append)
    assert list(tmp_path.iterdir()) == [mine]
    assert dead.name in events[0].message
    assert find_records(tmp_path) == {} == find_records(tmp_path / "raw")


def test_the_digest_of_the_measurements_ignores_all_other_files(tmp_path: Path) -> None:
    def digest(number: int, **files: str) -> str:
        measured = {"outstanding/f1.csv": "t_us\n", **files}
        return measured_digest(commit(tmp_path, number, measured, seconds=number))

    first = digest(1)
    assert digest(2, **{"iperf/f.txt": "port 2", "captures/f1.pcap": "x", "environment.json": "{}"}) == first
    assert len({first, digest(3, **{"flows.json": "[1]"}), digest(4, **{"outstanding/f1.csv": "t_us\n1\n"})}) == 3
    assert digest(5, **{"sockets.csv": ""}) != first


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
    there, other = commit(tmp_path / "all/raw", 1), commit(tmp_path / "two/raw", 1, {"flows.json": "[1]"})
    result = call("merge", tmp_path / "all", tmp_path / "two")
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
    result = call("merge", tmp_path / "all", tmp_path / "one")
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


def test_folders_of_different_plans_are_not_joined_and_both_are_named(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for seed, folder in enumerate((one, two), start=1):
        commit(folder / "raw", seed)
        (folder / "lock.json").write_text(json.dumps({"study": "tiny", "seed": seed}))
    result = call("merge", tmp_path / "all", one, two)
    assert result.exit_code == 2
    assert f"{two}/lock.json: the lock differs from {one}/lock.json in seed" in result.stderr
    assert not (tmp_path / "all").exists()


def test_the_claims_that_were_seen_first_are_taken_over(tmp_path: Path) -> None:
    for name, time in (("one", "2026-01-02T00:00:00+00:00"), ("two", "2026-01-01T00:00:00+00:00")):
        commit(tmp_path / name / "raw")
        (tmp_path / name / FIRST).write_text(json.dumps(vars(First(digest({}), time, True, {}))))
    assert call("merge", tmp_path / "all", tmp_path / "one", tmp_path / "two").exit_code == 0
    assert (tmp_path / "all" / FIRST).read_bytes() == (tmp_path / "two" / FIRST).read_bytes()


@pytest.mark.parametrize(("file", "text"), [(FIRST, '{"time": 5}'), (FIRST, "[" * 99999), ("lock.json", "{")])
def test_nothing_is_copied_from_results_whose_other_files_are_damaged(tmp_path: Path, file: str, text: str) -> None:
    commit(tmp_path / "one/raw")
    (tmp_path / "one" / file).write_text(text)
    result = call("merge", tmp_path / "all", tmp_path / "one")
    assert result.exit_code in (2, 3) and f"{tmp_path}/one/{file}" in result.stderr
    assert not (tmp_path / "all").exists()
