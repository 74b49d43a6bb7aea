# SPDX-License-Identifier: Apache-2.0
"""Each run of a plan ends in one record, whatever crashes or fills up on the way; memory limits the runs at a time."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from pathlib import Path

import pytest
from conftest import delay_spec, plan_of
from fake_backend import FakeBackend, Fault

from longfat.execute import study
from longfat.execute.memory import available_bytes
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute, wait_for_idle_cpu
from longfat.plan.model import PlannedRun
from longfat.system.errors import RigError
from longfat.system.events import Event, Kind, Level
from longfat.system.text import sentence


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


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("crash", "the fake laboratory crashed, as it was told to"),
        ("report_failure", "the guest reports: iperf2 found no server"),
    ],
)
def test_a_run_that_fails_twice_is_recorded_as_failed_and_tried_at_the_next_start(
    tmp_path: Path, fault: Fault, reason: str
) -> None:
    plan = plan_of(3)
    summary, events = run_plan(plan, faulty(plan, fault), tmp_path)
    assert summary == Summary(reused=0, executed=2, failed=1)
    assert Counter(event.kind for event in events)[Kind.RUN_RETRIED] == 1
    failed = find_records(tmp_path / "raw")[plan[1].run_id]
    assert (failed.status, failed.attempt, failed.reason) == ("failed", 2, reason)
    summary, _ = run_plan(plan, FakeBackend(), tmp_path)
    assert summary == Summary(reused=2, executed=1, failed=0)
    assert (tmp_path / "raw" / ".superseded" / f"{failed.folder.name}.1" / "run.json").exists()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("GuestError: the shaper of client2 was killed", "the shaper of client2 was killed"),
        ("BrokenPipeError: [Errno 32] Broken pipe", "[Errno 32] Broken pipe"),
        ("TimeoutExpired: Command 'ss' timed out", "Command 'ss' timed out"),
        ("ValueError: GuestError: both", "GuestError: both"),
        ("KeyError: 'nosuch'", "KeyError: 'nosuch'"),
        ("TimeoutError: ", "TimeoutError: "),
        ("client1: no address", "client1: no address"),
        ("The disk is full", "The disk is full"),
    ],
)
def test_a_reason_is_a_sentence_without_the_type_of_its_exception(said: str, reason: str) -> None:
    assert sentence(said) == reason


def test_a_failure_that_is_certain_to_come_again_is_not_tried_twice(tmp_path: Path) -> None:
    plan = plan_of(3)
    backend = dataclasses.replace(faulty(plan, "report_failure"), repeats=True)
    summary, events = run_plan(plan, backend, tmp_path)
    assert summary == Summary(reused=0, executed=2, failed=1)
    assert find_records(tmp_path / "raw")[plan[1].run_id].attempt == 1
    assert not [event for event in events if event.kind is Kind.RUN_RETRIED]


@pytest.mark.parametrize(("once", "repeats"), [(True, 1), (False, 3)])
def test_a_run_that_was_starved_is_repeated_three_times_at_most_when_the_machine_is_calm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: bool, repeats: int
) -> None:
    waited: list[bool] = []
    monkeypatch.setattr(study, "wait_for_idle_cpu", lambda: waited.append(True))
    plan = plan_of(3)
    summary, events = run_plan(plan, faulty(plan, "starve", once=tmp_path if once else None), tmp_path, jobs=1)
    assert summary == Summary(reused=0, executed=3, failed=0)
    announced = [event.message for event in events if event.kind is Kind.RUN_RETRIED]
    assert "90 %" in announced[0] and len(announced) == len(waited) == repeats
    record = find_records(tmp_path / "raw")[plan[1].run_id]
    assert (record.status, record.attempt) == ("ok", 1 + repeats)  # that it does not count is the gate's matter


def test_calm_is_waited_for_with_patience(tmp_path: Path) -> None:
    pressure = tmp_path / "pressure/cpu"
    pressure.parent.mkdir()
    (tmp_path / "stat").write_text("cpu 1 1 1 1 1 1 1 500 0 0\n")
    totals = iter([1_000_000, 2_000_000, 2_050_000])

    def busy(_seconds: float) -> None:
        pressure.write_text(f"some avg10=0.00 total={next(totals, 9_000_000)}\nfull total=0\n")

    pressure.write_text("some total=0\n")
    assert wait_for_idle_cpu(tmp_path, busy)
    always = itertools.count(3_000_000, 1_000_000)
    assert not wait_for_idle_cpu(tmp_path, lambda _: pressure.write_text(f"some total={next(always)}\n"), 10)
    assert next(always) == 8_000_000  # five looks of two seconds
    assert not wait_for_idle_cpu(tmp_path / "nowhere", lambda _: None)


def test_a_full_disk_stops_the_study_with_a_clear_error(tmp_path: Path) -> None:
    plan = plan_of(3)
    with pytest.raises(RigError, match="can no longer be written: No space left on device"):
        run_plan(plan, faulty(plan, "disk_full"), tmp_path, jobs=1)
    assert list(find_records(tmp_path / "raw")) == [plan[0].run_id]
    assert not list((tmp_path / "raw").glob(".*"))


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


GIB = 1 << 30
MEMINFO = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
AVAILABLE = 8_000_000 << 10


def machine(folder: Path, groups: str, files: dict[str, str]) -> Path:
    """A root folder with /proc and control groups."""
    for name, text in {"proc/meminfo": MEMINFO, "proc/self/cgroup": groups, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def group(name: str, limit: str, used: int, cache: int = 0) -> dict[str, str]:
    """Return the files of a control group."""
    values = {"memory.max": limit, "memory.current": str(used), "memory.stat": f"anon 5\ninactive_file {cache}"}
    return {f"sys/fs/cgroup/{name}/{file}": f"{text}\n" for file, text in values.items()}


@pytest.mark.parametrize(
    ("groups", "files", "available"),
    [
        ("0::/\n", {}, AVAILABLE),
        ("0::/user/study\n", group("user/study", str(3 * GIB), 2 * GIB, cache=GIB // 2), GIB + GIB // 2),
        ("0::/user/study\n", group("user", str(2 * GIB), GIB) | group("user/study", "max", 0), GIB),
        ("0::/docker/0123\n", group(".", str(2 * GIB), GIB), GIB),  # in a container only the mount exists
        ("0::/a\n", group("a", str(GIB), 2 * GIB), 0),
    ],
)
def test_the_narrowest_control_group_limits_the_memory(
    tmp_path: Path, groups: str, files: dict[str, str], available: int
) -> None:
    assert available_bytes(machine(tmp_path, groups, files)) == available


def test_memory_for_not_even_one_run_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with (
        open_results(tmp_path) as results,
        pytest.raises(RigError, match=r"a run needs up to 1\.1 GB of memory, but 0\.5 GB are available"),
    ):
        execute(plan_of(2), FakeBackend(), results, jobs=2, memory_bytes=GIB // 2)
    assert list((tmp_path / "raw").iterdir()) == []


def test_no_more_runs_go_on_than_fit_should_the_largest_coincide(tmp_path: Path) -> None:
    sizes = zip(plan_of(3), (1, 2, 1), strict=True)
    specs = [dataclasses.replace(run.spec, memory_bytes=gib * GIB) for run, gib in sizes]
    plan = [PlannedRun(spec.run_id, "one-flow", "one", {}, spec.seed, spec) for spec in specs]
    events: list[Event] = []
    with open_results(tmp_path) as results:
        execute(plan, FakeBackend(), results, jobs=3, events=events.append, memory_bytes=3 * GIB)
    limited, started = events[:2]
    assert (limited.kind, limited.level, limited.facts["jobs"]) == (Kind.JOBS_LIMITED, Level.WARNING, 1)
    assert (started.kind, started.facts["jobs"]) == (Kind.RUNS_STARTED, 1)
