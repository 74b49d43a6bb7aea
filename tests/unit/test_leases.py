# SPDX-License-Identifier: Apache-2.0
"""A lease keeps a run for a task that lives, and for no other: no run is done twice for nothing, none is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import plan_of
from fake_backend import FakeBackend

from longfat.errors import RigError
from longfat.events import Event
from longfat.execute import leases, study
from longfat.execute.attempt import Attempt, attempt_run
from longfat.execute.deadline import Deadline
from longfat.execute.leases import STALE_S, Lease, Leases, Watch, require_ended
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute
from longfat.record.bundle import run_folder_name
from longfat.record.verify import find_records

SOURCE = Path(__file__).parents[2] / "src"
HOLD = """
import sys, time
from pathlib import Path
from longfat.execute.leases import Leases
with Leases(Path(sys.argv[1]), "shard 1-of-2") as leases:
    print(leases.take("a.r01.12345678").value, flush=True)
    time.sleep(60)
"""
RUN = "a.r01.12345678"


def killed_holder(results: Path) -> None:
    """A process took the lease of ``RUN`` and was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(results)], env={"PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "new\n"
    process.kill()
    process.communicate()


def holder_elsewhere(results: Path, owner: str = "node7-1-abc") -> Callable[[int], None]:
    """A task on another machine, whose clock is an hour slow, holds ``RUN``; a function that shows its next beat."""
    (results / "leases" / RUN).mkdir(parents=True)
    (results / "leases" / RUN / owner).touch()

    def beat(number: int) -> None:
        facts = {"format": 1, "task": "shard 1-of-2", "machine": "another", "process": os.getpid(), "beat": number}
        text = json.dumps({**facts, "utc": "2001-01-01T00:00:00+00:00"})
        (results / "leases" / f"{owner}.json").write_text(text)

    beat(1)
    return beat


def test_one_task_has_a_run_until_it_gives_it_back(tmp_path: Path) -> None:
    with Leases(tmp_path, "one") as one, Leases(tmp_path, "two") as two:
        assert (one.take(RUN), two.take(RUN)) == (Lease.NEW, None)
        assert two.take("b.r01.12345678") is Lease.NEW
        one.give_back(RUN)
        assert (two.take(RUN), one.take(RUN)) == (Lease.NEW, None)
    assert list(tmp_path.iterdir()) == []


def test_of_many_tasks_that_take_a_run_at_once_one_has_it(tmp_path: Path) -> None:
    tasks = [Leases(tmp_path, str(number)) for number in range(8)]
    (tmp_path / "leases").mkdir()
    took: list[Lease | None] = []
    start = threading.Barrier(len(tasks))

    def take(task: Leases) -> None:
        start.wait()
        took.append(task.take(RUN))

    threads = [threading.Thread(target=take, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, took)) == ["Lease.NEW", *["None"] * 7]


def test_the_lease_of_a_killed_process_of_this_machine_is_taken_over_at_once(tmp_path: Path) -> None:
    killed_holder(tmp_path)
    with Leases(tmp_path, "one") as one, Leases(tmp_path, "two") as two:
        assert (one.take(RUN), two.take(RUN)) == (Lease.TAKEN_OVER, None)
    assert list(tmp_path.iterdir()) == []


def test_a_task_elsewhere_is_dead_when_it_shows_no_life_for_a_while_whatever_its_clock_says(tmp_path: Path) -> None:
    beat, now = holder_elsewhere(tmp_path), [1000.0]
    watch = Watch(tmp_path / "leases", lambda: now[0])
    assert not watch.is_dead("node7-1-abc")
    now[0] += STALE_S - 1
    beat(2)
    assert not watch.is_dead("node7-1-abc")
    now[0] += STALE_S - 1
    assert not watch.is_dead("node7-1-abc")
    now[0] += 1
    assert watch.is_dead("node7-1-abc")


def test_two_who_find_the_same_task_dead_do_not_both_take_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder_elsewhere(tmp_path)
    monkeypatch.setattr(leases, "STALE_S", 0.0)
    with Leases(tmp_path, "one") as one, Leases(tmp_path, "two") as two:
        # Both look at once: what the second one finds in the folder has gone when it renames it.
        monkeypatch.setattr(two, "_watch", _Quicker(one, tmp_path / "leases"))
        assert two.take(RUN) is None
        assert one.held == {RUN}


class _Quicker(Watch):
    """Lets another task take the run over between the look and the rename."""

    def __init__(self, other: Leases, folder: Path) -> None:
        super().__init__(folder)
        self.other = other

    def is_dead(self, owner: str) -> bool:
        assert self.other.take(RUN) is Lease.TAKEN_OVER
        return True


def test_a_folder_is_not_had_alone_while_a_task_elsewhere_lives(tmp_path: Path) -> None:
    beat = holder_elsewhere(tmp_path)
    with pytest.raises(RigError, match="in use by shard 1-of-2, node7-1-abc"):
        require_ended(tmp_path, sleep=lambda _: beat(2))


def test_a_folder_is_had_alone_when_the_tasks_are_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_holder(tmp_path)
    with open_results(tmp_path):
        assert not (tmp_path / "leases").exists()
    holder_elsewhere(tmp_path)
    monkeypatch.setattr(leases, "STALE_S", 0.01)
    require_ended(tmp_path, sleep=lambda _: time.sleep(0.01))
    assert not (tmp_path / "leases").exists()


def test_shards_share_a_folder_and_nobody_else_has_it_meanwhile(tmp_path: Path) -> None:
    with (
        open_results(tmp_path, "1-of-2"),
        open_results(tmp_path, "2-of-2"),
        pytest.raises(RigError, match="in use by shards of a study"),
        open_results(tmp_path),
    ):
        raise AssertionError("the folder was had alone")
    with (
        open_results(tmp_path),
        pytest.raises(RigError, match=f"in use by process {os.getpid()}"),
        open_results(tmp_path, "1-of-2"),
    ):
        raise AssertionError("the folder was shared")


def test_a_run_that_another_task_is_at_is_waited_for_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "LOOK_S", 0.02)
    plan = plan_of(2)
    name = run_folder_name(plan[0].scenario, plan[0].repetition, plan[0].run_id)
    with (
        open_results(tmp_path, "1-of-1") as results,
        Leases(tmp_path, "other") as other,
        Leases(tmp_path, "own") as own,
    ):
        other.take(name)

        def listen(event: Event) -> None:
            if event.facts.get("folder") not in (None, name):  # the other run has ended: this one is waited for
                attempt_run(FakeBackend(), Attempt(name, plan[0].spec, 1, False), results.raw)
                other.give_back(name)

        summary = execute(plan, FakeBackend(), results, jobs=1, leases=own, events=listen)
    assert summary == Summary(reused=1, executed=1, failed=0)
    assert set(find_records(tmp_path / "raw")) == {run.run_id for run in plan}


def test_what_a_dead_task_left_of_a_run_is_removed_and_the_run_is_done(tmp_path: Path) -> None:
    plan = plan_of(1)
    name = run_folder_name(plan[0].scenario, plan[0].repetition, plan[0].run_id)
    with open_results(tmp_path, "1-of-1") as results:
        killed_holder(tmp_path)
        (tmp_path / "leases" / RUN).rename(tmp_path / "leases" / name)
        (results.raw / f".partial-{name}-1").mkdir()
        with Leases(tmp_path, "own") as own:
            assert execute(plan, FakeBackend(), results, jobs=1, leases=own) == Summary(0, 1, 0)
    assert [path.name for path in (tmp_path / "raw").iterdir()] == [name]


def test_a_failed_run_of_an_earlier_start_is_repeated_under_its_lease(tmp_path: Path) -> None:
    plan = plan_of(2)
    failing = FakeBackend(faults={plan[0].run_id: "report_failure"}, repeats=True)
    for backend, expected in ((failing, Summary(0, 1, 1)), (FakeBackend(), Summary(1, 1, 0))):
        with open_results(tmp_path, "1-of-1") as results, Leases(tmp_path, "own") as own:
            assert execute(plan, backend, results, jobs=1, leases=own) == expected
    assert len(list((tmp_path / "raw" / ".superseded").iterdir())) == 1


def test_the_time_ends_runs_and_gives_their_leases_back(tmp_path: Path) -> None:
    plan = plan_of(4)
    with open_results(tmp_path, "1-of-1") as results, Leases(tmp_path, "own") as own:
        deadline = Deadline(2.0, lambda _: 0.0)
        summary = execute(plan, FakeBackend(wall_seconds=30.0), results, jobs=2, leases=own, deadline=deadline)
    assert summary == Summary(reused=0, executed=0, failed=0, left=4)
    assert not (tmp_path / "leases").exists()
    assert list((tmp_path / "raw").iterdir()) == []
