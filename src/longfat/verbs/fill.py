# SPDX-License-Identifier: Apache-2.0
"""The verb ``evidence fill``: execute the runs that the evidence lacks, batch by batch.

The number of repetitions is stated before the first run and does not depend on any result.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, traits_of
from longfat.errors import StudyError
from longfat.evidence.collect import require_repeatable
from longfat.evidence.costs import Costs, Targets, time_of
from longfat.evidence.epochs import FOLDER, Combination, Epoch, read_epochs
from longfat.evidence.ground import Ground
from longfat.evidence.judged import evidence_of
from longfat.evidence.valid import build_valid
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan import build_plan
from longfat.plan.lockfile import write_lock
from longfat.studies import StudyFolder
from longfat.verbs.evidence import add_results, epoch_for, write_findings, write_page
from longfat.verbs.listening import listen
from longfat.verbs.places import repository_root
from longfat.verbs.say import say
from longfat.verbs.study import find_study, job_count, kernel_settings

BATCH_SECONDS = 240.0
"""CPU time of one batch: an interrupt loses no more than that."""


@dataclass(frozen=True)
class Wanted:
    """Choices of the command line: repetitions of each scenario, and the way to execute them.

    ``budget`` is wall time in seconds (None: unlimited); no batch begins after it.
    """

    repetitions: int = 8
    budget: float | None = None
    profile: str = "quick"
    stack: str | None = None
    backend: str = DEFAULT_BACKEND
    jobs: int | None = None


@dataclass(frozen=True)
class Batch:
    """Numbers of repetitions by scenario, and the seconds of CPU of those that are missing."""

    targets: Targets
    seconds: float


def seconds_of(budget: str | None) -> float | None:
    """Return the seconds of a budget such as ``45min`` or ``2h``, None for None. Raises StudyError."""
    if budget is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h)", budget, re.ASCII)
    if match is None:
        raise StudyError(f"{budget!r} is not a length of time; allowed: such as 90s, 45min or 2h", where="--budget")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2]]


def fill(studies: Sequence[str], wanted: Wanted, console: Console, *, new_epoch: bool = False) -> bool:
    """Execute the runs that the evidence of each study lacks; return whether every run succeeded.

    Raises StudyError for an unknown study, and RigError where the machine does not belong to the newest baseline.
    """
    begun = time.monotonic()
    folders = [find_study(name) for name in studies]
    require_repeatable(wanted.backend)
    jobs = job_count(wanted.jobs)
    complete = True
    for folder in folders:
        folder.check()
        backend = open_for(folder, wanted, console)
        epoch = epoch_for(Combination.of(backend.pins()), jobs, console, new_epoch=new_epoch)
        new_epoch = False
        complete &= fill_study(folder, wanted, backend, epoch, console, begun=begun)
        write_page(folder)
    write_findings(console)
    return complete


def open_for(folder: StudyFolder, wanted: Wanted, console: Console) -> Backend:
    """Open the backend with the kernel of the stack."""
    settings = kernel_settings(wanted.backend, wanted.stack or folder.header.stack)
    return open_backend(wanted.backend, settings, say=console.print)


def fill_study(
    folder: StudyFolder,
    wanted: Wanted,
    backend: Backend,
    epoch: Epoch,
    console: Console,
    *,
    begun: float,
    only: Collection[str] | None = None,
) -> bool:
    """Execute the missing runs of a study, or of the scenarios ``only``; return whether every run succeeded.

    The budget counts from ``begun``, a time of the monotonic clock.
    """
    todo = list(batches(ground_of(folder, epoch, wanted), wanted.repetitions, only))
    lacking = sum(batch.seconds for batch in todo)
    stack = wanted.stack or folder.study.header.stack
    say(console, f"{folder.name}, {stack}, {wanted.profile}: {len(todo)} batches, about {time_of(lacking)}")
    complete = True
    for batch in todo:
        if wanted.budget is not None and time.monotonic() - begun > wanted.budget:
            break
        complete &= run_batch(folder, wanted, batch.targets, backend, epoch, console)
    return complete


def batches(ground: Ground, repetitions: int, only: Collection[str] | None = None) -> Iterator[Batch]:
    """List the missing runs in batches: the first repetition of every scenario, then the second, and so on.

    A scenario has ``repetitions``, or as many as its profile plans where these are more.
    """
    costs = Costs(ground)
    most = {
        name: max(repetitions, one.repetitions)
        for name, one in ground.planned.scenarios.items()
        if only is None or name in only
    }
    for number in range(1, max(most.values(), default=0) + 1):
        targets: dict[str, int] = {}
        seconds = 0.0
        for name, n in most.items():
            if number > n or number not in costs.missing(name, number):
                continue
            targets[name] = number
            seconds += costs.of_run(name)
            if seconds >= BATCH_SECONDS:
                yield Batch(targets, seconds)
                targets, seconds = {}, 0.0
        if targets:
            yield Batch(targets, seconds)


def ground_of(folder: StudyFolder, epoch: Epoch, wanted: Wanted) -> Ground:
    """Return the evidence of the wanted profile and stack. Raises StudyError if the study cannot be planned so."""
    epochs = read_epochs(repository_root() / FOLDER)
    found = evidence_of(folder, epochs, epoch=epoch.name, stack=wanted.stack, profile=wanted.profile)
    if found is None or not found.grounds:
        raise StudyError(f"the study cannot be planned with profile {wanted.profile!r} and stack {wanted.stack!r}")
    return found.grounds[0]


def run_batch(
    folder: StudyFolder, wanted: Wanted, targets: Targets, backend: Backend, epoch: Epoch, console: Console
) -> bool:
    """Execute the missing runs of ``targets`` and add them to the evidence; return whether every run succeeded.

    Raw runs are removed then: every run can be repeated.
    """
    costs = Costs(ground_of(folder, epoch, wanted))
    plan = build_plan(
        folder.study,
        profile=wanted.profile,
        stack=wanted.stack,
        pins=backend.pins(),
        chosen={name: costs.missing(name, n) for name, n in targets.items()},
    )
    with open_results(repository_root() / "results" / "fill" / folder.name) as results:
        write_lock(plan, results.lock)
        memory = available_bytes() if traits_of(backend.name).guests else None
        with listen(results, console) as events:
            summary = execute(
                plan.runs, backend, results, jobs=job_count(wanted.jobs), events=events, memory_bytes=memory
            )
        build_valid(results.path, folder)
        gained = add_results(results.path, folder, epoch.name, console)
        if summary.failed == 0:
            shutil.rmtree(results.raw)
    return gained > 0 and summary.failed == 0
