# SPDX-License-Identifier: Apache-2.0
"""The verb ``evidence fill``: execute the runs of a profile that the evidence lacks, batch by batch.

The number of repetitions is stated before the first run and does not depend on any result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from longfat.backends.registry import open_backend
from longfat.evidence.collect import require_repeatable
from longfat.evidence.costs import Costs, Targets, time_of
from longfat.evidence.epochs import Combination
from longfat.evidence.ground import Ground
from longfat.verbs.decide import Wanted, ground_of, run_step
from longfat.verbs.evidence import epoch_for, write_findings, write_page
from longfat.verbs.say import say
from longfat.verbs.study import find_study, job_count

BATCH_SECONDS = 240.0
"""CPU time of one batch: an interrupt loses no more than that."""


@dataclass(frozen=True)
class Batch:
    """Repetitions to have of scenarios, and the seconds of CPU of those that are missing."""

    targets: Targets
    seconds: float


def batches(ground: Ground, repetitions: int) -> Iterator[Batch]:
    """List the missing runs in batches: the first repetition of every scenario, then the second, and so on.

    A scenario has ``repetitions``, or as many as its profile plans where these are more.
    """
    costs = Costs(ground)
    most = {name: max(repetitions, one.repetitions) for name, one in ground.planned.scenarios.items()}
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


def fill(studies: Sequence[str], repetitions: int, wanted: Wanted, console: Console, *, new_epoch: bool) -> bool:
    """Execute what the evidence of each study lacks, within the budget; return whether every run succeeded.

    Raises StudyError for an unknown study, and RigError where the machine does not belong to the newest baseline.
    """
    begun = time.monotonic()
    folders = [find_study(name) for name in studies]
    require_repeatable(wanted.backend)
    jobs = job_count(wanted.jobs)
    complete = True
    for folder in folders:
        folder.check()
        stack = wanted.stack or folder.study.header.stack
        backend = open_backend(wanted.backend, {}, say=console.print)
        epoch = epoch_for(Combination.of(backend.pins()), jobs, console, new_epoch=new_epoch)
        new_epoch = False
        todo = list(batches(ground_of(folder, epoch, wanted), repetitions))
        lacking = sum(batch.seconds for batch in todo)
        say(console, f"{folder.name}, {stack}, {wanted.profile}: {len(todo)} batches, about {time_of(lacking)}")
        for batch in todo:
            if wanted.budget is not None and time.monotonic() - begun > wanted.budget:
                break
            complete &= run_step(folder, wanted, batch.targets, backend, epoch, jobs, console)
            write_page(folder)
    write_findings()
    return complete
