# SPDX-License-Identifier: Apache-2.0
"""The verb ``task``: what a task of a cluster executes of the lock in a results folder. It needs no study."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from longfat.backends.protocol import Feature
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, traits_of
from longfat.cli.console import listen, stage
from longfat.cli.study import job_count
from longfat.cluster.size import Size
from longfat.execute.deadline import Deadline
from longfat.execute.leases import Leases
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.shards import Shard
from longfat.execute.study import Summary, execute
from longfat.plan.estimate import estimate, seconds_on
from longfat.plan.lockfile import read_lock


@dataclass(frozen=True)
class Task:
    """What the command line says: the part, runs at a time, the end, and the names of the kernels that the runs pin.

    With ``again``, the runs of these ids are executed once more, into a folder of the name ``into`` in the results.
    """

    shard: Shard
    jobs: int | None = None
    until_s: float | None = None
    kernels: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    into: str = ""


def task(results: Path, wanted: Task, console: Console) -> Summary:
    """Execute a part of the runs in the lock of ``results`` that have no record."""
    begun = time.monotonic()
    plan = read_lock(results / "lock.json")
    name = plan.pins.get("backend", DEFAULT_BACKEND)
    if wanted.again:
        plan = dataclasses.replace(plan, runs=tuple(run for run in plan.runs if run.run_id in wanted.again))
    place = results / wanted.into if wanted.again else results
    traits = traits_of(name)
    with open_results(place, str(wanted.shard)) as folder, listen(folder, console) as events:
        settings = {"kernels": wanted.kernels} if Feature.KERNELS in traits.can and wanted.kernels else {}
        backend = open_backend(name, settings, say=partial(stage, events))
        cost = partial(seconds_on, name)
        jobs = 1 if traits.clock == "real" else job_count(wanted.jobs)
        own = dataclasses.replace(plan, runs=wanted.shard.part_of(plan.runs, cost))
        deadline = None
        if wanted.until_s is not None:
            deadline = Deadline(max(wanted.until_s - (time.monotonic() - begun), 0.0), cost)
        with Leases(folder.path, f"task {wanted.shard}") as leases:
            return execute(
                own.runs,
                backend,
                folder,
                jobs=jobs,
                events=events,
                disk_bytes=estimate(own, jobs).disk_bytes,
                memory_bytes=available_bytes() if traits.guests else None,
                leases=leases,
                deadline=deadline,
            )


def options(kernels: Sequence[str], size: Size, again: Sequence[str] = (), into: str = "") -> tuple[str, ...]:
    """The options of a task of this size that finds its part in its environment; the rest as ``Task`` has it."""
    words = ["--shard", "auto", "--jobs", str(size.cpus), "--until", f"{size.until_s:.0f}s"]
    words += ["--kernels", ",".join(kernels)] if kernels else []
    words += ["--again", ",".join(again), "--into", into] if again else []
    return tuple(words)
