# SPDX-License-Identifier: Apache-2.0
"""Quantities: a metric over chosen runs, summarised over repetitions.

Owns the choice of runs by factors, and the rule that the repetition is the unit of replication. Must not judge.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from longfat.analysis.metric_table import METRICS, Parameters, Streams
from longfat.analysis.metrics import NoValue, Samples
from longfat.analysis.statistics import Summary, summarise
from longfat.dataset.load import Dataset, Run
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
    parameters: Parameters = field(default_factory=dict)
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
    """What each complete repetition gave, and why others of the ``planned`` are not complete."""

    values: Mapping[int, Value]
    planned: int
    faults: tuple[str, ...] = ()

    def least(self, count: int) -> None:
        """Raise NoValue with the reasons when fewer than ``count`` are complete."""
        if len(self.values) < count:
            counted = ", ".join(f"{text} ({number} x)" for text, number in sorted(Counter(self.faults).items()))
            complete = f"{len(self.values)} of {self.planned} repetitions are complete"
            raise NoValue(f"{complete}, at least {count} are needed" + (f": {counted}" if counted else ""))


def measure(dataset: Dataset, selection: Selection, least: int | None = None) -> Summary:
    """Summary of the metric over the repetitions of the chosen runs, in the metric's unit.

    Raises NoValue when fewer repetitions are complete than ``least``, by default what the metric needs.
    """
    found = by_repetition(dataset, selection)
    found.least(METRICS[selection.metric].least if least is None else least)
    return summarise(list(found.values.values()))


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
    for run in runs:
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
    return Repetitions(complete, len(values), tuple(faults))


def metric_of_run(dataset: Dataset, run: Run, selection: Selection) -> float:
    """The metric of one run, computed once. Raises NoValue when the run is not valid or its data cannot give it."""
    what = (run.experiment, run.run_id, selection.metric, selection.flow, *sorted(selection.parameters.items()))
    if what not in dataset.computed:
        try:
            dataset.computed[what] = _compute(dataset, run, selection)
        except NoValue as error:
            dataset.computed[what] = str(error)
    value = dataset.computed[what]
    if isinstance(value, str):
        raise NoValue(value)
    return value


def _compute(dataset: Dataset, run: Run, selection: Selection) -> float:
    if run.status != "ok":
        raise NoValue(f"run {run.status}")
    metric = METRICS[selection.metric]
    if metric.source == "run":
        return significant(metric.compute(dataset, run, selection.flow, selection.parameters))
    flows = dataset.flows.get(run.run_id, ())
    if metric.source == "flows":
        return significant(metric.compute(flows, selection.flow, selection.parameters))
    if metric.source == "web":
        return significant(metric.compute(dataset.web.get(run.run_id, ()), selection.parameters))
    if metric.source == "sockets":
        return significant(metric.compute(_streams(dataset, run, selection.flow), selection.parameters))
    series = dataset.outstanding(run.run_id, selection.flow)
    rtts = [row["min_rtt_us"] for row in flows if selection.flow in (None, row["flow"]) and row["min_rtt_us"]]
    if not len(series.t_us) or not rtts:
        raise NoValue("no outstanding data or no RTT was recorded")
    return significant(metric.compute(series, float(min(rtts)), selection.parameters))


def _streams(dataset: Dataset, run: Run, flow: str | None) -> Streams:
    """The samples of each stream of one flow, or of all. Raises NoValue when there are none."""
    table = dataset.sockets(run.run_id, flow)
    found = {}
    for name, stream in sorted(set(zip(table["flow"].tolist(), table["stream"].tolist(), strict=True))):
        own = (table["flow"] == name) & (table["stream"] == stream)
        columns = ("t_us", "ca_state", "cwnd_segments", "ssthresh_segments", "bytes_acked")
        found[name, stream] = Samples(*(table[column][own].astype(np.float64) for column in columns))
    if not found:
        raise NoValue("no socket was sampled")
    return found


def significant(value: float) -> float:
    """The value to nine significant digits: what is left of rounding must never decide an order."""
    return float(f"{value:.9g}")
