# SPDX-License-Identifier: Apache-2.0
"""``evidence fill``: the runs that the evidence lacks, batch by batch.

The number of repetitions is stated before the first run and does not depend on any result.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, traits_of
from longfat.cli.console import listen, say
from longfat.cli.paths import repository_root
from longfat.cli.rows import add_results, baseline_for, write_findings, write_page
from longfat.cli.study import find_study, job_count, kernel_settings
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import FOLDER, Baseline, Combination, read_baselines
from longfat.evidence.collect import require_repeatable
from longfat.evidence.judged import evidence_of
from longfat.evidence.required_values import build_valid
from longfat.evidence.stored_dataset import Ground
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.plan import build_plan
from longfat.plan.estimate import run_seconds
from longfat.plan.lockfile import write_lock
from longfat.system.errors import StudyError

BATCH_SECONDS = 240.0  # CPU time of one batch: an interrupt loses no more
TYPICAL = 2.0  # seconds of a run divided by the plan's model, used until the evidence has a run of the scenario

Targets = Mapping[str, int]
"""The number of repetitions to have of each scenario."""


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
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h)", budget)
    if match is None:
        raise StudyError(f"{budget!r} is not a length of time; write 90s, 45min or 2h", where="--budget")
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2]]


def fill_studies(studies: Sequence[str], wanted: Wanted, console: Console, *, new_baseline: bool = False) -> bool:
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
        baseline = baseline_for(Combination.of(backend.pins()), jobs, console, new_baseline=new_baseline)
        new_baseline = False
        complete &= fill_study(folder, wanted, backend, baseline, console, begun=begun)
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
    baseline: Baseline,
    console: Console,
    *,
    begun: float,
    only: Collection[str] | None = None,
) -> bool:
    """Execute the missing runs of a study, or of the scenarios ``only``; return whether every run succeeded.

    The budget counts from ``begun``, a time of the monotonic clock.
    """
    todo = list(batches(ground_of(folder, baseline, wanted), wanted.repetitions, only))
    seconds = sum(batch.seconds for batch in todo)
    stack = wanted.stack or folder.study.header.stack
    say(console, f"{folder.name}, {stack}, {wanted.profile}: {len(todo)} batches, about {seconds / 3600:.1f} h of CPU")
    complete = True
    for batch in todo:
        if wanted.budget is not None and time.monotonic() - begun > wanted.budget:
            break
        complete &= run_batch(folder, wanted, batch.targets, backend, baseline, console)
    return complete


def batches(ground: Ground, repetitions: int, only: Collection[str] | None = None) -> Iterator[Batch]:
    """List the missing runs in batches: the first repetition of every scenario, then the second, and so on.

    A scenario has ``repetitions``, or as many as its profile plans where these are more.
    """
    most = {
        name: max(repetitions, one.repetitions)
        for name, one in ground.planned.scenarios.items()
        if only is None or name in only
    }
    for number in range(1, max(most.values(), default=0) + 1):
        targets: dict[str, int] = {}
        seconds = 0.0
        for name, n in most.items():
            if number > n or number not in missing(ground, name, number):
                continue
            targets[name] = number
            seconds += run_time(ground, name)
            if seconds >= BATCH_SECONDS:
                yield Batch(targets, seconds)
                targets, seconds = {}, 0.0
        if targets:
            yield Batch(targets, seconds)


def missing(ground: Ground, name: str, n: int) -> list[int]:
    """Return the repetitions of a scenario up to the n-th that the evidence lacks."""
    known = {row.repetition for row in ground.rows.get(name, ())}
    return [number for number in range(1, n + 1) if number not in known]


def run_time(ground: Ground, name: str) -> float:
    """Return the seconds of CPU of one run of a scenario: the mean of the evidence, else by the plan's model."""
    rows = ground.rows.get(name, ())
    if not rows:
        return TYPICAL * run_seconds(ground.planned.scenarios[name].spec)
    return max(sum(row.seconds for row in rows) / len(rows), 0.01)


def ground_of(folder: StudyFolder, baseline: Baseline, wanted: Wanted) -> Ground:
    """Return the evidence of the wanted profile and stack. Raises StudyError if the study cannot be planned so."""
    baselines = read_baselines(repository_root() / FOLDER)
    found = evidence_of(folder, baselines, baseline=baseline.name, stack=wanted.stack, profile=wanted.profile)
    if found is None or not found.grounds:
        raise StudyError(f"the study cannot be planned with profile {wanted.profile!r} and stack {wanted.stack!r}")
    return found.grounds[0]


def run_batch(
    folder: StudyFolder, wanted: Wanted, targets: Targets, backend: Backend, baseline: Baseline, console: Console
) -> bool:
    """Execute the missing runs of ``targets`` and add them to the evidence; return whether every run succeeded.

    Raw runs are removed then: every run can be repeated.
    """
    ground = ground_of(folder, baseline, wanted)
    plan = build_plan(
        folder.study,
        profile=wanted.profile,
        stack=wanted.stack,
        pins=backend.pins(),
        chosen={name: missing(ground, name, n) for name, n in targets.items()},
    )
    with open_results(repository_root() / "results" / "fill" / folder.name) as results:
        write_lock(plan, results.lock)
        memory = available_bytes() if traits_of(backend.name).guests else None
        with listen(results, console) as events:
            summary = execute(
                plan.runs, backend, results, jobs=job_count(wanted.jobs), events=events, memory_bytes=memory
            )
        build_valid(results.path, folder)
        gained = add_results(results.path, folder, baseline.name, console)
        if summary.failed == 0:
            shutil.rmtree(results.raw)
    return gained > 0 and summary.failed == 0
