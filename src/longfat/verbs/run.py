# SPDX-License-Identifier: Apache-2.0
"""The verb ``run``: opens the backend, writes the lock and has the missing runs executed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from longfat.backends.registry import open_backend, require_backend
from longfat.catalog.stacks import FOREIGN_BACKENDS, REAL_TIME_BACKENDS
from longfat.errors import StudyError
from longfat.events import Event, EventSink, Kind, broadcast, log_to
from longfat.execute.progress import Display
from longfat.execute.results import Results, open_results
from longfat.execute.study import Summary, execute
from longfat.labs.folder import lab_folder
from longfat.plan.estimate import estimate
from longfat.plan.lockfile import write_lock
from longfat.verbs.study import Choices, find_study, job_count, repository_root, resolve, study_name


@dataclass(frozen=True)
class Machine:
    """What the command line says of the machine: none of it can change a run's identity but ``backend``."""

    backend: str = "virtual"
    jobs: int | None = None
    results: Path | None = None
    scheduler: str | None = None
    lab: str | None = None

    def settings(self) -> dict[str, Any]:
        """What the backend is opened with. Raises StudyError on a lab that the backend has no use for."""
        if self.backend == "hosts":
            return {"lab": self.lab and lab_folder(self.lab)}
        if self.lab is not None:
            raise StudyError(f"backend {self.backend!r} uses no lab", where="--lab", hint="--backend hosts does")
        return {}


def results_path(study: Path, given: Path | None, backend: str = "virtual") -> Path:
    """The results folder: as given, else ``results/STUDY`` under the repository root.

    Runs in real time or without the project's kernel are never mixed with others: theirs is
    ``results/STUDY-BACKEND``.
    """
    suffix = f"-{backend}" if backend in FOREIGN_BACKENDS | REAL_TIME_BACKENDS else ""
    return given or repository_root() / "results" / f"{study_name(study)}{suffix}"


@contextmanager
def listen(results: Results, console: Console) -> Iterator[EventSink]:
    """The event stream of a command: to the console and to the results folder."""
    with Display(console) as display:
        yield broadcast(log_to(results.events), display)


def run(name: str, choices: Choices, machine: Machine, console: Console) -> bool:
    """Execute what is missing of the study; whether no run failed."""
    folder = find_study(name)
    with (
        open_results(results_path(folder, machine.results, machine.backend)) as results,
        listen(results, console) as events,
    ):
        return run_study(folder, choices, machine, results, events).failed == 0


def run_study(folder: Path, choices: Choices, machine: Machine, results: Results, events: EventSink) -> Summary:
    """Resolve the plan for the backend, make it the results folder's lock, and execute it."""
    # A fault in the study is found before a kernel is built for it.
    require_backend(machine.backend)
    settings = machine.settings()
    resolve(folder, choices, {"backend": machine.backend})
    stage(events, f"preparing backend {machine.backend}")
    backend = open_backend(machine.backend, settings, say=partial(stage, events))
    plan = resolve(folder, choices, backend.pins())
    jobs = min(job_count(machine.jobs), backend.capabilities().at_once or sys.maxsize)
    write_lock(plan, results.lock)
    disk_bytes = estimate(plan, jobs).disk_bytes
    return execute(
        plan,
        backend,
        results,
        jobs=jobs,
        events=events,
        scheduler=machine.scheduler,
        disk_bytes=disk_bytes,
    )


def stage(events: EventSink, message: str) -> None:
    """Say what begins now."""
    events(Event(Kind.STAGE_STARTED, message))
