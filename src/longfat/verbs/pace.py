# SPDX-License-Identifier: Apache-2.0
"""How long runs take and how much disk they need on this machine, as multiples of the plan's model of them.

Measured on the runs that are in the results folders here, the newest ones: those of an experiment for itself, else of
its study. What a study takes that has not run here is known from its committed reference, and runs of other studies
tell how much slower this machine is than the one that made the references. Where the study has none, its model is
multiplied by ``TYPICAL``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.errors import StudyError
from longfat.plan import Plan, PlannedRun
from longfat.plan.estimate import run_bytes, seconds_on
from longfat.runspec import RunSpec
from longfat.studies import StudyFolder
from longfat.verbs.places import repository_root, study_path

NEWEST = 200  # runs of a folder that are looked at
ENOUGH = 3  # runs from which the pace of an experiment, a study or a machine is taken
TYPICAL = 0.5  # seconds of a run over the model's, on the machine that made the references: few flows fill their link


@dataclass(frozen=True)
class Factor:
    """What runs took over what the model says: in seconds of wall time and bytes of disk. ``runs`` is how many."""

    seconds: float = 1.0
    disk: float = 1.0
    runs: int = 0


@dataclass(frozen=True)
class Pace:
    """The factors of a study's experiments by name, and that of all others, with its origin for people."""

    others: Factor = Factor()
    words: str = ""
    of: Mapping[str, Factor] = field(default_factory=dict)

    def seconds(self, plan: Plan, run: PlannedRun) -> float:
        """Wall time of a run of the plan."""
        return seconds_on(_backend(plan), run.spec) * self.of.get(run.experiment, self.others).seconds

    def disk(self, run: PlannedRun) -> float:
        """Bytes that the record of a run takes."""
        return run_bytes(run.spec) * self.of.get(run.experiment, self.others).disk

    def cost(self, plan: Plan, runs: Iterable[PlannedRun], jobs: int) -> tuple[float, float]:
        """Seconds of wall time of all distinct runs, ``jobs`` at a time, and their bytes."""
        distinct = {run.run_id: run for run in runs}.values()
        jobs = 1 if traits_of(_backend(plan)).clock == "real" else jobs
        seconds = [self.seconds(plan, run) for run in distinct]
        return max(sum(seconds) / jobs, max(seconds, default=0.0)), sum(map(self.disk, distinct))


def pace_here(plan: Plan, results: Path) -> Pace:
    """The pace of a study's runs on this machine; ``results`` is its results folder."""
    if traits_of(_backend(plan)).clock == "real":
        return Pace(words="a second takes a second")
    own = list(_records(results, _backend(plan)))
    if len(own) < ENOUGH:
        return _by_reference(plan)
    of = {name: _factor(group) for name, group in _grouped(own).items() if len(group) >= ENOUGH}
    return Pace(_factor(own), f"by {len(own)} runs of this study here", of)


def pace_of(results: Path) -> dict[str, float]:
    """Seconds of wall time over the model's by experiment: what a reference keeps of the folder's runs."""
    backend = str(json.loads((results / "lock.json").read_text())["pins"]["backend"])
    groups = _grouped(_records(results, backend))
    return {name: round(_factor(group).seconds, 3) for name, group in sorted(groups.items())}


def _by_reference(plan: Plan) -> Pace:
    """The pace by the study's reference, and by how much slower this machine is than the one that made it."""
    machine = _machine(_backend(plan))
    known = _known(plan.study, plan.profile, plan.stack)
    of = {name: replace(machine, seconds=machine.seconds * seconds) for name, seconds in known.items()}
    typical = sum(known.values()) / len(known) if known else TYPICAL
    here = f"and by {machine.runs} runs of other studies here"
    unknown = "on another machine: any run, such as those of ./just smoke, measures this one"
    words = f"by {'the reference of the study' if known else 'a model'}, {here if machine.runs else unknown}"
    return Pace(replace(machine, seconds=machine.seconds * typical), words, of)


def _machine(backend: str) -> Factor:
    """What runs of all studies take here over what they take where the references were made."""
    every: list[_Record] = []
    expected = 0.0
    for lock in repository_root().glob("results/*/lock.json"):
        records = list(_records(lock.parent, backend))
        known = _known(*_settings(lock)) if records else {}
        expected += sum(one.modelled_s * known.get(one.experiment, TYPICAL) for one in records)
        every += records
    return replace(_factor(every), seconds=sum(one.seconds for one in every) / expected) if every else Factor()


def _settings(lock: Path) -> tuple[str, str, str]:
    """Study, profile and stack of a results folder; empty names where its lock cannot be read."""
    try:
        told = json.loads(lock.read_text())
        return str(told["study"]), str(told["profile"]), str(told["stack"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", "", ""


def _known(study: str, profile: str, stack: str) -> Mapping[str, float]:
    """The pace of a study's experiments by its reference; nothing where there is none to be read."""
    try:
        return StudyFolder(study_path(study)).pace(profile, stack)
    except (StudyError, ValueError, KeyError):
        return {}


@dataclass(frozen=True)
class _Record:
    """A run that is recorded: what it took, and what the model says that it takes."""

    experiment: str
    seconds: float
    disk: float
    modelled_s: float
    modelled_bytes: float


def _records(results: Path, backend: str) -> Iterator[_Record]:
    folders = sorted(results.glob("raw/*/run.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in islice(folders, NEWEST):
        try:
            told, spec = json.loads(path.read_text()), RunSpec.from_json((path.parent / "spec.json").read_text())
            if told["status"] == "ok" and told["backend"] == backend:
                size = sum(512 * file.stat().st_blocks for file in path.parent.rglob("*") if file.is_file())
                modelled = seconds_on(told["backend"], spec), run_bytes(spec)
                yield _Record(path.parent.name.partition(".")[0], float(told["wall_seconds"]), size, *modelled)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # damaged, or of another version: it tells nothing


def _grouped(records: Iterable[_Record]) -> dict[str, list[_Record]]:
    groups: dict[str, list[_Record]] = {}
    for one in records:
        groups.setdefault(one.experiment, []).append(one)
    return groups


def _factor(records: Iterable[_Record]) -> Factor:
    every = list(records)
    seconds = sum(one.seconds for one in every) / sum(one.modelled_s for one in every)
    return Factor(seconds, sum(one.disk for one in every) / sum(one.modelled_bytes for one in every), len(every))


def _backend(plan: Plan) -> str:
    return plan.pins["backend"]
