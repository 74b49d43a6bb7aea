# SPDX-License-Identifier: Apache-2.0
"""A record is written once, believed only when every checksum holds, and never lost in silence."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest
from conftest import delay_spec

from longfat.execute.record.bundle import Bundle, RunFacts, RunStatus, run_folder_name
from longfat.execute.record.measured import measured_digest
from longfat.execute.record.verify import find_records, read_record, remove_leftovers, set_aside
from longfat.system.errors import RecordError
from longfat.system.events import Event, Kind, Level

DEAD_PROCESS = 2**22 + 1  # above the largest number that Linux gives a process (PID_MAX_LIMIT)


def commit_run(raw: Path, *, seed: int = 1, status: RunStatus = "ok", scenario: str = "a") -> Path:
    spec = delay_spec(seed)
    facts = RunFacts(spec.run_id, status, None, 1, "fake", 1.5, "2026-01-01T00:00:00+00:00")
    with Bundle(raw, run_folder_name(scenario, seed, spec.run_id), spec) as bundle:
        (bundle.folder / "iperf").mkdir()
        (bundle.folder / "iperf" / "f.txt").write_text("goodput\n")
        (bundle.folder / "flows.json").write_text("[]")
        return bundle.commit(facts)


def test_a_committed_run_reads_back(tmp_path: Path) -> None:
    folder = commit_run(tmp_path)
    record = read_record(folder)
    assert (record.run_id, record.status, record.attempt) == (delay_spec().run_id, "ok", 1)
    assert folder.name == f"a.r01.{record.run_id[:8]}"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_the_checksums_list_every_other_file(tmp_path: Path) -> None:
    lines = (commit_run(tmp_path) / "SHA256SUMS").read_text().splitlines()
    assert [line[66:] for line in lines] == ["flows.json", "iperf/f.txt", "run.json", "spec.json"]


def test_a_committed_run_is_never_overwritten(tmp_path: Path) -> None:
    folder = commit_run(tmp_path)
    before = (folder / "run.json").read_bytes()
    with pytest.raises(RecordError, match="recorded already and a record is never overwritten"):
        commit_run(tmp_path, status="failed")
    assert (folder / "run.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_an_abandoned_bundle_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Bundle(tmp_path, "a.r01.x", delay_spec()) as bundle:
        (bundle.folder / "half").write_text("written")
        raise ZeroDivisionError
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
def test_a_damaged_record_says_what_is_wrong(tmp_path: Path, name: str, text: str | None, problem: str) -> None:
    folder = commit_run(tmp_path)
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
    with pytest.raises(RecordError, match=f"run.json says '{other.run_id}', spec.json is '{spec.run_id}'"):
        read_record(folder)


def test_a_damaged_record_is_set_aside_with_a_warning(tmp_path: Path) -> None:
    good, bad = commit_run(tmp_path, seed=1), commit_run(tmp_path, seed=2)
    (bad / "flows.json").write_text("[")
    events: list[Event] = []
    records = find_records(tmp_path, events.append)
    assert [record.folder for record in records.values()] == [good]
    assert (tmp_path / ".damaged" / f"{bad.name}.1" / "flows.json").read_text() == "["
    assert [(event.kind, event.level) for event in events] == [(Kind.RECORD_SET_ASIDE, Level.WARNING)]
    assert "flows.json has SHA-256" in events[0].message


def test_what_is_set_aside_twice_gets_a_number_each(tmp_path: Path) -> None:
    names = [set_aside(commit_run(tmp_path), ".damaged").name[-2:] for _ in range(2)]
    assert names == [".1", ".2"]


def test_of_two_records_of_one_run_the_ok_one_is_taken(tmp_path: Path) -> None:
    commit_run(tmp_path, scenario="a", status="failed")
    good = commit_run(tmp_path, scenario="b")
    commit_run(tmp_path, scenario="c", status="failed")
    assert [record.folder for record in find_records(tmp_path).values()] == [good]


def test_no_raw_folder_means_no_records(tmp_path: Path) -> None:
    assert find_records(tmp_path / "raw") == {}


def test_only_the_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    mine = tmp_path / f".partial-a.r01.x-{os.getpid()}"
    dead = tmp_path / f".partial-a.r01.x-{DEAD_PROCESS}"
    mine.mkdir()
    dead.mkdir()
    (dead / "half").write_text("written")
    events: list[Event] = []
    remove_leftovers(tmp_path, events.append)
    assert list(tmp_path.iterdir()) == [mine]
    assert events[0].message == f"removed the partial folder of an interrupted run: {dead.name}"


def test_a_partial_folder_is_not_a_record(tmp_path: Path) -> None:
    (tmp_path / ".partial-a.r01.x-1").mkdir()
    assert find_records(tmp_path) == {}


def test_what_was_measured_has_one_digest_whatever_else_is_in_the_folder(tmp_path: Path) -> None:
    def digest(number: int, **files: str) -> str:
        with Bundle(tmp_path, f"run-{number}", dataclasses.replace(delay_spec(), seed=number)) as bundle:
            for name, text in {"flows.json": "[]", "outstanding/f1.csv": "t_us\n", **files}.items():
                (bundle.folder / name).parent.mkdir(exist_ok=True)
                (bundle.folder / name).write_text(text)
            run_id = hashlib.sha256((bundle.folder / "spec.json").read_bytes()).hexdigest()
            folder = bundle.commit(RunFacts(run_id, "ok", None, 1, "fake", float(number), "2000-01-01T00:00:00Z"))
        return measured_digest(folder)

    first = digest(1)
    assert digest(2, **{"iperf/f1.client.txt": "port 2", "captures/f1.pcap": "x", "environment.json": "{}"}) == first
    assert len({first, digest(3, **{"flows.json": "[1]"}), digest(4, **{"outstanding/f1.csv": "t_us\n1\n"})}) == 3
    assert digest(5, **{"sockets.csv": ""}) != first
