# SPDX-License-Identifier: Apache-2.0
"""Quantities: a metric over chosen runs, summarised over repetitions.

Owns the choice of runs by factors, and the rule that the repetition is the unit of replication. Must not judge.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from longfat.dataset.load import Dataset, Run
from longfat.metrics.data import NoValue, RunData
from longfat.metrics.registry import METRICS
from longfat.metrics.statistics import Summary, summarise
from longfat.runspec import Scalar

Value = TypeVar("Value")


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
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
        """Whether the factor's value meets the condition; a run without the factor does not."""
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
    """A metric with its parameters (microseconds, bytes, bits per second) over the runs that meet all conditions."""

    metric: str
    experiment: str
    where: tuple[tuple[str, Condition], ...] = ()
    flow: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    added: tuple[tuple[str, Condition], ...] = ()  # what of ``where`` it was narrowed by

    def narrowed(self, factor: str, value: Scalar) -> Selection:
        """The same with the factor held at one value besides."""
        held = (factor, Condition("=", (value,)))
        return dataclasses.replace(self, where=(*self.where, held), added=(*self.added, held))

    def chosen(self, dataset: Dataset) -> list[Run]:
        """All lock entries that it asks for, whatever their status."""
        return [
            run
            for run in dataset.runs
            if run.experiment == self.experiment
            and all(condition.holds(run.factors.get(name)) for name, condition in self.where)
        ]


@dataclass(frozen=True)
class Repetitions(Generic[Value]):
    """What each complete repetition gave, and why others of the ``planned`` are not complete.

    ``observed`` stands for all that was measured in a complete repetition: those in which it is equal, which nothing
    but their number tells apart, are one observation.
    """

    values: Mapping[int, Value]
    observed: Mapping[int, Hashable]
    planned: int
    faults: tuple[str, ...] = ()

    @property
    def distinct(self) -> dict[int, Value]:
        """What each observation gave, by the first repetition that made it."""
        firsts: dict[Hashable, int] = {}
        for repetition in sorted(self.values):
            firsts.setdefault(self.observed[repetition], repetition)
        return {repetition: self.values[repetition] for repetition in firsts.values()}

    @property
    def repeats(self) -> int:
        """How many complete repetitions are the same to the byte as an earlier one."""
        return len(self.values) - len(self.distinct)

    def least(self, count: int) -> None:
        """Raise NoValue with the reasons when there are fewer than ``count`` observations."""
        if len(self.distinct) < count:
            counted = ", ".join(f"{text} ({number} x)" for text, number in sorted(Counter(self.faults).items()))
            complete = f"{len(self.values)} of {self.planned} repetitions are complete"
            complete += f", of these {self.repeats} the same to the byte as another" if self.repeats else ""
            raise NoValue(f"{complete}, at least {count} are needed" + (f": {counted}" if counted else ""))


def measure(dataset: Dataset, selection: Selection, least: int | None = None) -> Summary:
    """Summary of the metric over the repetitions of the chosen runs, in the metric's unit.

    Raises NoValue when fewer repetitions are complete than ``least``, by default what the metric needs.
    """
    found = by_repetition(dataset, selection)
    found.least(METRICS[selection.metric].least if least is None else least)
    return summarise(list(found.distinct.values()), found.repeats)


def by_repetition(dataset: Dataset, selection: Selection) -> Repetitions[float]:
    """The metric in each repetition of the chosen runs, in the metric's unit.

    Where runs of several scenarios are chosen, the metric is averaged over the scenarios within each
    repetition. A repetition in which a run is missing or not valid is left out as a whole. Raises NoValue when
    the lock has no such run.
    """
    runs = selection.chosen(dataset)
    if not runs:
        raise NoValue(f"the lock has no such run of experiment {selection.experiment!r}")
    faults: list[str] = []
    values: dict[int, list[float] | None] = {}
    observed: dict[int, set[Hashable]] = {}
    for run in runs:
        # A run without a digest is like no other.
        observed.setdefault(run.repetition, set()).add((run.scenario, run.measured or run.run_id))
        try:
            value = metric_of_run(dataset, run, selection)
        except NoValue as error:
            faults.append(str(error))
            values[run.repetition] = None
            continue
        known = values.setdefault(run.repetition, [])
        if known is not None:
            known.append(value)
    scenarios = len({run.scenario for run in runs})
    complete = {
        repetition: sum(known) / len(known)
        for repetition, known in values.items()
        if known is not None and len(known) == scenarios
    }
    seen = {repetition: frozenset(observed[repetition]) for repetition in complete}
    return Repetitions(complete, seen, len(values), tuple(faults))


def metric_of_run(dataset: Dataset, run: Run, selection: Selection) -> float:
    """The metric of one run, computed once. Raises NoValue when the run is not valid or its data cannot give it."""
    what = key_of(run, selection)
    if what not in dataset.computed:
        try:
            dataset.computed[what] = _compute(dataset, run, selection)
        except NoValue as error:
            dataset.computed[what] = str(error)
    value = dataset.computed[what]
    if isinstance(value, str):
        raise NoValue(value)
    return value


def key_of(run: Run, selection: Selection) -> Hashable:
    """What a value of a run goes by in ``Dataset.computed``."""
    return run.experiment, run.run_id, selection.metric, selection.flow, *sorted(selection.parameters.items())


def _compute(dataset: Dataset, run: Run, selection: Selection) -> float:
    if run.status != "ok":
        raise NoValue(f"run {run.status}")
    return significant(METRICS[selection.metric].of(RunData(dataset, run), selection.flow, selection.parameters))


def significant(value: float) -> float:
    """The value to nine significant digits: what is left of rounding must never decide an order."""
    return float(f"{value:.9g}")
