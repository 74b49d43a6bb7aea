# SPDX-License-Identifier: Apache-2.0
"""Quantities: a metric over chosen runs, summarised over repetitions.

Owns the table of metrics that claims and figures may name, the choice of runs by factors, and the rule that
the repetition is the unit of replication. Must not judge.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from longfat.analysis import metrics
from longfat.analysis.metrics import NoValue
from longfat.analysis.statistics import Summary, summarise
from longfat.dataset.load import Dataset, Run, Series
from longfat.runspec import Scalar

Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Metric:
    """What a metric needs and gives. ``least`` is the number of repetitions that it may rest on.

    Throughput varies from run to run, so it needs two to have an interval; the papers' time plots are single
    runs, so a reading of one may rest on one.
    """

    unit: str
    meaning: str
    source: Literal["flows", "outstanding"]
    least: int
    compute: Callable[..., float]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def _series(
    unit: str, meaning: str, compute: Callable[[Series, float, Parameters], float], *needs: str, **more: Any
) -> Metric:
    return Metric(unit, meaning, "outstanding", 1, compute, needs, **more)


def _bend(series: Series, rtt_us: float, given: Parameters) -> tuple[float, float, float]:
    highest = given.get("highest", float("inf"))
    return metrics.bend(series, rtt_us, given["since"], given["until"], highest)


METRICS: dict[str, Metric] = {
    "goodput": Metric("Mb/s", "goodput", "flows", 2, metrics.goodput_mbps, optional=("flow",)),
    "share": Metric("%", "share of the goodput", "flows", 2, metrics.share_percent, required=("flow",)),
    "plateau": _series(
        "bytes",
        "level of outstanding data",
        lambda s, rtt, p: metrics.plateau_bytes(s, p["since"], p["until"]),
        *("since", "until"),
    ),
    "before_drop": _series(
        "bytes",
        "outstanding data before the drop",
        lambda s, rtt, p: metrics.before_drop_bytes(s, p["at"], rtt),
        "at",
    ),
    "after_drop": _series(
        "bytes",
        "outstanding data after the drop",
        lambda s, rtt, p: metrics.after_drop_bytes(s, p["at"], rtt),
        "at",
    ),
    "drop_ratio": _series(
        "",
        "outstanding data after over before the drop",
        lambda s, rtt, p: metrics.drop_ratio(s, p["at"], rtt),
        "at",
    ),
    "slow_start_growth": _series(
        "per RTT", "growth factor in slow start", lambda s, rtt, p: metrics.slow_start_growth(s, rtt)
    ),
    "linear_growth": _series(
        "segments per RTT",
        "slope of outstanding data",
        lambda s, rtt, p: metrics.linear_growth_segments(
            s, rtt, p["since"], p["until"], p["segment"], p.get("lowest", 0), p.get("highest", float("inf"))
        ),
        *("since", "until", "segment"),
        optional=("lowest", "highest"),
    ),
    "linearity": _series(
        "",
        "R^2 of a straight line",
        lambda s, rtt, p: metrics.linearity(s, rtt, p["since"], p["until"]),
        *("since", "until"),
    ),
    "regrowth": _series(
        "% per RTT",
        "relative growth of outstanding data after the drop",
        lambda s, rtt, p: metrics.regrowth_percent(s, rtt, p["at"]),
        "at",
    ),
    "bend_time": _series(
        "s",
        "time of the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[0],
        *("since", "until"),
        optional=("highest",),
    ),
    "bend_level": _series(
        "bytes",
        "outstanding data at the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[1],
        *("since", "until"),
        optional=("highest",),
    ),
    "bend_ratio": _series(
        "",
        "slope after over before the bend",
        lambda s, rtt, p: _bend(s, rtt, p)[2],
        *("since", "until"),
        optional=("highest",),
    ),
}
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
    """A metric with its parameters (microseconds, bytes) over the runs that meet all conditions."""

    metric: str
    experiment: str
    where: tuple[tuple[str, Condition], ...] = ()
    flow: str | None = None
    parameters: Parameters = field(default_factory=dict)

    def narrowed(self, factor: str, value: Scalar) -> Selection:
        """The same with the factor held at one value besides."""
        return dataclasses.replace(self, where=(*self.where, (factor, Condition("=", (value,)))))

    def chosen(self, dataset: Dataset) -> list[Run]:
        """All lock entries that it asks for, whatever their status."""
        return [
            run
            for run in dataset.runs
            if run.experiment == self.experiment
            and all(condition.holds(run.factors.get(name)) for name, condition in self.where)
        ]


def measure(dataset: Dataset, selection: Selection, least: int | None = None) -> Summary:
    """Summary of the metric over the chosen runs, in the metric's unit.

    Where runs of several scenarios are chosen, the metric is averaged over the scenarios within each
    repetition first. A repetition in which a run is missing or not valid is left out as a whole. Raises
    NoValue when fewer repetitions remain than ``least``, by default what the metric needs.
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
    complete = [sum(known) / len(known) for known in values.values() if known is not None and len(known) == scenarios]
    least = METRICS[selection.metric].least if least is None else least
    if len(complete) < least:
        raise NoValue(_shortage(len(complete), len(values), least, faults))
    return summarise(complete)


def metric_of_run(dataset: Dataset, run: Run, selection: Selection) -> float:
    """The metric of one run. Raises NoValue when the run is not valid or its data cannot give it."""
    if run.status != "ok":
        raise NoValue(f"run {run.status}")
    metric = METRICS[selection.metric]
    flows = dataset.flows.get(run.run_id, ())
    if metric.source == "flows":
        return significant(metric.compute(flows, selection.flow))
    series = dataset.outstanding(run.run_id, selection.flow)
    rtts = [row["min_rtt_us"] for row in flows if selection.flow in (None, row["flow"]) and row["min_rtt_us"]]
    if not len(series.t_us) or not rtts:
        raise NoValue("no outstanding data or no RTT was recorded")
    return significant(metric.compute(series, float(min(rtts)), selection.parameters))


def significant(value: float) -> float:
    """The value to nine significant digits: what is left of rounding must never decide an order."""
    return float(f"{value:.9g}")


def _shortage(complete: int, planned: int, least: int, faults: list[str]) -> str:
    counted = ", ".join(f"{text} ({count} x)" for text, count in sorted(Counter(faults).items()))
    why = f": {counted}" if faults else ""
    return f"{complete} of {planned} repetitions are complete, at least {least} are needed{why}"
