# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes: which run alone, and how the others wait for them."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from turns import APART, WORKERS, Turns, group, in_order, is_alone, workers

PATIENCE_S = 20.0


def marked(*names: str) -> Any:
    """A test with these marks."""
    return SimpleNamespace(iter_markers=lambda: [SimpleNamespace(name=name) for name in names])


TOGETHER, DOCKER, ALONE = marked("virtual"), marked("virtual", "docker"), marked("docker", "alone")


@pytest.fixture
def process(tmp_path: Path) -> Callable[[], Turns]:
    """Makes what each process has: its own hold on the same two files."""
    files = [tmp_path / name for name in ("gate", "room")]
    for file in files:
        file.touch()
    return lambda: Turns(*files)


def begins(turns: Turns, item: Any) -> threading.Event:
    """Wait for the turn elsewhere; what is set once it has begun."""
    begun = threading.Event()
    threading.Thread(target=lambda: (turns.begin(item), begun.set()), daemon=True).start()
    return begun


def await_closed(gate: Path) -> None:
    """Wait until somebody stands at the gate."""
    probe, end = os.open(gate, os.O_RDONLY), time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            flock(probe, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            break
        flock(probe, LOCK_UN)
        time.sleep(0.01)
    os.close(probe)


def test_what_runs_in_real_time_is_alone() -> None:
    assert is_alone(ALONE)
    assert not is_alone(DOCKER)
    assert not is_alone(TOGETHER)
    assert not is_alone(None)


def test_what_owns_daemons_is_run_by_one_process_first_and_what_is_alone_last_of_it(tmp_path: Path) -> None:
    def item(name: str, *marks: str) -> Any:
        return SimpleNamespace(**vars(marked(*marks)), path=tmp_path / name, nodeid=f"tests/{name}::test")

    items = [item("realtime/a.py", "alone"), item("unit/b.py"), item("integration/c.py", "slurm"), item("unit/d.py")]
    names = [one.path.name for one in in_order(items)]
    assert names == ["c.py", "a.py", "b.py", "d.py"]
    assert [group(one.nodeid) for one in items] == ["apart", "tests/unit/b.py", "apart", "tests/unit/d.py"]


def test_all_that_owns_daemons_is_in_the_folders_that_one_process_runs() -> None:
    marks = re.compile(r"pytest\.mark\.(docker|qemu|slurm)\b")
    files = [path for path in Path(__file__).parents[1].rglob("test_*.py") if marks.search(path.read_text())]
    assert len(files) > 3
    assert {path.parent.name for path in files} <= APART


def test_most_tests_run_beside_each_other(process: Callable[[], Turns]) -> None:
    first, second = process(), process()
    first.begin(TOGETHER)
    assert begins(second, TOGETHER).wait(PATIENCE_S)


def test_others_wait_until_the_last_of_the_tests_that_are_alone_has_ended(process: Callable[[], Turns]) -> None:
    first, second = process(), process()
    first.begin(ALONE)
    begun = begins(second, TOGETHER)
    first.end(ALONE)
    assert not begun.wait(0.1)
    first.begin(ALONE)
    first.end(TOGETHER)
    assert begun.wait(PATIENCE_S)


def test_who_waits_to_be_alone_lets_nobody_pass(process: Callable[[], Turns], tmp_path: Path) -> None:
    running, alone, late = process(), process(), process()
    running.begin(TOGETHER)
    has_it = begins(alone, ALONE)
    await_closed(tmp_path / "gate")
    passed = begins(late, TOGETHER)
    assert not passed.wait(0.1)
    running.end(TOGETHER)
    assert has_it.wait(PATIENCE_S)
    assert not passed.is_set()
    alone.end(TOGETHER)
    assert passed.wait(PATIENCE_S)


def test_single_files_need_no_workers_and_folders_have_one_for_each_core(tmp_path: Path) -> None:
    assert workers([__file__, f"{__file__}::test_what_owns_the_machine_is_alone"]) == 0
    assert workers([str(tmp_path)]) == workers([__file__, str(tmp_path)]) == min(len(os.sched_getaffinity(0)), WORKERS)


def test_all_that_runs_in_real_time_is_alone() -> None:
    files = sorted((Path(__file__).parents[1] / "realtime").glob("test_*.py"))
    assert len(files) > 2
    assert [path.name for path in files if "pytest.mark.alone" not in path.read_text()] == []
