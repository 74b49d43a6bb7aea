# SPDX-License-Identifier: Apache-2.0
"""Each run of a plan ends in one record, whatever is killed, crashes or fills up on the way."""

from __future__ import annotations

import dataclasses
import errno
import itertools
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from conftest import delay_spec, plan_of
from fake_backend import FakeBackend, Fault
from slow_study import start_study, workers_of

from longfat.execute import study
from longfat.execute.attempt import Attempt, attempt_run
from longfat.execute.idle_cpu import wait_for_idle_cpu
from longfat.execute.record.verify import find_records
from longfat.execute.results import Results, full_disk, open_results
from longfat.execute.study import Summary, execute
from longfat.plan.model import PlannedRun
from longfat.system.errors import RecordError, RigError
from longfat.system.events import Event, Kind


def run_plan(
    plan: tuple[PlannedRun, ...], backend: FakeBackend, path: Path, jobs: int = 2
) -> tuple[Summary, list[Event]]:
    events: list[Event] = []
    with open_results(path) as results:
        return execute(plan, backend, results, jobs=jobs, events=events.append), events


def faulty(plan: tuple[PlannedRun, ...], fault: Fault, once: Path | None = None) -> FakeBackend:
    """A fake that goes wrong in the second run of the plan."""
    return FakeBackend(faults={plan[1].run_id: fault}, once=once)


def test_every_run_is_recorded_once_and_not_repeated(tmp_path: Path) -> None:
    plan = plan_of(3)
    twice = (*plan, plan[0])
    summary, events = run_plan(twice, FakeBackend(), tmp_path)
    assert summary == Summary(reused=0, executed=3, failed=0)
    assert set(find_records(tmp_path / "raw")) == {run.run_id for run in plan}
    assert Counter(event.kind for event in events)[Kind.RUN_FINISHED] == 3
    again, events = run_plan(twice, FakeBackend(), tmp_path)
    assert again == Summary(reused=3, executed=0, failed=0)
    assert [event.message for event in events] == ["0 runs executed, 3 kept, 0 failed"]


def test_runs_start_in_the_order_of_the_plan(tmp_path: Path) -> None:
    plan = plan_of(4)
    _, events = run_plan(plan, FakeBackend(), tmp_path, jobs=1)
    finished = [event.facts["folder"] for event in events if event.kind is Kind.RUN_FINISHED]
    assert finished == [f"one-flow.r{run.repetition:02d}.{run.run_id[:8]}" for run in plan]


def test_a_crashed_run_is_tried_once_more(tmp_path: Path) -> None:
    plan = plan_of(3)
    summary, events = run_plan(plan, faulty(plan, "crash", once=tmp_path), tmp_path)
    assert summary == Summary(reused=0, executed=3, failed=0)
    (retried,) = [event for event in events if event.kind is Kind.RUN_RETRIED]
    assert "crashed and is repeated: the fake laboratory crashed" in retried.message
    assert find_records(tmp_path / "raw")[plan[1].run_id].attempt == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "the fake laboratory crashed, as it was told to"),
        ("die", "the guest was killed, as it was told to"),
        ("report_failure", "the guest reports: iperf2 found no server"),
    ],
)
def test_a_run_that_fails_twice_is_recorded_as_failed_and_tried_at_the_next_start(
    tmp_path: Path, fault: Fault, reason: str
) -> None:
    plan = plan_of(3)
    summary, _ = run_plan(plan, faulty(plan, fault), tmp_path)
    assert summary == Summary(reused=0, executed=2, failed=1)
    failed = find_records(tmp_path / "raw")[plan[1].run_id]
    assert (failed.status, failed.reason, failed.attempt) == ("failed", reason, 2)
    summary, _ = run_plan(plan, FakeBackend(), tmp_path)
    assert summary == Summary(reused=2, executed=1, failed=0)
    assert (tmp_path / "raw" / ".superseded" / f"{failed.folder.name}.1" / "run.json").exists()


def test_a_failure_that_is_certain_to_come_again_is_not_tried_twice(tmp_path: Path) -> None:
    plan = plan_of(3)
    backend = dataclasses.replace(faulty(plan, "report_failure"), repeats=True)
    summary, events = run_plan(plan, backend, tmp_path)
    assert summary == Summary(reused=0, executed=2, failed=1)
    assert find_records(tmp_path / "raw")[plan[1].run_id].attempt == 1
    assert not [event for event in events if event.kind is Kind.RUN_RETRIED]


def test_a_crash_is_tried_again_even_where_runs_repeat(tmp_path: Path) -> None:
    plan = plan_of(3)
    summary, _ = run_plan(plan, dataclasses.replace(faulty(plan, "crash", once=tmp_path), repeats=True), tmp_path)
    assert summary == Summary(reused=0, executed=3, failed=0)


def test_a_run_that_was_starved_is_repeated_when_the_machine_is_calm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[bool] = []
    monkeypatch.setattr(study, "wait_for_idle_cpu", lambda: waited.append(True))
    plan = plan_of(3)
    summary, events = run_plan(plan, faulty(plan, "starve", once=tmp_path), tmp_path, jobs=1)
    assert summary == Summary(reused=0, executed=3, failed=0)
    (announced,) = [event.message for event in events if event.kind is Kind.RUN_RETRIED]
    assert (
        "tasks waited for a CPU 90 % of the time, allowed 25 %; it is repeated when the machine is idle (1 of 3 t"
        in (announced)
    )
    assert waited == [True]
    assert find_records(tmp_path / "raw")[plan[1].run_id].attempt == 2


def test_a_run_that_is_starved_each_time_is_recorded_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "wait_for_idle_cpu", lambda: False)
    plan = plan_of(2)
    summary, events = run_plan(plan, faulty(plan, "starve"), tmp_path, jobs=1)
    assert summary == Summary(reused=0, executed=2, failed=0)
    assert Counter(event.kind for event in events)[Kind.RUN_RETRIED] == 3
    record = find_records(tmp_path / "raw")[plan[1].run_id]
    assert (record.status, record.attempt) == ("ok", 4)  # that it does not count is the gate's matter


def test_calm_is_waited_for_with_patience(tmp_path: Path) -> None:
    pressure = tmp_path / "cpu"
    totals = iter([1_000_000, 2_000_000, 2_050_000])

    def busy(_seconds: float) -> None:
        pressure.write_text(f"some avg10=0.00 total={next(totals, 9_000_000)}\nfull total=0\n")

    pressure.write_text("some total=0\n")
    assert wait_for_idle_cpu(pressure, busy)
    always = itertools.count(3_000_000, 1_000_000)
    assert not wait_for_idle_cpu(pressure, lambda _: pressure.write_text(f"some total={next(always)}\n"), 10)
    assert next(always) == 8_000_000  # five looks of two seconds
    assert not wait_for_idle_cpu(tmp_path / "nowhere", lambda _: None)


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    first = attempt_run(FakeBackend(), Attempt("a.r01.x", plan_of(1)[0].spec, 1, False), tmp_path)
    before = (tmp_path / "a.r01.x" / "run.json").read_bytes()
    with pytest.raises(RecordError, match="recorded already"):
        attempt_run(FakeBackend(), Attempt("a.r01.x", plan_of(2)[1].spec, 1, False), tmp_path)
    assert first.reason is None and (tmp_path / "a.r01.x" / "run.json").read_bytes() == before


def test_a_damaged_record_is_executed_again(tmp_path: Path) -> None:
    plan = plan_of(2)
    run_plan(plan, FakeBackend(), tmp_path)
    damaged = find_records(tmp_path / "raw")[plan[0].run_id].folder
    (damaged / "flows.json").write_text("[]")
    summary, events = run_plan(plan, FakeBackend(), tmp_path)
    assert summary == Summary(reused=1, executed=1, failed=0)
    assert events[0].kind is Kind.RECORD_SET_ASIDE
    assert (damaged / "flows.json").read_text() != "[]"


def test_killing_everything_loses_only_the_runs_in_flight(tmp_path: Path) -> None:
    process, results = start_study(tmp_path)
    workers = workers_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 30
    while any(Path("/proc", pid, "exe").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)  # the workers notice that they are orphans
    before = {
        record.run_id: (record.folder / "run.json").stat().st_mtime_ns
        for record in find_records(results / "raw").values()
    }
    assert 2 <= len(before) < 8
    summary, _ = run_plan(plan_of(8), FakeBackend(), results)
    assert summary == Summary(reused=len(before), executed=8 - len(before), failed=0)
    after = find_records(results / "raw")
    assert {run_id: (after[run_id].folder / "run.json").stat().st_mtime_ns for run_id in before} == before
    assert sorted(path.name for path in (results / "raw").iterdir()) == sorted(
        record.folder.name for record in after.values()
    )


def test_a_full_disk_stops_the_study_with_a_clear_error(tmp_path: Path) -> None:
    plan = plan_of(3)
    with pytest.raises(RigError, match="can no longer be written: No space left on device"):
        run_plan(plan, faulty(plan, "disk_full"), tmp_path, jobs=1)
    assert list(find_records(tmp_path / "raw")) == [plan[0].run_id]
    assert not list((tmp_path / "raw").glob(".*"))


def test_a_full_disk_of_the_cache_is_not_said_to_be_that_of_the_results(tmp_path: Path) -> None:
    elsewhere = full_disk(tmp_path, OSError(errno.ENOSPC, "No space left on device", "/cache/scratch/run-1/spec.json"))
    assert str(elsewhere).startswith("/cache/scratch/run-1/spec.json: files of a run can no longer be written: No")
    here = full_disk(tmp_path, OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "raw/x")))
    assert str(here).startswith(f"{tmp_path}: the results can no longer be written: No space")


def test_a_crash_on_a_full_disk_is_not_blamed_on_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(2)
    with open_results(tmp_path) as results:
        sizes = iter([1 << 40])
        monkeypatch.setattr(Results, "free_bytes", lambda self: next(sizes, 0))
        with pytest.raises(RigError, match="the disk is full; last run: the fake laboratory crashed"):
            execute(plan, faulty(plan, "crash"), results, jobs=1)


def test_a_disk_too_small_for_the_plan_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with (
        open_results(tmp_path) as results,
        pytest.raises(RigError, match=r"need about 1000000000 MB of disk, but \d+ MB are free"),
    ):
        execute(plan_of(1), FakeBackend(), results, jobs=1, disk_bytes=10**15)
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_refused_run_stops_the_study_before_anything_starts(tmp_path: Path) -> None:
    plan = plan_of(2)
    flow = dataclasses.replace(delay_spec().flows[0], cca="cubi")
    bad = dataclasses.replace(delay_spec(), flows=(flow,))
    entry = dataclasses.replace(plan[0], spec=bad, run_id=bad.run_id)
    with pytest.raises(RigError, match=r"1 runs: no congestion control 'cubi'.*did you mean 'cubic'\?"):
        run_plan((*plan, entry), FakeBackend(), tmp_path)
    assert list((tmp_path / "raw").iterdir()) == []


def test_a_plan_for_other_digests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RigError, match="the plan was made for digests that differ"):
        run_plan(plan_of(1), FakeBackend(achieved_rate_factor=0.9), tmp_path)


def test_a_results_folder_serves_one_start_at_a_time(tmp_path: Path) -> None:
    with (
        open_results(tmp_path),
        pytest.raises(RigError, match=f"in use by process {os.getpid()}") as caught,
        open_results(tmp_path),
    ):
        raise AssertionError("a second start got the folder")
    assert "--results" in str(caught.value)
    with open_results(tmp_path) as results:
        assert results.raw.is_dir()


def test_a_results_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(RigError, match="cannot be written to: Not a directory"),
        open_results(tmp_path / "file" / "results"),
    ):
        raise AssertionError("a folder below a file was opened")


def test_a_device_in_the_place_of_the_holder_is_named(tmp_path: Path) -> None:
    (tmp_path / ".in-use").symlink_to("/dev/null")
    with pytest.raises(RigError, match=r"\.in-use: the results folder cannot be written to"), open_results(tmp_path):
        raise AssertionError("a device held the folder")


def test_run_json_says_how_the_run_was_executed(tmp_path: Path) -> None:
    run_plan(plan_of(1), FakeBackend(), tmp_path)
    (record,) = find_records(tmp_path / "raw").values()
    run = json.loads((record.folder / "run.json").read_text())
    assert set(run) == {
        "format", "run_id", "status", "reason", "attempt", "backend", "wall_seconds", "started_utc", "node"
    }  # fmt: skip
    assert (run["backend"], run["attempt"], run["status"]) == ("fake", 1, "ok")
