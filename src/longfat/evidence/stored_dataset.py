# SPDX-License-Identifier: Apache-2.0
"""The evidence of one profile in the form of a dataset, with values but without tables.

Owns the reasons for excluding rows and values. A row counts only if its spec equals the spec that the study now has for
that scenario and repetition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from longfat.backends.registry import DEFAULT_BACKEND
from longfat.dataset.load import Dataset, Run
from longfat.evidence.rows import SPEC_DIGITS, Row, ValueKey
from longfat.evidence.store import Place
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue, OutOfBounds
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import key_of
from longfat.plan import PlannedRun, Scenario, scenarios_of
from longfat.relations.evaluate import Grounds
from longfat.study.study import Study


@dataclass(frozen=True)
class Planned:
    """A study's scenarios with a stack and a profile, without digests of kernel, image and code."""

    study: Study
    stack: str
    profile: str
    backend: str = DEFAULT_BACKEND
    _known: dict[tuple[str, int], PlannedRun] = field(default_factory=dict)

    @cached_property
    def scenarios(self) -> Mapping[str, Scenario]:
        """The scenarios by name, in the manifest's order. Raises StudyError on an unknown stack or profile."""
        pins = {"backend": self.backend}
        found, _ = scenarios_of(self.study, profile=self.profile, stack=self.stack, pins=pins)
        return {scenario.name: scenario for scenario in found}

    def checked(self) -> Planned:
        """Return this plan after a check. Raises StudyError on an unknown stack or profile."""
        _ = self.scenarios
        return self

    def run(self, scenario: str, repetition: int) -> PlannedRun | None:
        """Return a repetition of a scenario, with the study's own seed; None without such a scenario."""
        if scenario not in self.scenarios:
            return None
        key = scenario, repetition
        if key not in self._known:
            self._known[key] = self.scenarios[scenario].run(self.study.header.seed, repetition)
        return self._known[key]

    def fault(self, row: Row) -> str | None:
        """Return the reason why a row does not belong to a run of the study; None if it does."""
        run = self.run(row.scenario, row.repetition)
        if run is None:
            return "of scenarios that the study does not have"
        return None if run.run_id[:SPEC_DIGITS] == row.spec else "of scenarios that were changed since"


@dataclass(frozen=True)
class EvidenceDataset(Dataset):
    """A dataset without tables: only its values can be read."""

    found: tuple[Run, ...] = ()
    values: Mapping[Hashable, float | str] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The included runs, and a missing run for each scenario without any."""
        return self.found

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """The values, by the keys of ``Dataset.computed``."""
        return {**self.values}

    def _read(self, table: str, **options: object) -> NoReturn:
        raise NoValue("the evidence lacks it: its rows are older than the claim, or a run has several such numbers")


@dataclass(frozen=True)
class Ground:
    """The evidence of one profile, by which claims are judged; ``rows`` are the included ones, by scenario."""

    planned: Planned
    grounds: Grounds
    rows: Mapping[str, tuple[Row, ...]]

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.planned.profile

    def scenarios_of(self, experiments: Collection[str]) -> int:
        """Return the number of the experiments' scenarios that have runs."""
        return sum(self.planned.scenarios[name].experiment in experiments for name, rows in self.rows.items() if rows)

    @property
    def coverage(self) -> str:
        """The numbers of scenarios with runs, and with all that were stated before."""
        full = sum(len(rows) >= self._stated[name] for name, rows in self.rows.items())
        return f"{len(self.rows)} of {len(self.planned.scenarios)} scenarios have runs, {full} all stated ones"

    @property
    def repetitions(self) -> str:
        """A sentence with these numbers and the numbers of repetitions."""
        each, stated = _span(map(len, self.rows.values())), _span(self._stated.values())
        return f"Profile {self.profile}: {self.coverage}; {each} each, {stated} stated."

    @property
    def _stated(self) -> Mapping[str, int]:
        least, known = self.planned.study.header.stated_repetitions, self.planned.scenarios
        return {name: max(least, known[name].repetitions) for name in self.rows}


def _span(numbers: Iterable[int]) -> str:
    least, *_, most = sorted(numbers) * 2
    return f"{least}" if least == most else f"{least} to {most}"


def ground_of(folder: Path, planned: Planned, rows: Iterable[Row], left_out: Counter[str]) -> Ground:
    """Return the ground of rows; excluded runs and values are counted in ``left_out`` by reason."""
    counted: dict[str, list[Row]] = {}
    for row in rows:
        counted.setdefault(row.scenario, []).append(row)
    kept = {name: tuple(sorted(of, key=lambda row: row.repetition)) for name, of in counted.items()}
    computed: dict[Hashable, float | str] = {}
    runs = []
    for name, of in planned.scenarios.items():
        own = kept.get(name, ())
        if (gap := _gap(own)) is not None:
            if own:
                left_out[f"{planned.profile}: runs of {name}, whose repetition {gap} is missing"] += len(own)
            absent = (f"missing {name}", of.experiment, name, gap, planned.stack, "missing")
            reason = f"repetition {gap} is not in the evidence" if own else "not in the evidence"
            runs.append(Run(*absent, reason, factors=of.point.factors))
            continue
        if _contradict(own):
            left_out[f"{planned.profile}: runs of {name}, of which equal measurements have different values"] += len(
                own
            )
            absent = (f"missing {name}", of.experiment, name, 1, planned.stack, "missing")
            runs.append(Run(*absent, "its rows contradict each other", factors=of.point.factors))
            continue
        for row in own:
            status = "ok" if row.measured else "invalid"
            fixed = (row.spec, of.experiment, name, row.repetition, planned.stack, status, row.reason)
            runs.append(Run(*fixed, factors=of.point.factors, measured=row.measured))
            computed.update(_computed(runs[-1], row, left_out))
    return Ground(planned, Grounds(planned.study, EvidenceDataset(folder, tuple(runs), computed)), kept)


def _gap(rows: Sequence[Row]) -> int | None:
    """Return the first missing repetition of sorted rows; None if they are 1 to n.

    A gap may be a deliberate omission, so no run of such a scenario counts.
    """
    numbers = [row.repetition for row in rows]
    return next((k for k in range(1, len(numbers) + 1) if numbers[k - 1] != k), None if numbers else 1)


def _contradict(rows: Sequence[Row]) -> bool:
    """Return whether rows with the same measurements have different values."""
    first: dict[tuple[str, str], float | str] = {}
    return any(
        first.setdefault((row.measured, name), value) != value
        for row in rows
        if row.measured is not None
        for name, value in row.values.items()
    )


def fault_of(row: Row, place: Place, planned: Planned | None, members: Mapping[str, object]) -> str | None:
    """Return the reason for excluding a row, in the plural; None if it counts."""
    if row.withdrawn is not None:
        return f"runs that were withdrawn ({row.withdrawn})"
    if row.made not in members:
        return f"runs of a combination ({row.made}) that the baseline does not list"
    if planned is None:
        return f"runs of stack {place.stack} and profile {place.profile}, which the study does not have"
    if fault := planned.fault(row):
        return f"runs {fault}"
    if planned.scenarios[row.scenario].experiment != place.experiment:
        return f"runs in the file of experiment {place.experiment} that belong to another"
    return None


def _computed(run: Run, row: Row, left_out: Counter[str]) -> Iterator[tuple[Hashable, float | str]]:
    """Yield the row's values, except values of a metric that was removed or redefined."""
    for name, value in row.values.items():
        key = ValueKey.read(name)
        what = key_of(run, key.selection(run.experiment))
        if key.metric not in METRICS:
            left_out[f"values of metric {key.metric}, which does not exist"] += 1
        elif key.definition == definition_digest(METRICS[key.metric]):
            try:
                yield what, value if isinstance(value, str) else METRICS[key.metric].bounded(value)
            except OutOfBounds:
                left_out[f"values of metric {key.metric} outside its bounds"] += 1
        else:
            left_out[f"values of metric {key.metric} by another definition ({key.definition})"] += 1
