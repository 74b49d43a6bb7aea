# SPDX-License-Identifier: Apache-2.0
"""Estimates of a metric over selected runs.

Owns the selection of runs by factors, and three rules: scenarios are strata, runs are replicates, and byte-identical
runs count once. Judges nothing.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from longfat.dataset.load import Dataset, Run
from longfat.metrics.data import NoValue, OutOfBounds, Point, RunData
from longfat.metrics.moderation import prior_of
from longfat.metrics.orders import Median
from longfat.metrics.registry import METRICS
from longfat.metrics.statistics import FEW_EQUAL, TOGETHER, Estimate, Prior, stratified
from longfat.plan.model import PlannedRun
from longfat.spec.runspec import Scalar

Value = TypeVar("Value")
AnyRun = TypeVar("AnyRun", Run, PlannedRun)
LEAST_RUNS = 2  # of a scenario: a single run shows no variation


RELATIONS: dict[str, Callable[[Scalar, Scalar], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Condition:
    """A factor compared with values in base units; with ``=`` one of several values suffices.

    ``text`` is the condition as the study's author wrote it.
    """

    relation: str
    values: tuple[Scalar, ...]
    text: str = ""

    def holds(self, value: Scalar | None) -> bool:
        """Return whether the factor's value meets the condition; a run without the factor does not."""
        if value is None:
            return False
        if self.relation == "=":
            return value in self.values
        try:
            return RELATIONS[self.relation](value, self.values[0])
        except TypeError:
            return False


@dataclass(frozen=True)
class Selection:
    """A metric with its parameters (microseconds, bytes, bit/s) over the runs that meet all conditions."""

    metric: str
    experiment: str
    where: tuple[tuple[str, Condition], ...] = ()
    flow: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    added: tuple[tuple[str, Condition], ...] = ()  # the part of ``where`` that narrowed it

    def narrowed(self, factor: str, value: Scalar) -> Selection:
        """Return the selection with one more factor fixed at a value."""
        held = (factor, Condition("=", (value,)))
        return dataclasses.replace(self, where=(*self.where, held), added=(*self.added, held))

    def chosen(self, dataset: Dataset) -> list[Run]:
        """Return the lock entries that it selects, whatever their status."""
        return self.among(dataset.runs_of.get(self.experiment, ()))

    def among(self, runs: Iterable[AnyRun]) -> list[AnyRun]:
        """Return the runs that it selects."""
        found = [run for run in runs if run.experiment == self.experiment]
        for name, condition in self.where:
            found = [run for run in found if condition.holds(run.factors.get(name))]
        return found


@dataclass(frozen=True)
class Repetitions(Generic[Value]):
    """The value of each complete repetition, and the reasons why other planned repetitions are incomplete.

    ``observed`` identifies the measurements of a repetition: equal measurements are one observation.
    """

    values: Mapping[int, Value]
    observed: Mapping[int, Hashable]
    planned: int
    faults: tuple[str, ...] = ()

    @property
    def distinct(self) -> dict[int, Value]:
        """The value of each distinct observation, by its first repetition."""
        firsts: dict[Hashable, int] = {}
        for repetition in sorted(self.values):
            firsts.setdefault(self.observed[repetition], repetition)
        return {repetition: self.values[repetition] for repetition in firsts.values()}

    @property
    def repeats(self) -> int:
        """The number of complete repetitions that are byte-identical to an earlier one."""
        return len(self.values) - len(self.distinct)

    def least(self, count: int) -> None:
        """Raise NoValue with the reasons if there are fewer than ``count`` observations."""
        if len(self.distinct) < count:
            counted = _counted(self.faults)
            complete = f"{len(self.values)} of {self.planned} repetitions are complete"
            complete += f", {self.repeats} of them byte-identical to another" if self.repeats else ""
            raise NoValue(f"{complete}, at least {count} are needed" + (f": {counted}" if counted else ""))


@dataclass(frozen=True)
class Pool:
    """Common properties of runs in a dataset: random numbers within a block, and variances among sister scenarios.

    ``groups`` maps an experiment to its partner: their runs of one repetition have the same seed
    (``longfat.plan.resolve.repeat``). ``fixed`` lists, by experiment, the factors of scenarios in which the seed has no
    effect, so that one run suffices.
    """

    dataset: Dataset
    groups: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Sequence[Mapping[str, Scalar]]] = field(default_factory=dict)

    def draws(self, run: Run) -> bool:
        """Return whether the seed has an effect in the run."""
        return run.factors not in self.fixed.get(run.experiment, ())

    def block(self, run: Run) -> tuple[str, int]:
        """Return the group and repetition that share the run's random numbers."""
        return self.groups.get(run.experiment, run.experiment), run.repetition

    def prior(self, selection: Selection) -> Prior:
        """Return the prior of the metric's variance from all scenarios of the experiment."""
        what = (selection.experiment, selection.metric, selection.flow, *sorted(selection.parameters.items()))
        if what not in self._priors:
            everything = dataclasses.replace(selection, where=(), added=())
            runs = everything.chosen(self.dataset)
            rows = _by_scenario(self.dataset, everything, runs)
            self._priors[what] = prior_of([{one.repetition: v for one, v in row.distinct} for row in rows.values()])
        return self._priors[what]

    @cached_property
    def _priors(self) -> dict[Hashable, Prior]:
        return {}


@dataclass(frozen=True)
class _Row:
    """The runs of one scenario that have a value, and the faults of the others."""

    values: list[tuple[Run, float]]
    faults: list[str]

    @property
    def distinct(self) -> list[tuple[Run, float]]:
        """The first run of each group of byte-identical runs."""
        firsts: dict[Hashable, tuple[Run, float]] = {}
        for run, value in sorted(self.values, key=lambda pair: pair[0].repetition):
            firsts.setdefault(run.measured or run.run_id, (run, value))
        return list(firsts.values())

    def enough(self, least: int, pool: Pool) -> bool:
        """Return whether the runs suffice; a single one does if all runs are equal or the seed has no effect."""
        if len(self.distinct) == 1:
            return least <= 1 or len(self.values) > 1 or not pool.draws(self.values[0][0])
        return len(self.distinct) >= least


def _by_scenario(dataset: Dataset, selection: Selection, runs: Iterable[Run]) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for run in runs:
        row = rows.setdefault(run.scenario, _Row([], []))
        try:
            row.values.append((run, metric_of_run(dataset, run, selection)))
        except NoValue as error:
            row.faults.append(str(error))
    return rows


def measure(dataset: Dataset, selection: Selection, least: int = LEAST_RUNS, pool: Pool | None = None) -> Estimate:
    """Return the mean over scenarios of the metric's mean over the runs of each, in the metric's unit.

    Raises NoValue if a scenario has fewer than ``least`` different runs, unless it has no randomness.
    """
    metric = METRICS[selection.metric]
    prior = pool.prior(selection) if pool else Prior()
    pool = pool or Pool(dataset)
    rows = _measured(dataset, selection, least, pool)
    values: dict[Hashable, dict[Hashable, tuple[Hashable, float]]] = {
        scenario: {run.measured or run.run_id: (pool.block(run), value) for run, value in row.distinct}
        for scenario, row in rows.items()
    }
    return stratified(values, prior, metric.bounds, _repeats(rows), _between(rows))


def repetitions(dataset: Dataset, selection: Selection, pool: Pool | None = None) -> tuple[float, ...]:
    """Return the mean over scenarios for each repetition that all scenarios have. Raises NoValue like ``measure``."""
    rows = list(_measured(dataset, selection, 1, pool or Pool(dataset)).values())
    found = [{run.repetition: value for run, value in (row.values if len(rows) > 1 else row.distinct)} for row in rows]
    common = set.intersection(*(set(one) for one in found))
    return tuple(math.fsum(one[repetition] for one in found) / len(found) for repetition in sorted(common))


def median(dataset: Dataset, selection: Selection, least: int = LEAST_RUNS, pool: Pool | None = None) -> Median:
    """Return the median of the metric over the chosen runs. Raises NoValue like ``measure``.

    If the runs of a repetition are dependent, each repetition counts once, by the median of its scenarios.
    """
    pool = pool or Pool(dataset)
    rows = _measured(dataset, selection, least, pool)
    values = sorted(value for row in rows.values() for _, value in row.distinct)
    if len(rows) > 1 and pool.prior(selection).together < TOGETHER:
        blocks: dict[int, list[float]] = {}
        for row in rows.values():
            for run, value in row.values:
                blocks.setdefault(run.repetition, []).append(value)
        values = sorted(float(np.median(block)) for block in blocks.values() if len(block) == len(rows)) or values
    counts = [len(row.distinct) for row in rows.values()]
    exact = max(counts) == 1 or (len(set(values)) == 1 and len(values) > FEW_EQUAL)
    return Median(tuple(values), min(counts), _repeats(rows), METRICS[selection.metric].bounds, exact=exact)


def _measured(dataset: Dataset, selection: Selection, least: int, pool: Pool) -> dict[str, _Row]:
    runs = selection.chosen(dataset)
    if not runs:
        raise NoValue(f"the lock has no such run of experiment {selection.experiment!r}")
    rows = _by_scenario(dataset, selection, runs)
    short = [row for row in rows.values() if not row.enough(least, pool)]
    if short:
        row = min(short, key=lambda one: len(one.values))
        planned = len(row.values) + len(row.faults)
        which = f" in {len(short)} of {len(rows)} scenarios" if len(rows) > 1 else ""
        faults = _counted(fault for one in short for fault in one.faults)
        raise NoValue(
            (f"{faults}: " if faults else "")
            + f"{len(row.values)} of {planned} repetitions have a value{which}, at least {least} are needed"
        )
    return rows


def _repeats(rows: Mapping[str, _Row]) -> int:
    return max(len(row.values) - len(row.distinct) for row in rows.values())


def _between(rows: Mapping[str, _Row]) -> float | None:
    """Return the standard deviation between repetitions of the mean over scenarios."""
    found = [{run.repetition: value for run, value in row.values} for row in rows.values()]
    common = set.intersection(*(set(one) for one in found))
    if len(common) < 2 or max(len(row.distinct) for row in rows.values()) < 2:
        return None
    if len(found) == 1:
        values = [value for row in rows.values() for _, value in row.distinct]
    else:
        values = [math.fsum(one[repetition] for one in found) / len(found) for repetition in sorted(common)]
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _counted(faults: Iterable[str]) -> str:
    return ", ".join(f"{text} ({number} x)" for text, number in sorted(Counter(faults).items()))


def valued(dataset: Dataset, selection: Selection) -> Iterator[Run]:
    """Yield the chosen runs that have a value."""
    for run in selection.chosen(dataset):
        with suppress(NoValue):
            _once(dataset, run, selection)
            yield run


def by_repetition(dataset: Dataset, selection: Selection) -> Repetitions[float]:
    """Return the metric in each repetition of the chosen runs, a mean over their scenarios.

    Repetitions with a missing or invalid run are omitted. Raises NoValue if the lock has no such run.
    """
    found = gathered(dataset, selection, lambda run: metric_of_run(dataset, run, selection))
    means = {repetition: sum(values) / len(values) for repetition, values in found.values.items()}
    return Repetitions(means, found.observed, found.planned, found.faults)


def gathered(dataset: Dataset, selection: Selection, of: Callable[[Run], Value]) -> Repetitions[list[Value]]:
    """Return the value of each chosen run, by repetition. Raises NoValue if the lock has no such run."""
    runs = selection.chosen(dataset)
    if not runs:
        raise NoValue(f"the lock has no such run of experiment {selection.experiment!r}")
    faults: list[str] = []
    values: dict[int, list[Value] | None] = {}
    observed: dict[int, set[Hashable]] = {}
    for run in runs:
        # A run without a digest equals no other run.
        observed.setdefault(run.repetition, set()).add((run.scenario, run.measured or run.run_id))
        try:
            value = of(run)
        except NoValue as error:
            faults.append(str(error))
            values[run.repetition] = None
            continue
        known = values.setdefault(run.repetition, [])
        if known is not None:
            known.append(value)
    scenarios = len({run.scenario for run in runs})
    complete = {
        repetition: known for repetition, known in values.items() if known is not None and len(known) == scenarios
    }
    seen = {repetition: frozenset(observed[repetition]) for repetition in complete}
    return Repetitions(complete, seen, len(values), tuple(faults))


def metric_of_run(dataset: Dataset, run: Run, selection: Selection) -> float:
    """Return the metric of one run. Raises NoValue if the run is invalid or lacks the data."""
    value = _once(dataset, run, selection)
    assert isinstance(value, float)
    return value


def points_of_run(dataset: Dataset, run: Run, selection: Selection) -> tuple[Point, ...]:
    """Return the points of a metric with several in a run. Raises NoValue like ``metric_of_run``."""
    points = _once(dataset, run, selection)
    assert isinstance(points, tuple)
    return points


def impossible(dataset: Dataset, selections: Iterable[Selection]) -> dict[str, str]:
    """Return, by run_id, the values of valid runs that lie outside their metrics' bounds, as reasons."""
    for selection in selections:
        for _ in valued(dataset, selection):
            pass
    return {run_id: "; ".join(sorted(reasons)) for run_id, reasons in sorted(dataset.impossible.items())}


def key_of(run: Run, selection: Selection) -> Hashable:
    """Return the key of a run's value in ``Dataset.computed``."""
    return run.experiment, run.run_id, selection.metric, selection.flow, *sorted(selection.parameters.items())


def _once(dataset: Dataset, run: Run, selection: Selection) -> object:
    """Return the value or the points of a metric in one run, computed once. Raises NoValue."""
    what, metric = key_of(run, selection), METRICS[selection.metric]
    if what not in dataset.computed:
        try:
            if run.status != "ok":
                raise NoValue(f"run {run.status}")
            given = RunData(dataset, run), selection.flow, selection.parameters
            dataset.computed[what] = metric.points(*given) if metric.over else significant(metric.of(*given))
        except NoValue as error:
            dataset.computed[what] = str(error)
            if isinstance(error, OutOfBounds):
                dataset.impossible.setdefault(run.run_id, set()).add(str(error))
    value = dataset.computed[what]
    if isinstance(value, str):
        raise NoValue(value)
    return value


def significant(value: float) -> float:
    """Round to nine significant digits: rounding errors must never decide an order."""
    return float(f"{value:.9g}")
