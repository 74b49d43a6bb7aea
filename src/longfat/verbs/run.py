# SPDX-License-Identifier: Apache-2.0
"""The verb ``run``: opens the backend, writes the lock and has the missing runs executed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from longfat.backends import own_files
from longfat.backends.protocol import Backend, Feature
from longfat.backends.registry import DEFAULT_BACKEND, backends_that, open_backend, require_backend, traits_of
from longfat.cache import cache_folder
from longfat.catalog.stacks import kernel_of_stack
from longfat.errors import StudyError
from longfat.events import Event, EventSink, Kind, Level
from longfat.execute.deadline import Deadline
from longfat.execute.leases import Leases
from longfat.execute.memory import available_bytes
from longfat.execute.results import Results, open_results
from longfat.execute.shards import Shard
from longfat.execute.study import Summary, execute
from longfat.identity import KernelSource
from longfat.kernel_check import other_releases
from longfat.plan import Plan
from longfat.plan.estimate import estimate, seconds_on
from longfat.plan.lockfile import LOCK, require_same, share_lock, write_lock
from longfat.record.bucket import Bucket
from longfat.record.made_on import MadeOn, keep_made_on, this_machine
from longfat.record.outbox import Outbox
from longfat.relations.firsts import keep_first
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder
from longfat.testbed.provision.folder import lab_folder
from longfat.verbs.listening import listen, stage
from longfat.verbs.places import repository_root
from longfat.verbs.study import Choices, find_study, job_count, resolve
from longfat.verbs.version import commit


@dataclass(frozen=True)
class Machine:
    """What the command line says of the machine: none of it can change a run's identity but ``backend``.

    ``until_s`` is the wall time that it gives, of the command as a whole. ``on`` names a cluster that executes the runs
    in so many ``tasks``, each with ``jobs`` CPUs. ``store`` is the address that records go to instead of the folder.
    """

    backend: str = DEFAULT_BACKEND
    jobs: int | None = None
    results: Path | None = None
    scheduler: str | None = None
    lab: str | None = None
    shard: Shard | None = None
    until_s: float | None = None
    on: str | None = None
    tasks: int | None = None
    store: str | None = None

    def settings(self) -> dict[str, Any]:
        """What the backend is opened with. Raises StudyError on a lab that the backend has no use for."""
        if traits_of(self.backend).lab:
            return {"lab": self.lab and lab_folder(self.lab)}
        if self.lab is not None:
            users = ", ".join(backends_that(lambda traits: traits.lab))
            raise StudyError(f"backend {self.backend!r} uses no lab", where="--lab", hint=f"--backend {users} does")
        return {}


def results_path(study: StudyFolder, given: Path | None, backend: str = DEFAULT_BACKEND) -> Path:
    """The results folder: as given, else ``results/STUDY`` under the repository root.

    Runs in real time or without the project's kernel are never mixed with others: theirs is
    ``results/STUDY-BACKEND``.
    """
    suffix = "" if traits_of(backend).own_world else f"-{backend}"
    return given or repository_root() / "results" / f"{study.name}{suffix}"


def run(name: str | StudyFolder, choices: Choices, machine: Machine, console: Console) -> Summary:
    """Execute what is missing of the study, or of a shard of it."""
    begun = time.monotonic()
    folder = find_study(name)
    if machine.shard and machine.scheduler:
        raise StudyError(
            "a shard runs on the machine that it is started on", where="--shard", hint="leave out --scheduler"
        )
    if machine.on:
        from longfat.verbs.on import run_on  # which has the parts of this module

        return run_on(folder, choices, machine, results_path(folder, machine.results, machine.backend), console)
    sharer = str(machine.shard) if machine.shard else None
    with (
        open_results(results_path(folder, machine.results, machine.backend), sharer) as results,
        listen(results, console) as events,
    ):
        return run_study(folder, choices, machine, results, events, begun)


def run_study(
    folder: StudyFolder,
    choices: Choices,
    machine: Machine,
    results: Results,
    events: EventSink,
    begun: float | None = None,
) -> Summary:
    """Resolve the plan for the backend, make it the results folder's lock, and execute it, or a shard of it.

    A time limit counts from ``begun``, on the clock of ``time.monotonic``.
    """
    backend, plan = prepare(folder, choices, machine, events)
    traits = traits_of(machine.backend)
    jobs = 1 if traits.clock == "real" else job_count(machine.jobs)
    before_runs = not results.lock.exists()
    keep_first(results.path, folder.claims, before_runs)
    keep_made_on(results.path, MadeOn(commit(), this_machine()))
    cost = partial(seconds_on, machine.backend)
    if machine.store and machine.shard is None:
        raise StudyError("a store takes the records of shards", where="--store", hint="--shard 1/1 is all of them")
    store = Bucket(machine.store) if machine.store else None
    with ExitStack() as own:
        leases = None
        if machine.shard is None:
            write_lock(plan, results.lock)
        else:
            share_lock(plan, results.lock)
            if store is not None:
                require_same(
                    plan.to_json(), "this command's plan", store.share(LOCK, plan.to_json()), machine.store or ""
                )
            plan = dataclasses.replace(plan, runs=machine.shard.part_of(plan.runs, cost))
            leases = own.enter_context(Leases(results.path, f"shard {machine.shard}"))
        return execute(
            plan.runs,
            backend,
            results,
            jobs=jobs,
            events=events,
            scheduler=machine.scheduler,
            disk_bytes=estimate(plan, jobs).disk_bytes,
            memory_bytes=available_bytes() if traits.guests and machine.scheduler is None else None,
            leases=leases,
            outbox=own.enter_context(Outbox(results.path, store)) if store else None,
            deadline=_deadline(machine, begun, cost),
        )


def prepare(folder: StudyFolder, choices: Choices, machine: Machine, events: EventSink) -> tuple[Backend, Plan]:
    """Open the backend, with the kernels that the study needs, and make the plan for it."""
    # A fault in the study is found before a kernel is built for it.
    require_backend(machine.backend)
    settings = machine.settings()
    kernels = named_kernels(resolve(folder, choices, {"backend": machine.backend}))
    if Feature.KERNELS in traits_of(machine.backend).can:
        settings["kernels"] = kernels
        if added := folder.study.own_kernels(choices.stack):
            settings["own"] = added
    own_files.keep(files_of(folder), cache_folder())
    stage(events, f"preparing backend {machine.backend}")
    backend = open_backend(machine.backend, settings, say=partial(stage, events))
    offered = backend.capabilities()
    plan = with_sources(resolve(folder, choices, backend.pins(), offered.kernels), offered.sources)
    for text in other_releases(plan.kernels.values()):
        events(Event(Kind.KERNEL_DOUBTED, text, Level.WARNING))
    return backend, plan


def _deadline(machine: Machine, begun: float | None, cost: Callable[[RunSpec], float]) -> Deadline | None:
    if machine.until_s is None:
        return None
    passed = 0.0 if begun is None else time.monotonic() - begun
    return Deadline(max(machine.until_s - passed, 0.0), cost)


def files_of(folder: StudyFolder) -> dict[str, Path]:
    """The files of a study that its runs need, by their digests."""
    points = (point for experiment in folder.study.experiments for point in experiment.points)
    files = (file for point in points for entry in point.experiment.sent for file in entry.own_files)
    return {file.digest: file.path for file in files}


def with_sources(plan: Plan, sources: Mapping[str, KernelSource]) -> Plan:
    """The plan with what the kernels of its runs were built of."""
    used = {run.spec.pins.get("kernel") for run in plan.runs}
    return dataclasses.replace(plan, kernels={digest: sources[digest] for digest in sources if digest in used})


def named_kernels(plan: Plan) -> tuple[str, ...]:
    """List the kernels of the runs of a plan that was made without digests; the stack's kernel first."""
    own = kernel_of_stack(plan.stack)
    names = {run.spec.pins.get("kernel", own) for run in plan.runs}
    return tuple(sorted(names or {own}, key=lambda name: (name != own, name)))
