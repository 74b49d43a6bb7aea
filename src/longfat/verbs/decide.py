# SPDX-License-Identifier: Apache-2.0
"""The verb ``decide``: runs what decides open claims, as long as the budget lasts, and adds it to the evidence."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, traits_of
from longfat.dataset.build import build_dataset
from longfat.errors import StudyError
from longfat.evidence.collect import combination_of, require_repeatable
from longfat.evidence.epochs import FOLDER, Combination, Epoch, read_epochs
from longfat.evidence.ground import Ground
from longfat.evidence.judged import evidence_of
from longfat.evidence.next_step import Chooser, Step
from longfat.execute.deadline import length_of
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.manifest.names import unknown
from longfat.plan import build_plan
from longfat.plan.lockfile import read_lock, write_lock
from longfat.relations.claims import Claim
from longfat.studies import StudyFolder
from longfat.verbs.evidence import add_results, epoch_for, write_findings, write_page
from longfat.verbs.listening import listen
from longfat.verbs.on import execute_on, site_of
from longfat.verbs.places import repository_root
from longfat.verbs.run import Machine, results_path
from longfat.verbs.say import print_json, say
from longfat.verbs.study import find_study, job_count
from longfat.verbs.verdicts import print_evidence

HOUR = 3600.0
FORMAT = 1


@dataclass(frozen=True)
class Wanted:
    """What the command line says: seconds of wall time (None: no end), claims (none: all), and how to run.

    ``results`` is where runs of the profile are (None: the study's own folder). Where ``on`` names a cluster, it
    executes the runs of each step, in so many ``tasks``.
    """

    budget: float | None = None
    claims: tuple[str, ...] = ()
    profile: str = "quick"
    stack: str | None = None
    backend: str = DEFAULT_BACKEND
    jobs: int | None = None
    results: Path | None = None
    on: str | None = None
    tasks: int | None = None


def seconds_of(budget: str | None) -> float | None:
    """Seconds of a budget such as ``45min`` or ``2h``; None where none is given. Raises StudyError."""
    if budget is None:
        return None
    seconds = length_of(budget)
    if seconds is None:
        raise StudyError(f"{budget!r} is no length of time; allowed: such as 90s, 45min or 2h", where="--budget")
    return seconds


def decide(
    name: str | StudyFolder,
    wanted: Wanted,
    console: Console,
    first_batch: Callable[[], object] = lambda: None,
    *,
    as_json: bool = False,
) -> bool:
    """Run what open claims need until they are settled, nothing is worth its time, or the budget is spent.

    ``first_batch`` makes runs into the results folder before; it is done as a whole, and its time is of the budget.
    Whether no run failed on the way.
    """
    begun = time.monotonic()
    folder = find_study(name)
    folder.check()
    claims = folder.claims
    check_names(wanted.claims, claims)
    jobs = job_count(wanted.jobs)
    require_repeatable(wanted.backend)
    backend = open_backend(wanted.backend, {}, say=console.print)
    epoch = epoch_for(Combination.of(backend.pins()), jobs, console)
    first_batch()
    _take_results(folder, wanted.results, epoch, console)
    while True:
        chooser = Chooser(ground_of(folder, epoch, wanted), claims, wanted.claims)
        left = None if wanted.budget is None else wanted.budget - (time.monotonic() - begun)
        step = chooser.step() if left is None else chooser.step(max(left, 0) * jobs)
        done = step is None
        if step is not None:
            _say_step(step, chooser, jobs, console)
            if run_step(folder, wanted, step, backend, epoch, jobs, console):
                continue
        _conclude(folder, epoch, chooser, jobs, console)
        if as_json:
            print_json(data_of(folder, chooser, complete=done))
        return done


def data_of(folder: StudyFolder, chooser: Chooser, *, complete: bool) -> dict[str, Any]:
    """Where the claims stand, as plain data; ``complete`` says that no run failed on the way."""
    facts = {"format": FORMAT, "study": folder.name, "profile": chooser.ground.profile, "complete": complete}
    return facts | dataclasses.asdict(chooser.standing)


def ground_of(folder: StudyFolder, epoch: Epoch, wanted: Wanted) -> Ground:
    """The evidence that there is of what is wanted. Raises StudyError where the study cannot be planned so."""
    epochs = read_epochs(repository_root() / FOLDER)
    found = evidence_of(folder, epochs, epoch=epoch.name, stack=wanted.stack, profile=wanted.profile)
    if found is None or not found.grounds:
        raise StudyError(f"the study cannot be planned with profile {wanted.profile!r} and stack {wanted.stack!r}")
    return found.grounds[0]


def run_step(
    folder: StudyFolder, wanted: Wanted, step: Step, backend: Backend, epoch: Epoch, jobs: int, console: Console
) -> bool:
    """Run a step and add it to the evidence; whether that has gained from it.

    Its raw runs are removed then: anybody can have them again.
    """
    plan = build_plan(
        folder.study,
        profile=wanted.profile,
        stack=wanted.stack,
        pins=backend.pins(),
        chosen=_repetitions(folder, epoch, wanted, step.targets),
    )
    place = repository_root() / "results" / "decide" / folder.name
    failed = 0
    if wanted.on is not None:
        site = site_of(Machine(wanted.backend, wanted.jobs, on=wanted.on, tasks=wanted.tasks))
        failed = execute_on(site, lambda events: plan, place, console).failed
    with open_results(place) as results:
        write_lock(plan, results.lock)
        if wanted.on is None:
            memory = available_bytes() if traits_of(backend.name).guests else None
            with listen(results, console) as events:
                failed = execute(plan.runs, backend, results, jobs=jobs, events=events, memory_bytes=memory).failed
        build_dataset(results.path)
        gained = add_results(results.path, folder, epoch.name, console)
        if failed == 0:
            shutil.rmtree(results.raw)
    return gained > 0 and failed == 0


def _repetitions(folder: StudyFolder, epoch: Epoch, wanted: Wanted, targets: Mapping[str, int]) -> dict[str, list[int]]:
    """The repetitions of each scenario that the evidence lacks of its target."""
    rows = ground_of(folder, epoch, wanted).rows
    known = {name: {row.repetition for row in rows.get(name, ())} for name in targets}
    return {name: [k for k in range(1, n + 1) if k not in known[name]] for name, n in targets.items()}


def _take_results(folder: StudyFolder, given: Path | None, epoch: Epoch, console: Console) -> None:
    """Add what the results folder has, where it was made with what belongs to the epoch."""
    place = results_path(folder, given)
    if not (place / "lock.json").exists():
        return
    if combination_of(read_lock(place / "lock.json")).key not in epoch.members:
        say(console, f"{place} is of another epoch and left out")
        return
    with open_results(place):
        build_dataset(place)
        add_results(place, folder, epoch.name, console)


def check_names(given: Sequence[str], claims: Sequence[Claim]) -> None:
    known = [claim.id for claim in claims]
    for name in given:
        if name not in known:
            message, hint = unknown("claim", name, known)
            raise StudyError(message, where="--claims", hint=hint)


def _say_step(step: Step, chooser: Chooser, jobs: int, console: Console) -> None:
    standing = chooser.standing
    minutes = step.seconds / jobs / 60
    head = (
        f"{len(standing.settled)} claims settled, {len(standing.open)} open, {len(standing.unsettled)} to be confirmed"
    )
    say(console, f"{head}; next, about {minutes:.1f} min for {', '.join(step.claims)}")


def _conclude(folder: StudyFolder, epoch: Epoch, chooser: Chooser, jobs: int, console: Console) -> None:
    """Say where the claims stand by all evidence, what those that are open lack, and what another hour would do."""
    standing, planned = chooser.standing, chooser.ground.planned
    every = partial(evidence_of, folder, read_epochs(repository_root() / FOLDER), epoch=epoch.name, stack=planned.stack)
    found = every() or every(profile=planned.profile)
    assert found is not None
    write_page(folder)
    write_findings(console)
    print_evidence(found, console, claims=False)
    counts = f"{len(standing.open)} open, {len(standing.unsettled)} decided once and not confirmed"
    say(console, f"profile {planned.profile}: {len(standing.settled)} claims settled, {counts}")
    for item in found.judged:
        if (name := item.verdict.claim) in standing.open:
            hopeless = standing.hopeless.get(name, "")
            more = "" if hopeless in item.reason else f"; {hopeless}"
            say(console, f"  open: {name}: {item.reason.removeprefix('open: ')}{more}")
    if standing.open:
        soon = chooser.within(HOUR * jobs)
        say(console, f"another hour would decide: {', '.join(soon) or 'none'}")
