# SPDX-License-Identifier: Apache-2.0
"""The machine's memory limits the number of guests that run at a time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from conftest import plan_of
from fake_backend import FakeBackend

from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan.model import PlannedRun
from longfat.system.errors import RigError
from longfat.system.events import Event, Kind, Level

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
