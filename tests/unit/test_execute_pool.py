# SPDX-License-Identifier: Apache-2.0
"""A study ends its guests, listens nowhere, leaves other child processes alone, and goes on where it was ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import plan_of
from fake_backend import FakeBackend
from needs import comes_true

from longfat.execute.attempt import Attempt
from longfat.execute.pool import Threads
from longfat.execute.record.verify import find_records
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute
from longfat.system.processes import children

STUDY = """
import sys
from pathlib import Path
from conftest import plan_of
from fake_backend import FakeBackend
from longfat.execute.results import open_results
from longfat.execute.study import execute

if __name__ == "__main__":
    with open_results(Path(sys.argv[1])) as results:
        execute(plan_of(8), FakeBackend(wall_seconds=0.4), results, jobs=2)
"""


@pytest.fixture
def study(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A study of 8 slow runs that goes on in its own process, two of them recorded, and its results folder."""
    script, results = tmp_path / "study.py", tmp_path / "results"
    script.write_text(STUDY)
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(map(str, (tests, tests / "fake", tests.parent / "src")))
    process = subprocess.Popen(
        [sys.executable, str(script), str(results)], env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(tmp_path)}
    )
    assert comes_true(lambda: len(list((results / "raw").glob("one-flow*"))) >= 2, 30), "the study did not get going"
    yield process, results
    process.kill()
    process.wait()


def test_a_study_listens_nowhere(study: tuple[subprocess.Popen[bytes], Path]) -> None:
    handles = (os.readlink(handle) for handle in Path("/proc", str(study[0].pid), "fd").iterdir())
    assert [handle for handle in handles if handle.startswith("socket:")] == []


def recorded(results: Path) -> dict[str, tuple[str, int]]:
    """Return the folder and the time of each record of a run."""
    records = find_records(results / "raw").items()
    return {run: (one.folder.name, (one.folder / "run.json").stat().st_mtime_ns) for run, one in records}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_guests_end_with_the_command_and_only_the_runs_in_flight_are_lost(
    study: tuple[subprocess.Popen[bytes], Path], tmp_path: Path, number: signal.Signals
) -> None:
    process, results = study
    threads = Path("/proc", str(process.pid), "task").iterdir()
    guests = [pid for thread in threads for pid in (thread / "children").read_text().split()]
    process.send_signal(number)
    process.wait(20)
    assert process.returncode != 0 and comes_true(lambda: not any(Path("/proc", pid, "exe").exists() for pid in guests))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "study.py"]
    assert number is signal.SIGKILL or not list((results / "raw").glob(".*"))
    before = recorded(results)
    assert 2 <= len(before) < 8
    with open_results(results) as opened:
        summary = execute(plan_of(8), FakeBackend(), opened, jobs=2)
    assert summary == Summary(reused=len(before), executed=8 - len(before), failed=0)
    after = recorded(results)
    assert {run: after[run] for run in before} == before
    assert {path.name for path in (results / "raw").iterdir()} == {name for name, _ in after.values()}


def test_an_error_ends_the_guests_of_the_pool_and_no_other_child(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    attempts = [Attempt(f"a.r0{n}.x", run.spec, 1, last=True) for n, run in enumerate(plan_of(2))]
    with pytest.raises(ZeroDivisionError), Threads(FakeBackend(wall_seconds=60), tmp_path, 2) as pool:
        futures = [pool.submit(attempt) for attempt in attempts]
        while len(children()) < 3:
            time.sleep(0.02)
        raise ZeroDivisionError
    assert [future.result(0).settled for future in futures] == [False, False]
    assert children() == {other.pid} and list(tmp_path.iterdir()) == []
    other.kill()
    other.wait()


def test_a_single_slot_is_the_calling_thread(tmp_path: Path) -> None:
    with Threads(FakeBackend(), tmp_path, 1) as pool:
        assert pool.submit(Attempt("a.r01.x", plan_of(1)[0].spec, 1, last=True)).done()
