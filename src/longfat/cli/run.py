# SPDX-License-Identifier: Apache-2.0
"""``run``: open the backend, write the lock of a study, and execute the runs that have no valid record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from longfat.backends import own_files
from longfat.backends.protocol import Backend, Feature
from longfat.backends.registry import DEFAULT_BACKEND, open_backend, require_backend, traits_of
from longfat.backends.testbed.folder import lab_folder
from longfat.backends.testbed.provision.labs import use_lab
from longfat.cli.console import Output, listen, stage
from longfat.cli.options import BackendName, Jobs, On, Only, Profile, Results, Seed, Stack, Study, Watch
from longfat.cli.outcome import expect
from longfat.cli.paths import repository_root
from longfat.cli.study import Choices, chosen, job_count, resolve, whole_instead
from longfat.cli.version import commit
from longfat.data.study_folder import StudyFolder
from longfat.execute.cluster.places import Place, Ssh, read_place
from longfat.execute.memory import available_bytes, needed_bytes
from longfat.execute.pool import Pool
from longfat.execute.record.made_on import MadeOn, keep_made_on, this_machine
from longfat.execute.results import Results as ResultsFolder
from longfat.execute.results import open_results
from longfat.execute.study import Summary, execute
from longfat.plan import Plan, PlannedRun
from longfat.plan.estimate import estimate, seconds_on
from longfat.plan.lockfile import write_lock
from longfat.relations.firsts import keep_first
from longfat.study.catalog.stacks import kernel_of_stack
from longfat.system.cache import cache_folder
from longfat.system.errors import RigError, StudyError, all_of
from longfat.system.events import Event, EventSink, Kind, Level
from longfat.system.identity import KernelSource

CLUSTER = "cluster"  # folder in the results for the logs of remote workers


@dataclass(frozen=True)
class Machine:
    """Choices about the machines that execute the runs; only ``backend`` can change a run's identity.

    ``jobs`` is the number of runs at a time, ``lab`` the lab of a backend of real hosts, and ``on`` the place of other
    machines that execute the runs instead of this one.
    """

    backend: str = DEFAULT_BACKEND
    jobs: int | None = None
    lab: str | None = None
    on: Place | None = None

    @property
    def lab_folder(self) -> Path | None:
        """The folder of the lab that executes the runs, if any."""
        return lab_folder(self.lab) if self.lab else self.on.lab if isinstance(self.on, Ssh) else None


def run(
    out: Output,
    study: Study,
    only: Only = "",
    profile: Profile = "quick",
    stack: Stack = None,
    seed: Seed = None,
    backend: BackendName = DEFAULT_BACKEND,
    jobs: Jobs = None,
    results: Results = None,
    on: On = None,
    watch: Watch = False,
) -> bool:
    """Write the lock of a study and execute the runs that have no valid record."""
    (folder, choices), machine = all_of(
        lambda: chosen(study, profile, only, stack, seed), lambda: machine_of(backend, jobs, on)
    )
    summary = execute_study(folder, choices, machine, results_path(folder, results, backend), out, watched=watch)
    out.result(**vars(summary))
    return expect(summary.failed == 0, "some runs failed; `./just show RUN` prints the reasons")


def machine_of(backend: str, jobs: int | None, on: str | None) -> Machine:
    """Return the machines that the command line describes. Raises StudyError for an unknown place."""
    if traits_of(backend).lab:
        return Machine(backend, jobs, lab=on)
    return Machine(backend, jobs, on=None if on is None else read_place(on))


def execute_study(
    folder: StudyFolder, choices: Choices, machine: Machine, place: Path, out: Output, *, watched: bool = False
) -> Summary:
    """Execute the missing runs of a study, with a live page if it is ``watched``."""
    lab = use_lab(machine.lab_folder) if machine.lab_folder else nullcontext()
    with ExitStack() as stack:
        stack.enter_context(lab)
        results = stack.enter_context(open_results(place))
        if watched:
            from longfat.cli.watch import watch as serve  # only few starts need it

            stack.enter_context(serve(folder, results, out))
        events = stack.enter_context(listen(results, out))
        return run_study(folder, choices, machine, results, events)


def execute_runs(
    runs: Sequence[PlannedRun], backend: Backend, results: ResultsFolder, jobs: int | None, console: Console
) -> Summary:
    """Execute runs of an internal lock, as many at a time as fit into memory."""
    memory = available_bytes() if traits_of(backend.name).guests else None
    with listen(results, console) as events:
        return execute(runs, backend, results, jobs=job_count(jobs), events=events, memory_bytes=memory)


def results_path(study: StudyFolder, given: Path | None, backend: str = DEFAULT_BACKEND) -> Path:
    """Return the results folder: as given, else ``results/STUDY`` under the repository root.

    Runs in real time or without the project's kernel have a separate folder, ``results/STUDY-BACKEND``.
    """
    suffix = "" if traits_of(backend).own_world else f"-{backend}"
    return given or repository_root() / "results" / f"{study.name}{suffix}"


def run_study(
    folder: StudyFolder, choices: Choices, machine: Machine, results: ResultsFolder, events: EventSink
) -> Summary:
    """Resolve the plan for the backend, write it as the results folder's lock, and execute it."""
    backend, plan, settings = prepare(folder, choices, machine, events)
    traits = traits_of(machine.backend)
    jobs = 1 if traits.clock == "real" else job_count(machine.jobs)
    elsewhere = _elsewhere(machine.on, machine, plan, results, settings, events) if machine.on else None
    unused = not results.lock.exists() and not any(results.raw.iterdir())
    keep_first(results.path, folder.claims, before_runs=unused)
    keep_made_on(results.path, MadeOn(commit(), this_machine()))
    write_lock(plan, results.lock)
    cost = estimate(plan, jobs)
    return execute(
        plan.runs,
        backend,
        results,
        jobs=jobs,
        events=events,
        disk_bytes=cost.disk_bytes,
        seconds=cost.wall_seconds if elsewhere is None else 0.0,
        memory_bytes=available_bytes() if traits.guests and elsewhere is None else None,
        elsewhere=elsewhere,
    )


def _elsewhere(
    place: Place, machine: Machine, plan: Plan, results: ResultsFolder, settings: Mapping[str, Any], events: EventSink
) -> AbstractContextManager[Pool]:
    """Return the pool of workers at a place, which start when it is entered.

    Raises StudyError if the backend cannot be used there, RigError if Dask is not installed.
    """
    if traits_of(machine.backend).clock == "real":
        raise StudyError(f"backend {machine.backend!r} runs on this machine or its lab only", where="--on")
    try:
        from longfat.execute.cluster.session import (
            Need,
            open_remote,  # an optional dependency, and slow to import
        )
    except ImportError as error:
        raise RigError(
            f"--on needs packages that are not installed: {error.name}",
            hint=".venv/bin/pip install --requirement requirements-cluster.lock, here and on every machine of --on",
        ) from error
    cost = partial(seconds_on, machine.backend)
    specs = {run.run_id: run.spec for run in plan.runs}.values()
    seconds = [cost(spec) for spec in specs]
    folder = results.path.resolve() / CLUSTER
    memory = max(map(needed_bytes, specs), default=0)
    need = Need(folder, len(specs), machine.jobs, memory, sum(seconds), max(seconds, default=0.0))
    return open_remote(place, need, results.raw.resolve(), machine.backend, settings, events)


def prepare(
    folder: StudyFolder, choices: Choices, machine: Machine, events: EventSink
) -> tuple[Backend, Plan, dict[str, Any]]:
    """Open the backend with the kernels that the study needs; return it, the plan for it, and its settings."""
    # Find faults in the study before building a kernel for it.
    require_backend(machine.backend)
    traits = traits_of(machine.backend)
    settings: dict[str, Any] = {"lab": machine.lab and lab_folder(machine.lab)} if traits.lab else {}
    kernels = named_kernels(resolve(folder, choices, {"backend": machine.backend}))
    if Feature.KERNELS in traits.can:
        settings["kernels"] = kernels
        if added := folder.own_kernels(choices.stack):
            settings["own"] = added
    own_files.keep(files_of(folder), cache_folder())
    if remark := whole_instead(folder, choices.profile):
        stage(events, remark)
    stage(events, f"preparing backend {machine.backend}")
    backend = open_backend(machine.backend, settings, say=partial(stage, events))
    offered = backend.capabilities()
    plan = with_sources(resolve(folder, choices, backend.pins(), offered.kernels), offered.sources)
    for source in plan.kernels.values():
        if not source.pinned:
            text = (
                f"the kernel's source ({source.version}) is not a known one: `./just kernel-check` compares behaviour"
            )
            events(Event(Kind.KERNEL_DOUBTED, text, Level.WARNING))
    return backend, plan, settings


def files_of(folder: StudyFolder) -> dict[str, Path]:
    """Return the files of a study that its runs need, by their digests."""
    points = (point for experiment in folder.study.experiments for point in experiment.points)
    files = (file for point in points for entry in point.experiment.sent for file in entry.own_files)
    return {file.digest: file.path for file in files}


def with_sources(plan: Plan, sources: Mapping[str, KernelSource]) -> Plan:
    """Return the plan with the sources of its runs' kernels."""
    used = {run.spec.pins.get("kernel") for run in plan.runs}
    return dataclasses.replace(plan, kernels={digest: sources[digest] for digest in sources if digest in used})


def named_kernels(plan: Plan) -> tuple[str, ...]:
    """List the kernels of the runs of a plan that was made without digests; the stack's kernel first."""
    own = kernel_of_stack(plan.stack)
    names = {run.spec.pins.get("kernel", own) for run in plan.runs}
    return tuple(sorted(names or {own}, key=lambda name: (name != own, name)))
