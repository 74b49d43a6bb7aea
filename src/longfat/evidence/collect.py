# SPDX-License-Identifier: Apache-2.0
"""Rows from results: the values of each run in a results folder that claims and figures of the study use.

Owns the choice of the runs that become evidence, and the reasons against the others.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from longfat.backends.registry import traits_of
from longfat.data.study_folder import StudyFolder
from longfat.dataset.build import DatasetSummary, build_dataset
from longfat.dataset.load import Dataset, Run, load_dataset
from longfat.evidence.baselines import Combination
from longfat.evidence.rows import SPEC_DIGITS, Row, Value, ValueKey
from longfat.evidence.store import Place, Rows
from longfat.evidence.stored_dataset import Planned
from longfat.execute.record.bundle import run_folder_name
from longfat.execute.record.verify import read_facts
from longfat.figures.document import FiguresDocument
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import Selection, impossible, metric_of_run
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan, PlannedRun
from longfat.relations.bind import ValuesOf
from longfat.relations.claims import Claim
from longfat.relations.judge import asked_of
from longfat.study.study import Study
from longfat.system.errors import RecordError, StudyError
from longfat.system.events import EventSink, discard


def required_selections(study: Study, claims: Iterable[Claim], figures: FiguresDocument) -> tuple[Selection, ...]:
    """Return the selections of claims and figures, each of all runs of its experiment.

    Metrics with several points in a run are left out. All runs of an experiment are included, because judgement may
    need them to find the factors that affect a metric.
    """
    found: list[Selection] = []
    for claim in claims:
        found += selections_of_claim(claim, study)
    for figure in figures.figures:
        found += figure.selections(study)
    whole = [dataclasses.replace(one, where=(), added=()) for one in found if not METRICS[one.metric].over]
    return tuple(
        {(one.experiment, one.metric, one.flow, *sorted(one.parameters.items())): one for one in whole}.values()
    )


def selections_of_claim(claim: Claim, study: Study, values_of: ValuesOf | None = None) -> Iterator[Selection]:
    """Yield the selections of a claim for all values of its loops, from the study or from ``values_of``."""
    for relation in claim.relations:
        for one in relation.selections(study, values_of):
            yield one
            yield from (needed for _, needed in asked_of(claim.needs, one)) if claim.needs else ()


def build_valid(results: Path, folder: StudyFolder, events: EventSink = discard) -> DatasetSummary:
    """Build the dataset with the gates applied, and again if a metric has a value outside its bounds.

    Raises StudyError, RecordError or RigError as ``build_dataset``.
    """
    summary = build_dataset(results, events=events)
    if not summary.ok:
        return summary
    found = impossible(load_dataset(results), required_selections(folder.study, folder.claims, folder.figures))
    return build_dataset(results, found) if found else summary


def require_repeatable(backend: str) -> None:
    """Raise StudyError unless repeated runs of a backend are byte-identical."""
    if not traits_of(backend).own_world:
        hint = "only runs of the project's kernel in virtual time are byte-identical on all machines"
        raise StudyError(f"runs of backend {backend!r} make no evidence", hint=hint)


def combination_of(plan: Plan) -> Combination:
    """Return the combination behind the runs of a lock. Raises StudyError if such runs cannot be repeated."""
    require_repeatable(plan.pins.get("backend", ""))
    return Combination.of(plan.pins)


def collect(results: Path, folder: StudyFolder, baseline: str) -> tuple[Rows, list[str]]:
    """Return the rows of a results folder for a baseline of a study, and the numbers of omitted runs, with reasons.

    Raises StudyError if the lock has another study or seed, or its runs cannot be repeated.
    """
    study, plan = folder.study, read_lock(results / "lock.json")
    if plan.study != study.name:
        raise StudyError(f"the results are of study {plan.study!r}, not of {study.name!r}", where=str(results))
    if plan.seed != study.header.seed:
        message = f"the results have seed {plan.seed}, the study has {study.header.seed}: these are other repetitions"
        raise StudyError(message, where=str(results))
    combination = combination_of(plan)
    found = _Reader(folder, load_dataset(results), plan)
    rows = found.rows(results, baseline, combination)
    return rows, [f"{count} runs {reason}" for reason, count in sorted(found.left_out.items())]


class _Reader:
    """Reader of the rows of one dataset."""

    def __init__(self, folder: StudyFolder, dataset: Dataset, plan: Plan) -> None:
        study = folder.study
        self.dataset, self.plan = dataset, plan
        self.planned = Planned(study, plan.stack, plan.profile, plan.pins["backend"])
        default = {name: one.default for name, one in study.header.unknowns.items()}
        self.assuming = {name: value for name, value in folder.given.items() if default[name] != value}
        self.left_out: Counter[str] = Counter()
        self.selections: dict[tuple[str, str], dict[ValueKey, Selection]] = {}
        for selection in required_selections(study, folder.claims, folder.figures):
            key = key_for(selection)
            for run in selection.chosen(dataset):
                self.selections.setdefault((run.experiment, run.run_id), {}).setdefault(key, selection)

    def rows(self, results: Path, baseline: str, combination: Combination) -> Rows:
        """Return the rows for the baseline."""
        found: dict[Place, dict[tuple[str, int, str], Row]] = {}
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
            place = Place(baseline, self.plan.stack, self.plan.profile, entry.experiment)
            found.setdefault(place, {})[row.key] = row
        return found

    def values(self, run: Run) -> dict[str, Value]:
        """Return the values of a run that claims and figures use."""
        wanted_here = self.selections.get((run.experiment, run.run_id), {})
        return {str(key): value_of(self.dataset, run, selection) for key, selection in wanted_here.items()}

    def _fault(self, entry: PlannedRun, run: Run, combination: Combination) -> str | None:
        if run.status in ("missing", "failed"):
            return f"that are {run.status}"
        if entry.spec.pins.get("kernel") != combination.kernel:
            return "with a named kernel, which the kernel regression check does not run"
        of = self.planned.run(entry.scenario, entry.repetition)
        if of is None:
            return "of scenarios that the study does not have"
        same = dataclasses.replace(entry.spec, pins=of.spec.pins).run_id == of.run_id
        return None if same else "of scenarios that have changed since the lock was written"


def key_for(selection: Selection) -> ValueKey:
    """Return the key of a value in rows, by the metric's present definition."""
    definition = definition_digest(METRICS[selection.metric])
    return ValueKey(selection.metric, definition, selection.flow, tuple(sorted(selection.parameters.items())))


def value_of(dataset: Dataset, run: Run, selection: Selection) -> Value:
    """Return a value of a run, or the reason for its absence."""
    try:
        return metric_of_run(dataset, run, selection)
    except NoValue as error:
        return str(error)


def _seconds(results: Path, run: PlannedRun) -> float:
    """Return the wall time of a recorded run; its folder may be named after another experiment with the same run."""
    name = run_folder_name("*", run.repetition, run.run_id)
    folder = next((results / "raw").glob(name), results / "raw" / name)
    try:
        return float(read_facts(folder)["wall_seconds"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecordError(f"the record cannot be read: {error!r}", where=str(folder / "run.json")) from error
