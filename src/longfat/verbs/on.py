# SPDX-License-Identifier: Apache-2.0
"""``--on``: the runs of a plan on a cluster instead of this machine."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from longfat.backends.protocol import Feature
from longfat.backends.registry import DEFAULT_BACKEND, traits_of
from longfat.cli.console import listen
from longfat.cli.study import Choices, resolve
from longfat.cluster.follow import LOOK_S, Follower
from longfat.cluster.places import open_cluster
from longfat.cluster.protocol import Cluster, Work
from longfat.cluster.size import Size, size_of
from longfat.cluster.twice import compare_nodes
from longfat.errors import RigError, StudyError
from longfat.events import EventSink, discard
from longfat.execute.results import Results, open_results
from longfat.execute.shards import Shard
from longfat.execute.study import Summary
from longfat.locks import held
from longfat.plan import Plan
from longfat.plan.estimate import seconds_on
from longfat.plan.lockfile import LOCK, share_lock, write_lock
from longfat.plan.model import PlannedRun
from longfat.record.merge import merge_records
from longfat.record.verify import Record, find_records
from longfat.relations.firsts import keep_first
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder
from longfat.verbs.run import Machine, named_kernels, prepare
from longfat.verbs.task import Task, options, task

FOLDER = "cluster"
"""In a results folder: the script, the logs and the ends of tasks."""


@dataclass(frozen=True)
class Site:
    """A cluster, and what it is given: the kernels that runs pin, by name, the number of tasks and CPUs of each."""

    cluster: Cluster
    kernels: tuple[str, ...] = ()
    tasks: int | None = None
    cpus: int | None = None


def site_of(machine: Machine, kernels: Callable[[], tuple[str, ...]] = tuple) -> Site:
    """What the command line says of a cluster. Raises StudyError when that is wrong."""
    if machine.on is None or machine.scheduler or machine.shard or traits_of(machine.backend).lab:
        raise StudyError("a cluster's tasks use neither --scheduler nor --shard nor a lab", where="--on")
    named = kernels() if Feature.KERNELS in traits_of(machine.backend).can else ()
    cluster = open_cluster(machine.on)
    return Site(cluster, named, machine.tasks or cluster.tasks, machine.jobs)


def run_on(folder: StudyFolder, choices: Choices, machine: Machine, place: Path, console: Console) -> Summary:
    """Have the cluster that ``machine`` names execute the missing runs of a study, into the results folder ``place``.

    Raises StudyError when another plan is being executed there, RigError when the cluster does not work.
    """
    site = site_of(machine, lambda: named_kernels(resolve(folder, choices, {"backend": machine.backend})))

    def plan_for(events: EventSink) -> Plan:
        _, plan = prepare(folder, choices, machine, events)
        keep_first(place, folder.claims, not (place / LOCK).exists())
        return plan

    return execute_on(site, plan_for, place, console)


def text_for(plan: Plan, machine: Machine, place: Path) -> str:
    """What a cluster would be handed for all runs of a plan, which was made without digests."""
    site = site_of(machine, lambda: named_kernels(plan))
    place = place.absolute()
    tasks = _Tasks(site, _name(place), plan, Results(place), discard)
    return site.cluster.text(tasks.work(plan.runs, frozenset()))


def execute_on(site: Site, plan_for: Callable[[EventSink], Plan], place: Path, console: Console) -> Summary:
    """Have a cluster execute the missing runs of a plan, into the results folder ``place``, and compare its nodes.

    The tasks of an earlier start are followed where there are any.
    """
    place = place.absolute()
    name = _name(place)
    with _alone(place):
        ended = site.cluster.poll(name).ended
        with open_results(place, None if ended else FOLDER) as results, listen(results, console) as events:
            plan = plan_for(events)
            (write_lock if ended else share_lock)(plan, results.lock)
            before = find_records(results.raw, events)
        with open_results(place, FOLDER) as results, listen(results, console) as events:
            records = _trusted(_Tasks(site, name, plan, results, events))
    ok = [run_id for run_id in records if records[run_id].status == "ok"]
    reused = sum(run_id in before and before[run_id].status == "ok" for run_id in ok)
    _print_costs(plan, records, console)
    return Summary(reused, len(ok) - reused, len(records) - len(ok))


@dataclass(frozen=True)
class _Tasks:
    """What the tasks of a results folder are made of; the nodes that are ``doubted`` get none."""

    site: Site
    name: str
    plan: Plan
    results: Results
    events: EventSink
    doubted: set[str] = field(default_factory=set)

    @property
    def cost(self) -> Callable[[RunSpec], float]:
        return partial(seconds_on, self.plan.pins.get("backend", DEFAULT_BACKEND))

    def work(self, left: Sequence[PlannedRun], excluded: frozenset[str]) -> Work:
        """The tasks for what is left."""
        size = size_of(self.plan.runs, left, self.cost, tasks=self.site.tasks, cpus=self.site.cpus)
        return self._work(self.name, FOLDER, size, excluded)

    def again(self, groups: Mapping[frozenset[str], Sequence[str]], into: str) -> None:
        """Have some runs executed once more, at once, each group without its nodes; here, where there are no others."""
        cluster, names = self.site.cluster, []
        for number, (excluded, ids) in enumerate(groups.items(), 1):
            excluded |= self.doubted
            if not cluster.nodes() - excluded:
                task(self.results.path, Task(Shard(1, 1), None, None, self.site.kernels, tuple(ids), into), Console())
                continue
            runs = [run for run in self.plan.runs if run.run_id in ids]
            size = size_of(runs, runs, self.cost, cpus=self.site.cpus, tasks=1)
            names.append(f"{self.name}-{into}-{number}")
            if cluster.poll(names[-1]).ended:
                cluster.submit(self._work(names[-1], f"{FOLDER}/{into}-{number}", size, excluded, ids, into))
        for name in names:
            while not cluster.poll(name).ended:
                time.sleep(LOOK_S)
            folders = [part / into / "raw" for part in cluster.parts(name)]
            if parts := [folder for folder in folders if folder.is_dir()]:
                (self.results.path / into / "raw").mkdir(parents=True, exist_ok=True)
                merge_records(self.results.path / into / "raw", parts)

    def _work(
        self, name: str, folder: str, size: Size, excluded: frozenset[str], ids: Sequence[str] = (), into: str = ""
    ) -> Work:
        line = options(self.site.kernels, size, ids, into)
        place = self.results.path
        return Work(name, place, line, place / folder, size.tasks, size.cpus, size.memory_bytes, size.limit_s, excluded)


def _trusted(tasks: _Tasks) -> dict[str, Record]:
    """The records of all runs, when no node is at fault any more."""
    cluster, results = tasks.site.cluster, tasks.results
    runs, folder = tasks.plan.runs, results.path / FOLDER
    follower = Follower(cluster, tasks.name, runs, results, tasks.events, tasks.work, folder, tasks.doubted)
    while True:
        records = follower.all()
        nodes = cluster.nodes() - tasks.doubted
        at_fault = compare_nodes(results, records, nodes, tasks.again, tasks.events)
        if not at_fault:
            return records
        if at_fault >= nodes:
            raise RigError(f"no node is left that is not at fault: {', '.join(sorted(at_fault))}")
        tasks.doubted.update(at_fault)


def _name(place: Path) -> str:
    """What a cluster knows the tasks of a results folder by: a name that Kubernetes takes too (RFC 1123)."""
    readable = re.sub(r"[^a-z0-9]+", "-", place.name.lower()).strip("-")[:30]
    return f"longfat-{readable}-{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One process at a time follows the tasks of a results folder. Raises RigError in another."""
    place.mkdir(parents=True, exist_ok=True)
    try:
        with held(place / ".followed", wait=False):
            yield
    except BlockingIOError as error:
        raise RigError("another process follows the tasks of this folder", where=str(place)) from error


def _print_costs(plan: Plan, records: Mapping[str, Record], console: Console) -> None:
    """Core hours used beside planned, by experiment; a run that two experiments share counts for the first."""
    backend = plan.pins.get("backend", DEFAULT_BACKEND)
    costs: dict[str, list[float]] = {}
    for run in {run.run_id: run for run in reversed(plan.runs)}.values():
        row = costs.setdefault(run.experiment, [0.0, 0.0])
        row[0] += seconds_on(backend, run.spec)
        row[1] += records[run.run_id].wall_seconds if run.run_id in records else 0.0
    table = Table("experiment", Column("planned", justify="right"), Column("used", justify="right"), title="core hours")
    for experiment in sorted(costs):
        table.add_row(experiment, *(f"{seconds / 3600:.2f}" for seconds in costs[experiment]))
    table.add_row("all", *(f"{sum(column) / 3600:.2f}" for column in zip(*costs.values(), strict=True)))
    console.print(table)
