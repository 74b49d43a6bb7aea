# SPDX-License-Identifier: Apache-2.0
"""Comparison of the evidence with repeated runs or with results, byte by byte.

Both sides of a difference stay under ``results/verify/differing``.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from longfat.backends.protocol import Backend
from longfat.backends.registry import open_backend
from longfat.cli.console import Output, say
from longfat.cli.kernel_check import combinations
from longfat.cli.paths import repository_root
from longfat.cli.run import execute_runs, results_path
from longfat.cli.study import find_study, job_count, kernel_settings, known_baselines
from longfat.cli.verdicts import studies_with_evidence
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import build_dataset
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.evidence.baselines import Baseline
from longfat.evidence.collect import required_selections
from longfat.evidence.compare import Since, difference, sample_of, since_parent
from longfat.evidence.judged import evidence_of
from longfat.evidence.rows import Row
from longfat.evidence.store import baselines_with_evidence, read_rows
from longfat.evidence.stored_dataset import Ground, Planned
from longfat.execute.record.bundle import run_folder_name
from longfat.execute.results import open_results
from longfat.plan import build_plan
from longfat.plan.estimate import seconds_on
from longfat.plan.lockfile import read_lock, write_lock
from longfat.study.catalog.stacks import STACKS
from longfat.system.errors import StudyError
from longfat.system.files import write_whole


@dataclass(frozen=True)
class Kept:
    """A row of the evidence with its study, stack and profile."""

    folder: StudyFolder
    planned: Planned
    row: Row

    @property
    def name(self) -> str:
        """A unique name of the row, by which samples are drawn."""
        return f"{self.group}, {self.planned.profile}: {self.row.name}"

    @property
    def group(self) -> str:
        """The study and the stack; a sample takes one run of each group in turn."""
        return f"{self.folder.name}, {self.planned.stack}"

    @property
    def seconds(self) -> float:
        """The wall time of the run by the plan's model."""
        run = self.planned.run(self.row.scenario, self.row.repetition)
        assert run is not None, "the row counts"
        return seconds_on(self.planned.backend, run.spec)

    @property
    def stripped(self) -> bool:
        """Whether the row has no value, although claims or figures need one."""
        if self.row.measured is None or self.row.values:
            return False
        folder, of = self.folder, self.planned.scenarios[self.row.scenario].experiment
        return any(one.experiment == of for one in required_selections(folder.study, folder.claims, folder.figures))


@dataclass(frozen=True)
class Mismatch:
    """A run that differs from the evidence, the difference, and the folder with both sides."""

    name: str
    text: str
    place: Path
    backend: str


def require_sample(wanted: str) -> None:
    """Raise StudyError unless it is the size of a sample."""
    try:
        sample_of((), wanted, 1)
    except ValueError as error:
        raise StudyError(str(error), where="--sample") from error


def repeat_sample(
    name: str | None, wanted: str, seed: int, budget: float | None, jobs: int | None, out: Output
) -> bool:
    """Repeat a sample of the evidence; return whether all of it is byte-identical. Without evidence the result is True.

    Rows that are new or changed since the parent commit are drawn first. The result is also False if a row, a value or
    a record of a criterion is gone since then.

    ``budget`` is in seconds of wall time. In the order drawn, runs are left out that do not fit into the rest of it, by
    the plan's model: a row's own seconds decide nothing. The result is also False if no run fits.
    """
    known = known_baselines()
    folders = [find_study(name)] if name else studies_with_evidence()
    since = since_parent(repository_root(), folders[0].name if name else None)
    gone = _print_losses(since, out)
    kept = [one for folder in folders for one in rows_that_count(folder, known)]
    if not kept:
        say(out, "no evidence is committed yet, so there is nothing to repeat")
        out.result(seed=seed, evidence=0, sample=0, identical=0, differing=[])
        return not gone
    new = [one for one in kept if since and (one.folder.name, one.row.line()) in since.new]
    drawn = _drawn(kept, new, wanted, seed)
    sample = drawn if budget is None else within(drawn, budget * job_count(jobs))
    if new:
        fresh = sum(one in new for one in sample)
        say(out, f"{fresh} of {len(new)} runs that are new or changed since the parent commit are among them")
    left = f"; {len(drawn) - len(sample)} of the sample exceed the budget" if len(sample) < len(drawn) else ""
    say(out, f"{len(sample)} of {len(kept)} runs of the evidence are repeated (seed {seed}){left}")
    mismatches = repeat(sample, jobs, out)
    same = len(sample) - len(mismatches)
    say(out, f"{same} of {len(sample)} repeated here, byte-identical")
    print_mismatches(mismatches, out)
    if mismatches:
        backend = mismatches[0].backend
        for one in combinations(open_backend(backend, kernel_settings(backend, *STACKS), say=out.print)):
            if not any(one.key in baseline.members for baseline in known):
                say(out, f"  no baseline lists {one.text()}, which may be the cause")
    differing = [{"run": one.name, "what": one.text, "kept": str(one.place)} for one in mismatches]
    out.result(seed=seed, evidence=len(kept), sample=len(sample), identical=same, differing=differing)
    return bool(sample) and not mismatches and not gone


def _print_losses(since: Since | None, console: Console) -> tuple[str, ...]:
    """Print and return the losses of the evidence since the parent commit."""
    if since is None:
        say(console, "no parent commit is here: nothing shows whether rows are gone")
        return ()
    for line in since.gone:
        say(console, f"gone since the parent commit: {line}")
    return since.gone


def _drawn(kept: Sequence[Kept], new: Sequence[Kept], wanted: str, seed: int) -> list[Kept]:
    """Draw a sample of the rows, new rows first."""
    count = len(_sampled(kept, wanted, seed))
    first = _sampled(new, str(count), seed)
    names = {one.name for one in first}
    return [*first, *(one for one in _sampled(kept, str(len(kept)), seed) if one.name not in names)][:count]


def _sampled(rows: Sequence[Kept], wanted: str, seed: int) -> list[Kept]:
    return sample_of([(one.group, one.name, one) for one in rows], wanted, seed)


def within(drawn: Iterable[Kept], seconds: float) -> list[Kept]:
    """Return the runs whose estimated time fits into the budget, in the given order."""
    found = []
    for one in drawn:
        if (cost := one.seconds) <= seconds:
            seconds -= cost
            found.append(one)
    return found


def rows_that_count(folder: StudyFolder, baselines: list[Baseline]) -> Iterator[Kept]:
    """Yield the rows behind the verdicts, of all stacks and profiles, from the newest baseline."""
    names = baselines_with_evidence(folder.path)
    if not names:
        return
    baseline = names[-1]
    rows = read_rows(folder.path, folder.study.name, baseline)
    for stack in sorted({place.stack for place in rows}):
        one = evidence_of(folder, baselines, baseline=baseline, stack=stack, rows=rows)
        yield from _kept(folder, one.grounds if one else ())


def _kept(folder: StudyFolder, grounds: Iterable[Ground]) -> Iterator[Kept]:
    for ground in grounds:
        yield from (Kept(folder, ground.planned, row) for of in ground.rows.values() for row in of)


def print_mismatches(mismatches: Sequence[Mismatch], console: Console) -> None:
    """Print the runs that differ from the evidence."""
    if mismatches:
        say(console, "verdicts by this evidence are unverified:")
    for one in mismatches:
        say(console, f"  {one.name}: {one.text}; both are in {one.place}")


def repeat(sample: Iterable[Kept], jobs: int | None, console: Console) -> list[Mismatch]:
    """Repeat the runs of rows, by study, stack and profile, and return those that differ."""
    groups: dict[tuple[StudyFolder, str, str], list[Kept]] = {}
    for one in sample:
        groups.setdefault((one.folder, one.planned.stack, one.planned.profile), []).append(one)
    backends: dict[tuple[str, str], Backend] = {}
    found = []
    for group in groups.values():
        name, stack = key = group[0].planned.backend, group[0].planned.stack
        if key not in backends:
            backends[key] = open_backend(name, kernel_settings(name, stack), say=console.print)
        found += _repeat_group(group, backends[key], jobs, console)
    return found


def _repeat_group(group: list[Kept], backend: Backend, jobs: int | None, console: Console) -> list[Mismatch]:
    """Repeat runs of one study, stack and profile with the pins of this machine, and return those that differ."""
    planned = group[0].planned
    chosen: dict[str, list[int]] = {}
    for one in group:
        chosen.setdefault(one.row.scenario, []).append(one.row.repetition)
    plan = build_plan(planned.study, profile=planned.profile, stack=planned.stack, pins=backend.pins(), chosen=chosen)
    with open_results(repository_root() / "results" / "verify" / group[0].folder.name) as results:
        shutil.rmtree(results.raw)
        results.raw.mkdir()
        write_lock(plan, results.lock)
        execute_runs(plan.runs, backend, results, jobs, console)
        build_dataset(results.path)
        dataset = load_dataset(results.path)
        runs = {(run.scenario, run.repetition): run for run in dataset.runs}
        pairs = ((one, runs[one.row.scenario, one.row.repetition]) for one in group)
        return list(_mismatches(pairs, dataset))


def compare_results(place: Path, folder: StudyFolder) -> tuple[int, list[Mismatch]]:
    """Compare the runs of a results folder with the evidence of the study.

    Returns the number of runs that are in the evidence, and those that differ from it.
    """
    plan, dataset = read_lock(place / "lock.json"), load_dataset(place)
    runs = {(run.scenario, run.repetition): run for run in dataset.runs if run.status in ("ok", "invalid")}
    specs = {(run.scenario, run.repetition): run.spec for run in plan.runs}
    evidence = evidence_of(folder, known_baselines(), stack=plan.stack, profile=plan.profile)
    same = evidence is not None and evidence.backend == plan.pins["backend"]
    pairs = []
    for one in _kept(folder, evidence.grounds if evidence and same else ()):
        key = one.row.scenario, one.row.repetition
        run = one.planned.run(*key) if key in runs else None
        # A run of another seed or of an older manifest has another spec.
        if run is not None and dataclasses.replace(specs[key], pins=run.spec.pins).run_id == run.run_id:
            pairs.append((one, runs[key]))
    return len(pairs), list(_mismatches(pairs, dataset))


def _mismatches(pairs: Iterable[tuple[Kept, Run]], dataset: Dataset) -> Iterator[Mismatch]:
    """Yield the rows whose runs differ.

    Keeps the row, the repeated run, and the original run if its results still exist.
    """
    for one, run in pairs:
        text = "the row has no value" if one.stripped else difference(one.row, dataset, run)
        if text is None:
            continue
        here = dataset.folder.parent / "raw" / run_folder_name(run.scenario, run.repetition, run.run_id)
        before = run_folder_name(one.row.scenario, one.row.repetition, one.row.run_id)
        place = repository_root() / "results" / "verify" / "differing" / one.folder.name / here.name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        write_whole(place / "evidence.json", one.row.line() + "\n")
        sources = {here.resolve(): "here"}
        sources.setdefault((results_path(one.folder, None) / "raw" / before).resolve(), "before")
        for source, name in sources.items():
            if source.is_dir():
                shutil.copytree(source, place / name)
        yield Mismatch(one.name, text, place, one.planned.backend)
