# SPDX-License-Identifier: Apache-2.0
"""The verb ``evidence verify``: runs a sample of the evidence again and compares it to the byte.

What differs is kept, both sides of it, under ``results/verify/differing``.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import DEFAULT_BACKEND, open_backend
from longfat.catalog.stacks import STACKS
from longfat.dataset.build import build_dataset
from longfat.dataset.load import load_dataset
from longfat.errors import StudyError
from longfat.evidence.compare import difference, first_packet, sample_of
from longfat.evidence.epochs import FOLDER, Epoch, read_epochs
from longfat.evidence.judged import evidence_of
from longfat.evidence.planned import Planned
from longfat.evidence.rows import Row
from longfat.evidence.store import epochs_with_evidence, read_rows
from longfat.execute.memory import available_bytes
from longfat.execute.results import open_results
from longfat.execute.study import execute
from longfat.files import write_whole
from longfat.plan import Plan, build_plan
from longfat.plan.lockfile import read_lock, write_lock
from longfat.record.bundle import run_folder_name
from longfat.studies import StudyFolder
from longfat.verbs.kernel_check import combinations
from longfat.verbs.listening import listen
from longfat.verbs.places import repository_root
from longfat.verbs.run import results_path
from longfat.verbs.say import print_json, say
from longfat.verbs.study import find_study, job_count, kernel_settings
from longfat.verbs.verdicts import studies_with_evidence

FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """A row of the evidence with the study, stack and profile that it is of."""

    folder: StudyFolder
    planned: Planned
    row: Row

    @property
    def name(self) -> str:
        """Unique among all rows; a sample is drawn by it."""
        of = self.planned
        return f"{self.folder.name}, {of.stack}, {of.profile}: {self.row.name}"

    @property
    def group(self) -> str:
        """What a sample has in turn: a study under a stack."""
        return f"{self.folder.name}, {self.planned.stack}"


@dataclass(frozen=True)
class Mismatch:
    """A run that is not what the evidence says, in what, and where both are kept."""

    name: str
    text: str
    place: Path
    backend: str


def verify(
    name: str | StudyFolder | None,
    wanted: str,
    seed: int,
    jobs: int | None,
    console: Console,
    epoch: str | None = None,
    *,
    budget: float | None = None,
    as_json: bool = False,
) -> bool:
    """Run a sample again; whether all of it is identical to the byte. True, too, where there is no evidence.

    Of the sample, in the order drawn, those runs are left out that do not fit into the rest of ``budget``, in seconds
    of wall time, by what they took when they became evidence.
    """
    epochs = read_epochs(repository_root() / FOLDER)
    folders = [find_study(name)] if name else studies_with_evidence()
    kept = [one for folder in folders for one in rows_that_count(folder, epochs, epoch)]
    if not kept:
        say(console, "no evidence is committed yet, so there is nothing to verify")
        return True
    try:
        drawn = sample_of([(one.group, one.name, one) for one in kept], wanted, seed)
    except ValueError as error:
        raise StudyError(str(error), where="--sample") from error
    sample = drawn if budget is None else within(drawn, budget * job_count(jobs))
    left = f"; {len(drawn) - len(sample)} that were drawn exceed the budget" if len(sample) < len(drawn) else ""
    say(console, f"{len(sample)} of {len(kept)} runs of the evidence are run again (seed {seed}){left}")
    mismatches = run_again(sample, jobs, console)
    same = len(sample) - len(mismatches)
    say(console, f"{same} of {len(sample)} re-run here, identical to the byte")
    tell(mismatches, console)
    if mismatches:
        name = mismatches[0].backend
        here = combinations(open_backend(name, kernel_settings(name, *STACKS), say=console.print))
        for unlisted in (one for one in here if not any(one.key in epoch.members for epoch in epochs)):
            say(console, f"  no epoch lists {unlisted.text()}: the difference may be this machine's")
    if as_json:
        differing = [{"run": one.name, "what": one.text, "kept": str(one.place)} for one in mismatches]
        counts = {"evidence": len(kept), "sample": len(sample), "identical": same}
        print_json({"format": FORMAT, "seed": seed, **counts, "differing": differing})
    return not mismatches


def within(drawn: Iterable[Kept], seconds: float) -> list[Kept]:
    """The runs that fit into so many seconds together, each taken if there is still room for it."""
    found = []
    for one in drawn:
        if one.row.seconds <= seconds:
            seconds -= one.row.seconds
            found.append(one)
    return found


def rows_that_count(folder: StudyFolder, epochs: list[Epoch], epoch: str | None = None) -> Iterator[Kept]:
    """The rows of a study's newest epoch, or of the one named, that verdicts rest on; of all stacks and profiles."""
    names = epochs_with_evidence(folder.path)
    if not names:
        return
    epoch = epoch or names[-1]
    rows = read_rows(folder.path, folder.study.name, epoch)
    for stack in sorted({place.stack for place in rows}):
        one = evidence_of(folder, epochs, epoch=epoch, stack=stack, rows=rows)
        for ground in one.grounds if one else ():
            yield from (Kept(folder, ground.planned, row) for of in ground.rows.values() for row in of)


def tell(mismatches: Sequence[Mismatch], console: Console) -> None:
    """Name the runs that differ."""
    if mismatches:
        say(console, "verdicts by this evidence are unverified:")
    for one in mismatches:
        say(console, f"  {one.name}: {one.text}; both are in {one.place}")


def run_again(sample: Iterable[Kept], jobs: int | None, console: Console) -> list[Mismatch]:
    """Run rows anew, by study, stack and profile, and compare each with its run."""
    groups: dict[tuple[StudyFolder, str, str], list[Kept]] = {}
    for one in sample:
        groups.setdefault((one.folder, one.planned.stack, one.planned.profile), []).append(one)
    backends: dict[tuple[str, str], Backend] = {}
    found = []
    for group in groups.values():
        name, stack = key = group[0].planned.backend, group[0].planned.stack
        if key not in backends:
            backends[key] = open_backend(name, kernel_settings(name, stack), say=console.print)
        found += _run_group(group, backends[key], jobs, console)
    return found


def _run_group(group: list[Kept], backend: Backend, jobs: int | None, console: Console) -> list[Mismatch]:
    folder = group[0].folder
    place = repository_root() / "results" / "verify" / folder.name
    with open_results(place) as results:
        shutil.rmtree(results.raw)
        results.raw.mkdir()
        plan = plan_of(group, backend)
        write_lock(plan, results.lock)
        with listen(results, console) as events:
            memory = available_bytes() if backend.name == DEFAULT_BACKEND else None
            execute(plan.runs, backend, results, jobs=job_count(jobs), events=events, memory_bytes=memory)
        build_dataset(results.path)
        dataset = load_dataset(results.path)
        runs = {(run.scenario, run.repetition): run for run in dataset.runs}
        mismatches = []
        for one in group:
            run = runs[one.row.scenario, one.row.repetition]
            if (text := difference(one.row, dataset, run)) is not None:
                again = results.raw / run_folder_name(run.scenario, run.repetition, run.run_id)
                mismatches.append(keep(one, text, again))
    return mismatches


@dataclass(frozen=True)
class Check:
    """How many runs of a results folder are in the evidence, and those that differ."""

    compared: int
    mismatches: tuple[Mismatch, ...]


def compare_results(place: Path, folder: StudyFolder) -> Check:
    """Hold the runs of a results folder with its dataset against the evidence of the study."""
    plan, dataset = read_lock(place / "lock.json"), load_dataset(place)
    runs = {(run.scenario, run.repetition): run for run in dataset.runs if run.status in ("ok", "invalid")}
    ids = {(run.scenario, run.repetition): run for run in plan.runs}
    compared, mismatches = 0, []
    for one in rows_that_count(folder, read_epochs(repository_root() / FOLDER)):
        key, of = (one.row.scenario, one.row.repetition), one.planned
        same = (of.stack, of.profile, of.backend) == (plan.stack, plan.profile, plan.pins["backend"])
        if not same or key not in runs:
            continue
        run = of.run(*key)
        if run is None or dataclasses.replace(ids[key].spec, pins=run.spec.pins).run_id != run.run_id:
            continue  # another seed, or the manifest was another when the lock was written
        compared += 1
        if (text := difference(one.row, dataset, runs[key])) is not None:
            again = place / "raw" / run_folder_name(*key, runs[key].run_id)
            mismatches.append(keep(one, text, again))
    return Check(compared, tuple(mismatches))


def plan_of(group: Iterable[Kept], backend: Backend) -> Plan:
    """The plan of the rows' runs, all of one study, stack and profile, with what this machine runs them with."""
    chosen: dict[str, list[int]] = {}
    for one in group:
        chosen.setdefault(one.row.scenario, []).append(one.row.repetition)
        planned = one.planned
    return build_plan(planned.study, profile=planned.profile, stack=planned.stack, pins=backend.pins(), chosen=chosen)


def keep(one: Kept, text: str, again: Path) -> Mismatch:
    """Keep the run as it came out here, the row, and the raw run that the row was made of where it is still here."""
    place = repository_root() / "results" / "verify" / "differing" / one.folder.name / again.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write_whole(place / "evidence.json", one.row.line() + "\n")
    if again.is_dir():
        shutil.copytree(again, place / "here")
    name = run_folder_name(one.row.scenario, one.row.repetition, one.row.run_id)
    before = results_path(one.folder, None) / "raw" / name
    if before.is_dir() and again.is_dir() and before.resolve() != again.resolve():
        shutil.copytree(before, place / "before")
        if packet := first_packet(before, again):
            text += f"; first packet that differs: {packet}"
    return Mismatch(one.name, text, place, one.planned.backend)
