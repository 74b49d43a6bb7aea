# SPDX-License-Identifier: Apache-2.0
"""Tests in several processes: which run alone, and how the others wait for them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from turns import WORKERS, Turns, is_alone, workers

PATIENCE_S = 20.0


def marked(*names: str) -> Any:
    """A test with these marks."""
    return SimpleNamespace(iter_markers=lambda: [SimpleNamespace(name=name) for name in names])


TOGETHER, ALONE = marked("virtual"), marked("virtual", "docker")


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


def test_what_owns_the_machine_is_alone() -> None:
    assert is_alone(ALONE)
    assert not is_alone(TOGETHER)
    assert not is_alone(None)


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
