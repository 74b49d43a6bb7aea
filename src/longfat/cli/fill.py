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
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.cli.console import say
from longfat.cli.paths import repository_root
from longfat.cli.rows import add_results, baseline_for, write_findings, write_page
from longfat.cli.run import execute_runs
from longfat.cli.study import find_study, job_count, kernel_settings, known_baselines
from longfat.data.study_folder import StudyFolder
from longfat.evidence.baselines import Baseline, Combination
from longfat.evidence.collect import build_valid, require_repeatable
from longfat.evidence.judged import evidence_of
from longfat.evidence.stored_dataset import Ground
from longfat.execute.results import open_results
from longfat.plan import Plan, build_plan
from longfat.plan.estimate import run_seconds
from longfat.plan.lockfile import write_lock
from longfat.system.errors import StudyError

BATCH_SECONDS = 600.0  # CPU time of a batch; the disk holds the raw records of one batch at a time


@dataclass(frozen=True)
class Wanted:
    """Choices of the command line: the number of repetitions, and how to execute them.

    Without ``repetitions`` it is the study's stated number, or the profile's if that is more. ``budget`` is wall time
    in seconds (None: unlimited): no batch begins after it.
    """

    repetitions: int | None = None
    budget: float | None = None
    profile: str = "quick"
    stack: str | None = None
    backend: str = DEFAULT_BACKEND
    jobs: int | None = None


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

    Raises StudyError for an unknown study, and RigError if the machine does not belong to the newest baseline.
    """
    begun = time.monotonic()
    folders = [find_study(name) for name in studies]
    require_repeatable(wanted.backend)
    complete = True
    for folder in folders:
        folder.check()
        backend = open_for(folder, wanted, console)
        jobs = job_count(wanted.jobs)
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

    The budget counts from ``begun``, a time of the monotonic clock. Raw records are removed until a run fails, because
    every run can be repeated.
    """
    ground = ground_of(folder, baseline, wanted)
    planned = {name: one.repetitions for name, one in ground.planned.scenarios.items() if only is None or name in only}
    stated = folder.header.stated_repetitions
    todo = list(batches(ground, {name: wanted.repetitions or max(stated, own) for name, own in planned.items()}))
    hours = sum(run_time(ground, name) * len(numbers) for batch in todo for name, numbers in batch.items()) / 3600
    say(
        console,
        f"{folder.name}, {ground.planned.stack}, {wanted.profile}: {len(todo)} batches, about {hours:.1f} h of CPU",
    )
    complete = True
    for batch in todo:
        if wanted.budget is not None and time.monotonic() - begun > wanted.budget:
            say(console, "the budget is used up; the rest is still missing")
            break
        plan = build_plan(folder.study, profile=wanted.profile, stack=wanted.stack, pins=backend.pins(), chosen=batch)
        complete &= _run_batch(folder, plan, backend, baseline, wanted.jobs, console)
        if complete:
            shutil.rmtree(repository_root() / "results" / "fill" / folder.name / "raw")
    return complete


def batches(ground: Ground, most: Mapping[str, int]) -> Iterator[dict[str, list[int]]]:
    """Yield the missing runs in batches: the first repetition of every scenario, then the second, and so on.

    A batch has the numbers of repetitions by scenario. ``most`` is the number of repetitions of each scenario.
    """
    known = {(row.scenario, row.repetition) for rows in ground.rows.values() for row in rows}
    batch: dict[str, list[int]] = {}
    seconds = 0.0
    for number in range(1, max(most.values(), default=0) + 1):
        for name in (name for name, last in most.items() if number <= last and (name, number) not in known):
            batch.setdefault(name, []).append(number)
            seconds += run_time(ground, name)
            if seconds >= BATCH_SECONDS:
                yield batch
                batch, seconds = {}, 0.0
    if batch:
        yield batch


def run_time(ground: Ground, name: str) -> float:
    """Return the seconds of CPU of one run of a scenario: the mean of the evidence, else by the plan's model."""
    rows = ground.rows.get(name, ())
    if not rows:
        return run_seconds(ground.planned.scenarios[name].spec)
    return max(sum(row.seconds for row in rows) / len(rows), 0.01)


def ground_of(folder: StudyFolder, baseline: Baseline, wanted: Wanted) -> Ground:
    """Return the evidence of a profile and stack. Raises StudyError if the study lacks them."""
    baselines = known_baselines()
    found = evidence_of(folder, baselines, baseline=baseline.name, stack=wanted.stack, profile=wanted.profile)
    if found is None or not found.grounds:
        raise StudyError(f"the study cannot be planned with profile {wanted.profile!r} and stack {wanted.stack!r}")
    return found.grounds[0]


def _run_batch(
    folder: StudyFolder, plan: Plan, backend: Backend, baseline: Baseline, jobs: int | None, console: Console
) -> bool:
    """Execute the runs of a plan and add them to the evidence; return whether every run succeeded."""
    with open_results(repository_root() / "results" / "fill" / folder.name) as results:
        write_lock(plan, results.lock)
        summary = execute_runs(plan.runs, backend, results, jobs, console)
        build_valid(results.path, folder)
        gained = add_results(results.path, folder, baseline.name, console)
    if not gained:
        say(console, "nothing was gained: these runs equal rows that were withdrawn")
    return gained > 0 and summary.failed == 0
