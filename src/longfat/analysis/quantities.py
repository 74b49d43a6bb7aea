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
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from longfat.analysis import link, metrics
from longfat.analysis.metrics import NoValue, Samples
from longfat.analysis.statistics import Summary, summarise
from longfat.dataset.load import Dataset, Run, Series
from longfat.runspec import Scalar

Parameters = Mapping[str, float]
Streams = Mapping[tuple[str, int], Samples]  # by flow and number of the stream
Value = TypeVar("Value")


@dataclass(frozen=True)
class Metric:
    """What a metric needs and gives. ``least`` is the number of repetitions that it may rest on.

    Throughput varies from run to run, so it needs two to have an interval; the papers' time plots are single
    runs, so a reading of one may rest on one. ``flow`` tells whether it can be asked of one flow; if not, it is
    of all flows of a run together.
    """

    unit: str
    meaning: str
    source: Literal["flows", "outstanding", "sockets", "web", "run"]
    least: int
    compute: Callable[..., float]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    flow: bool = True


def _rows(unit: str, meaning: str, least: int, compute: Callable[[Any, Any, Parameters], float], *needs: str) -> Metric:
    """A metric of the rows of ``flows``: of one flow, or of all."""
    return Metric(unit, meaning, "flows", least, compute, needs)


def _web(unit: str, meaning: str, compute: Callable[[Any, Parameters], float], *optional: str) -> Metric:
    """A metric of the rows of ``web``: of all web traffic of a run, whose many users make one run enough."""
    return Metric(unit, meaning, "web", 1, compute, optional=optional, flow=False)


def _series(
    unit: str, meaning: str, compute: Callable[[Series, float, Parameters], float], *needs: str, **more: Any
) -> Metric:
    return Metric(unit, meaning, "outstanding", 1, compute, needs, **more)


def _socket(unit: str, meaning: str, compute: Callable[[Samples, Parameters], float], *optional: str) -> Metric:
    """A metric of the samples of one flow's only stream."""
    return Metric(unit, meaning, "sockets", 1, lambda streams, p: compute(_only(streams), p), optional=optional)


def _only(streams: Streams) -> Samples:
    flows = _by_flow(streams)
    if len(flows) > 1:
        raise NoValue(f"the samples are of {len(flows)} flows; name one of {', '.join(flows)}")
    return next(iter(flows.values()))


def _by_flow(streams: Streams) -> dict[str, Samples]:
    """The samples of each flow's only stream."""
    for flow, count in Counter(flow for flow, _ in streams).items():
        if count > 1:
            raise NoValue(f"flow {flow!r} has {count} streams, each with a congestion window of its own")
    return {flow: samples for (flow, _), samples in streams.items()}


def _bend(series: Series, rtt_us: float, given: Parameters) -> tuple[float, float, float]:
    highest = given.get("highest", float("inf"))
    return metrics.bend(series, rtt_us, given["since"], given["until"], highest)


METRICS: dict[str, Metric] = {
    "goodput": _rows("Mb/s", "goodput", 2, lambda rows, flow, p: metrics.goodput_mbps(rows, flow)),
    "share": _rows("%", "share of the goodput", 2, lambda rows, flow, p: metrics.share_percent(rows, flow), "flow"),
    "reaches": _rows(
        "%",
        "runs at or above the level",
        2,
        lambda rows, flow, p: metrics.reaches_percent(rows, p["level"], flow),
        "level",
    ),
    "retransmissions": _rows(
        "segments", "retransmissions", 1, lambda rows, flow, p: metrics.retransmissions(rows, flow)
    ),
    "transfers": Metric(
        "transfers",
        "complete transfers",
        "flows",
        1,
        lambda rows, flow, p: metrics.transfers(rows, flow, p.get("within")),
        optional=("within",),
    ),
    "carried": _rows("GB", "data received", 1, lambda rows, flow, p: metrics.carried_gigabytes(rows, flow)),
    "web_bytes": _web(
        "GB", "content that web users took in", lambda rows, p: metrics.web_gigabytes(rows, p.get("within")), "within"
    ),
    "web_rate": _web("Mb/s", "content that web users took in per second", lambda rows, p: metrics.web_mbps(rows)),
    "web_errors": _web("requests", "requests of web users that failed", lambda rows, p: metrics.web_errors(rows)),
    "points": _series(
        "points",
        "points in the plot of outstanding data",
        lambda s, rtt, p: metrics.points(s, p.get("since"), p.get("until")),
        optional=("since", "until"),
    ),
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
    "cuts": _socket(
        "cuts",
        "cuts of the congestion window",
        lambda samples, p: metrics.cuts(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "streams_cut": Metric(
        "streams",
        "streams whose congestion window was cut",
        "sockets",
        1,
        lambda streams, p: metrics.streams_cut(list(streams.values()), p.get("since"), p.get("until")),
        optional=("since", "until"),
    ),
    "cut_spacing": _socket(
        "%",
        "longest over shortest interval between cuts",
        lambda samples, p: metrics.cut_spacing_percent(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "after_first_cut": _socket(
        "segments",
        "smallest congestion window after the first cut",
        lambda samples, p: metrics.after_first_cut_segments(samples),
    ),
    "first_recovery": _socket(
        "s",
        "time from the first cut back to the window before it",
        lambda samples, p: metrics.first_recovery_s(samples),
    ),
    "window_at": Metric(
        "segments",
        "congestion window",
        "sockets",
        1,
        lambda streams, p: metrics.window_at_segments(_only(streams), p["at"]),
        required=("at",),
    ),
    "lead_changes": Metric(
        "changes",
        "changes of the lead",
        "sockets",
        1,
        lambda streams, p: metrics.lead_changes(_by_flow(streams), p["interval"]),
        required=("interval",),
        flow=False,
    ),
}
METRICS |= {
    "window_growth": _socket(
        "segments/s",
        "growth of the congestion window",
        lambda samples, p: link.window_growth(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    "cut_interval": _socket(
        "s",
        "time from one cut of the congestion window to the next",
        lambda samples, p: link.cut_interval_s(samples, p.get("since"), p.get("until")),
        *("since", "until"),
    ),
    **{
        name: Metric(m.unit, m.meaning, "run", m.least, m.compute, m.required, m.optional, m.flow)
        for name, m in link.LINK_METRICS.items()
    },
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
    """The metric of one run. Raises NoValue when the run is not valid or its data cannot give it."""
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
