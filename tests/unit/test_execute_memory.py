# SPDX-License-Identifier: Apache-2.0
"""The machine's memory limits the number of guests that run at a time."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import pytest
from conftest import delay_spec, plan_of
from fake_backend import FakeBackend
from hypothesis import given, settings
from hypothesis import strategies as st

from longfat.execute.memory import available_bytes, needed_bytes, runs_that_fit
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.spec.runspec import RunSpec
from longfat.system.errors import RigError
from longfat.system.events import Event, Kind, Level

GIB = 1 << 30
MEMINFO = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
AVAILABLE = 8_000_000 << 10


one = functools.cache(delay_spec)


def needing(*gib: int) -> list[RunSpec]:
    """Runs of guests with so much memory."""
    return [dataclasses.replace(one(seed), memory_bytes=size * GIB) for seed, size in enumerate(gib)]


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


@settings(deadline=None)  # a busy machine is no fault
@given(st.lists(st.integers(1, 16), min_size=1, max_size=8), st.integers(0, 64))
def test_whichever_runs_go_on_together_they_fit(gib: list[int], memory_gib: int) -> None:
    runs = needing(*gib)
    fitting = runs_that_fit(runs, memory_gib * GIB)
    largest = sorted(map(needed_bytes, runs), reverse=True)
    assert sum(largest[:fitting]) <= memory_gib * GIB
    assert fitting == len(runs) or sum(largest[: fitting + 1]) > memory_gib * GIB


def test_memory_for_not_even_one_run_is_an_error_before_anything_starts(tmp_path: Path) -> None:
    with (
        open_results(tmp_path) as results,
        pytest.raises(RigError, match=r"a run needs up to 1\.1 GB of memory, but 0\.5 GB are available"),
    ):
        execute(plan_of(2), FakeBackend(), results, jobs=2, memory_bytes=GIB // 2)
    assert list((tmp_path / "raw").iterdir()) == []


def test_no_more_runs_go_on_than_fit(tmp_path: Path) -> None:
    events: list[Event] = []
    with open_results(tmp_path) as results:
        execute(plan_of(3), FakeBackend(), results, jobs=3, events=events.append, memory_bytes=2 * GIB)
    limited, started = events[:2]
    assert (limited.kind, limited.level, limited.facts["jobs"]) == (Kind.JOBS_LIMITED, Level.WARNING, 1)
    assert (started.kind, started.facts["jobs"]) == (Kind.RUNS_STARTED, 1)
