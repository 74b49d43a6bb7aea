# SPDX-License-Identifier: Apache-2.0
"""Rows from results: what claims and figures of the study read from each run of a results folder.

Owns which of the runs become evidence, and the names of the reasons why others do not.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.errors import RecordError, StudyError
from longfat.evidence.epochs import Combination
from longfat.evidence.ground import Ground, ground_of
from longfat.evidence.planned import Planned, planned_or_none
from longfat.evidence.rows import SPEC_DIGITS, Row, Value, ValueKey
from longfat.evidence.store import Place, Rows, by_place
from longfat.evidence.wanted import wanted
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import Selection, metric_of_run
from longfat.plan.estimate import run_seconds
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan, PlannedRun
from longfat.record.bundle import run_folder_name
from longfat.record.verify import read_facts
from longfat.studies import StudyFolder


@dataclass(frozen=True)
class Collected:
    """The rows of a results folder, what was left out of them and why, and what they were made with."""

    rows: Rows
    combination: Combination
    left_out: tuple[str, ...]


def makes_evidence(backend: str) -> bool:
    """Whether a backend's runs are those of the project's kernel that repeat to the byte. Raises StudyError."""
    return traits_of(backend).own_world


def require_repeatable(backend: str) -> None:
    """Raise StudyError where a backend's runs do not repeat to the byte."""
    if not makes_evidence(backend):
        hint = "only runs of the project's kernel in virtual time are equal to the byte wherever they are run"
        raise StudyError(f"runs of backend {backend!r} make no evidence", hint=hint)


def combination_of(plan: Plan) -> Combination:
    """What the runs of a lock were made with. Raises StudyError where such runs do not repeat to the byte."""
    require_repeatable(plan.pins.get("backend", ""))
    return Combination.of(plan.pins)


def collect(results: Path, folder: StudyFolder, epoch: str) -> Collected:
    """What a results folder with its dataset has for an epoch of a study.

    Raises StudyError when the lock is another study's, of another seed, or its runs cannot be repeated.
    """
    study, plan = folder.study, read_lock(results / "lock.json")
    if plan.study != study.name:
        raise StudyError(f"the results are of study {plan.study!r}, not of {study.name!r}", where=str(results))
    if plan.seed != study.header.seed:
        message = f"the results have seed {plan.seed}, the study has {study.header.seed}: these are other repetitions"
        raise StudyError(message, where=str(results))
    combination = combination_of(plan)
    dataset = load_dataset(results)
    found = _Reader(folder, dataset, plan)
    return Collected(by_place(found.rows(results, epoch, combination)), combination, found.named())


def ground_of_results(folder: StudyFolder, plan: Plan, dataset: Dataset) -> Ground | None:
    """What results have of their profile's runs, to tell what they lack; None where the study has no such profile.

    Times are the plan's, so that equal results give equal ones.
    """
    planned = planned_or_none(folder.study, plan.stack, plan.profile, plan.pins["backend"])
    if planned is None:
        return None
    rows = [
        Row(run.scenario, run.repetition, "", run.run_id, "", run.measured, run_seconds(entry.spec))
        for entry, run in zip(plan.runs, dataset.runs, strict=True)
        if run.status in ("ok", "invalid") and run.scenario in planned.scenarios
    ]
    return dataclasses.replace(ground_of(folder.path, planned, rows, Counter()), values=None)


class _Reader:
    """Reads the rows of one dataset."""

    def __init__(self, folder: StudyFolder, dataset: Dataset, plan: Plan) -> None:
        study = folder.study
        self.dataset, self.plan = dataset, plan
        self.planned = Planned(study, plan.stack, plan.profile, plan.pins["backend"])
        default = {name: one.default for name, one in study.header.unknowns.items()}
        self.assuming = {name: value for name, value in folder.given.items() if default[name] != value}
        self.left_out: Counter[str] = Counter()
        self.asked: dict[tuple[str, str], dict[ValueKey, Selection]] = {}
        for selection in wanted(study, folder.claims, folder.figures):
            key = key_for(selection)
            for run in selection.chosen(dataset):
                self.asked.setdefault((run.experiment, run.run_id), {}).setdefault(key, selection)

    def rows(self, results: Path, epoch: str, combination: Combination) -> list[tuple[Place, Row]]:
        """All that the epoch can have."""
        found = []
        for entry, run in zip(self.plan.runs, self.dataset.runs, strict=True):
            if reason := self._fault(entry, run, combination):
                self.left_out[reason] += 1
                continue
            of = self.planned.run(entry.scenario, entry.repetition)
            assert of is not None
            row = Row(
                scenario=entry.scenario,
                repetition=entry.repetition,
                spec=of.run_id[:SPEC_DIGITS],
                run_id=entry.run_id,
                made=combination.key,
                measured=run.measured if run.status == "ok" else None,
                seconds=_seconds(results, entry),
                values=self.values(run) if run.status == "ok" else {},
                reason=None if run.status == "ok" else run.reason or run.status,
                assuming=self.assuming,
            )
            found.append((Place(epoch, self.plan.stack, self.plan.profile, entry.experiment), row))
        return found

    def values(self, run: Run) -> dict[str, Value]:
        """What claims and figures read from a run."""
        asked = self.asked.get((run.experiment, run.run_id), {})
        return {str(key): value_of(self.dataset, run, selection) for key, selection in asked.items()}

    def named(self) -> tuple[str, ...]:
        """What was left out, for people."""
        return tuple(f"{count} runs {reason}" for reason, count in sorted(self.left_out.items()))

    def _fault(self, entry: PlannedRun, run: Run, combination: Combination) -> str | None:
        if run.status in ("missing", "failed"):
            return f"that are {run.status}"
        if entry.spec.pins.get("kernel") != combination.kernel:
            return "with a kernel that is named, which no canary knows"
        of = self.planned.run(entry.scenario, entry.repetition)
        if of is None:
            return "of scenarios that the study does not have"
        same = dataclasses.replace(entry.spec, pins=of.spec.pins).run_id == of.run_id
        return None if same else "of scenarios that are not what they were when the lock was written"


def key_for(selection: Selection) -> ValueKey:
    """What a row calls a value, by the metric's definition of today."""
    definition = definition_digest(METRICS[selection.metric])
    return ValueKey(selection.metric, definition, selection.flow, tuple(sorted(selection.parameters.items())))


def value_of(dataset: Dataset, run: Run, selection: Selection) -> Value:
    """A value of a run, or why it has none."""
    try:
        return metric_of_run(dataset, run, selection)
    except NoValue as error:
        return str(error)


def _seconds(results: Path, run: PlannedRun) -> float:
    """The wall time of a recorded run; where two experiments need the same run, its folder has the name of one."""
    name = run_folder_name("*", run.repetition, run.run_id)
    folder = next((results / "raw").glob(name), results / "raw" / name)
    try:
        return float(read_facts(folder)["wall_seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=str(folder / "run.json")) from error
