# SPDX-License-Identifier: Apache-2.0
"""The evidence of one profile as the engine reads it: a dataset with values and no tables.

Owns the reasons for which rows and values do not count.
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
from longfat.evidence.rows import Row, ValueKey
from longfat.evidence.store import Place
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.definitions import definition_digest
from longfat.metrics.quantities import key_of
from longfat.relations.evaluate import Grounds


@dataclass(frozen=True)
class Values:
    """Runs and their values, by the keys of the engine."""

    runs: tuple[Run, ...] = ()
    computed: Mapping[Hashable, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class EvidenceDataset(Dataset):
    """A dataset without tables: only its values can be read."""

    values: Values

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs that count, and a missing run for each scenario without any."""
        return self.values.runs

    @cached_property
    def computed(self) -> dict[Hashable, object]:
        """The values."""
        return {**self.values.computed}

    def _read(self, table: str, **options: object) -> NoReturn:
        raise NoValue("the evidence does not have this value: it was added before a claim or figure asked for it")


@dataclass(frozen=True)
class Ground:
    """The evidence of one profile, on which claims are judged; ``rows`` are those that count, by scenario."""

    planned: Planned
    grounds: Grounds
    rows: Mapping[str, tuple[Row, ...]]

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.planned.profile


def ground_of(folder: Path, planned: Planned, rows: Iterable[Row], left_out: Counter[str]) -> Ground:
    """Return the ground of rows that count; values that do not count are counted in ``left_out`` by reason."""
    counted: dict[str, list[Row]] = {}
    for row in rows:
        counted.setdefault(row.scenario, []).append(row)
    kept = {name: tuple(sorted(of, key=lambda row: row.repetition)) for name, of in counted.items()}
    values = _values(planned, kept, left_out)
    return Ground(planned, Grounds(planned.study, EvidenceDataset(folder, values)), kept)


def fault_of(row: Row, place: Place, planned: Planned | None, members: Mapping[str, object]) -> str | None:
    """Return the reason why a row does not count, in the plural; None if it counts."""
    if row.made not in members:
        return f"runs of a combination ({row.made}) that the baseline does not list"
    if planned is None:
        return f"runs of stack {place.stack} and profile {place.profile}, which the study does not have"
    if fault := planned.fault(row):
        return f"runs {fault}"
    if planned.scenarios[row.scenario].experiment != place.experiment:
        return f"runs in the file of experiment {place.experiment} that belong to another"
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
    """Yield the row's values, except values of a metric that is gone or has another definition now."""
    for name, value in row.values.items():
        key = ValueKey.read(name)
        what = key_of(run, key.selection(run.experiment))
        if key.metric not in METRICS:
            left_out[f"values of metric {key.metric}, which does not exist"] += 1
        elif key.definition == definition_digest(METRICS[key.metric]):
            yield what, value
        else:
            left_out[f"values of metric {key.metric} by another definition ({key.definition})"] += 1
