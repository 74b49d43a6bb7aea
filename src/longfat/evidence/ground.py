# SPDX-License-Identifier: Apache-2.0
"""The evidence of one profile as the engine reads it: a dataset that has values and no tables.

Owns which of a profile's rows count, with the name of each reason why others do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from longfat.dataset.load import Dataset, Run
from longfat.evidence.planned import Planned
from longfat.evidence.rows import SPEC_DIGITS, Row, ValueKey
from longfat.evidence.store import Place
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import Selection, key_of
from longfat.relations.evaluate import Grounds


@dataclass(frozen=True)
class Values:
    """Runs with what is known of them, by the keys of the engine."""

    runs: tuple[Run, ...] = ()
    computed: Mapping[Hashable, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvidenceDataset(Dataset):
    """A dataset without tables: what is not among its values cannot be had."""

    values: Values

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs that count, and a missing one for each scenario of the profile that has none."""
        return self.values.runs

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """All values."""
        return {**self.values.computed}

    def _read(self, table: str, **options: object) -> NoReturn:
        raise NoValue("the evidence does not have this value: it was added before a claim or figure asked for it")


@dataclass(frozen=True)
class Ground:
    """What claims are judged on: the evidence of one profile.

    ``values`` is None where it has all that its runs can give.
    """

    planned: Planned
    grounds: Grounds
    values: Values | None
    rows: Mapping[str, tuple[Row, ...]]  # those that count, by scenario, in the order of repetitions

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.planned.profile

    @property
    def specs(self) -> frozenset[str]:
        """The digests of the runs that are there."""
        return frozenset(row.spec for rows in self.rows.values() for row in rows)

    def lacks(self, run: Run, selection: Selection) -> bool:
        """Whether it does not have a value of a run; of metrics with several points in a run it keeps none."""
        if self.values is None or METRICS[selection.metric].over:
            return False
        return key_of(run, selection) not in self.values.computed

    def spec(self, scenario: str, repetition: int) -> str:
        """The digest of a run of the profile, as rows have it."""
        run = self.planned.run(scenario, repetition)
        assert run is not None
        return run.run_id[:SPEC_DIGITS]


def ground_of(folder: Path, planned: Planned, rows: Iterable[Row], left_out: Counter[str]) -> Ground:
    """The ground that rows of a study make, all of which count; values that do not are named in ``left_out``."""
    counted: dict[str, list[Row]] = {}
    for row in rows:
        counted.setdefault(row.scenario, []).append(row)
    kept = {name: tuple(sorted(of, key=lambda row: row.repetition)) for name, of in counted.items()}
    values = _values(planned, kept, left_out)
    return Ground(planned, Grounds(planned.study, EvidenceDataset(folder, values)), values, kept)


def fault_of(row: Row, place: Place, planned: Planned | None, members: Mapping[str, object]) -> str | None:
    """Why a row does not count, as part of a sentence about several."""
    if row.made not in members:
        return f"runs of a combination ({row.made}) that the epoch does not list"
    if planned is None:
        return f"runs of stack {place.stack} and profile {place.profile}, which the study does not have"
    if fault := planned.fault(row):
        return f"runs {fault}"
    if planned.scenarios[row.scenario].experiment != place.experiment:
        return f"runs that lie with experiment {place.experiment}, and are of another"
    return None


def _values(planned: Planned, rows: Mapping[str, tuple[Row, ...]], left_out: Counter[str]) -> Values:
    computed: dict[Hashable, float | str] = {}
    runs = []
    for scenario in planned.scenarios.values():
        for row in rows.get(scenario.name, ()):
            run = _run(planned, row)
            runs.append(run)
            computed.update(_computed(run, row, left_out))
        if scenario.name not in rows:
            runs.append(_missing(planned, scenario.name))
    return Values(tuple(runs), computed)


def _run(planned: Planned, row: Row) -> Run:
    of = planned.scenarios[row.scenario]
    status = "ok" if row.measured else "invalid"
    fixed = (row.spec, of.experiment, of.name, row.repetition, planned.stack, status, row.reason)
    return Run(*fixed, factors=of.point.factors, measured=row.measured)


def _missing(planned: Planned, scenario: str) -> Run:
    of = planned.scenarios[scenario]
    fixed = (f"missing {scenario}", of.experiment, of.name, 1, planned.stack)
    return Run(*fixed, "missing", "not in the evidence", factors=of.point.factors)


def _computed(run: Run, row: Row, left_out: Counter[str]) -> Iterator[tuple[Hashable, float | str]]:
    """The row's values; one of a metric that is not what it was is none, and is named."""
    for name, value in row.values.items():
        key = ValueKey.read(name)
        what = key_of(run, key.selection(run.experiment))
        if key.metric not in METRICS:
            left_out[f"values of metric {key.metric}, which there is not"] += 1
        elif key.definition == definition_digest(METRICS[key.metric]):
            yield what, value
        else:
            left_out[f"values of metric {key.metric} by another definition ({key.definition})"] += 1
