# SPDX-License-Identifier: Apache-2.0
"""Curves over time: outstanding data, rates or windows. Each curve is a single run."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure as Canvas
from pydantic import Field

from longfat.dataset.load import Dataset, Run, Series
from longfat.figures import style
from longfat.figures.base import (
    Figure,
    RunsText,
    Sources,
    among,
    distinct,
    factor_findings,
    selected,
    selection_findings,
)
from longfat.figures.parts import (
    RUN_ID_DIGITS,
    FigureData,
    Labels,
    label_axes,
    legend,
    panel_width,
    series_order,
    tick,
    wrapped,
)
from longfat.figures.published import Published, draw_published, published_findings
from longfat.metrics.data import Array, NoValue, RunData, Span
from longfat.metrics.quantities import Selection
from longfat.metrics.together import rates_mbps
from longfat.relations.bind import experiment_named, points_of
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.study import Study, SweptExperiment

CURVE_BINS = 1200  # twice the points across a figure, so that the envelope looks like the curve
_COLUMNS = {
    "outstanding": ("outstanding_bytes", 1.0, "outstanding data (bytes)"),
    "cwnd": ("cwnd_segments", 1.0, "congestion window (segments)"),
    "acknowledged_rate": ("acknowledged_mbps", 1.0, "acknowledged rate (Mb/s)"),
    "srtt": ("srtt_ms", 1e-3, "smoothed RTT (ms)"),
    "queue": ("backlog_packets", 1.0, "bottleneck queue (packets)"),
    "rtt": ("rtt_ms", 1e-3, "RTT (ms)"),
    "fairness": ("jain", 1.0, "Jain's index of the flows' rates"),
    "throughput": ("throughput_bytes_per_s", 1.0, "throughput (bytes/s)"),
}
"""For each value of ``what``: the column of the data, the factor for its values, and the axis label."""

# A rate is an average over time: a slanted line would hide a pause.
_STEPS = {"throughput": "steps-pre", "acknowledged_rate": "steps-mid", "fairness": "steps-mid"}
_WINDOWS = {"cwnd": "congestion window", "ssthresh": "ssthresh", "dwnd": "delay window"}
_UNSET = 2**31 - 1  # ssthresh before the first cut (TCP_INFINITE_SSTHRESH, linux/tcp.h)
_SECOND_US = 1e6


class TimeSeries(Figure):
    """Outstanding data, rates or windows over time: a flow, several of a run, or a curve for each value.

    Outstanding data and throughput come from captures, RTTs from pings, the queue from the slowest port, all other
    quantities from samples of the sending sockets. For a flow with several connections, the window belongs to the
    first, and the acknowledged rate is the sum of all. For UDP traffic, the rate is the rate of received packets.
    Fairness is among all flows of a run, while all of them send.
    """

    artifact: f.Name = Field(alias="timeseries")
    runs: RunsText = Field(description="the runs, and the flow: `slow-start, standard, flow=stream1`")
    what: Literal["outstanding", "throughput", "cwnd", "acknowledged_rate", "rtt", "srtt", "queue", "fairness"] = Field(
        "outstanding", description="the quantity over time"
    )
    also: tuple[Literal["ssthresh", "dwnd"], ...] = Field((), description="further curves next to cwnd")
    interval: f.Interval | None = Field(
        None, description="averaging time of the acknowledged rate and of fairness (default 1 s)"
    )
    series: f.FactorName | None = Field(None, description="a curve for each value of this factor")
    panels: f.FactorName | None = Field(None, description="axes for each value of this factor")
    flows: dict[f.Name, f.Text] = Field({}, description="several flows, with their names in the legend")
    algorithm: f.Name = Field("standard", description="the algorithm with the colour of a single curve")
    until: f.Delay | None = None
    published: tuple[Published, ...] = Field((), description="published series over time in seconds")
    labels: Labels | None = Field(None, description="default: time, and the quantity with its unit")

    def faults(self) -> Iterator[Finding]:
        """Yield forbidden combinations of keys."""
        if self.interval and self.what not in ("acknowledged_rate", "fairness"):
            yield Finding(("interval",), "needs what: acknowledged_rate or fairness")
        if self.also and (self.what != "cwnd" or self.series or self.flows):
            yield Finding(("also",), "needs what: cwnd, without series and flows")
        if self.flows and self.series:
            yield Finding(("flows",), "cannot be combined with series")
        if self.published and self.panels:
            yield Finding(("published",), "cannot be combined with panels")

    @property
    def captured(self) -> bool:
        """Whether the quantity comes from captures."""
        return self.what in ("outstanding", "throughput")

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names."""
        found = list(selection_findings(self.runs, "runs", study))
        yield from found
        if not found:
            selection = selected(self.runs, study)
            yield from self._of_experiment(selection, study)

    def _of_experiment(self, selection: Selection, study: Study) -> Iterator[Finding]:
        experiment = experiment_named(selection.experiment, study)
        found: list[Finding] = list(published_findings(self.published))
        for key in ("series", "panels"):
            if name := getattr(self, key):
                found += factor_findings(name, (key,), experiment)
        flows = (*experiment.flows, *(experiment.names("udp") if self.what == "acknowledged_rate" else ()))
        found += among("flow", self.flows, ("flows",), flows)
        found += distinct((("flows", key), name) for key, name in self.flows.items())
        if selection.flow and self.flows:
            found.append(Finding(("runs",), "names a flow, which cannot be combined with flows"))
        if not found:
            found += self._source_findings(selection, experiment)
            found += _ambiguous(self, selection, study)
        yield from found

    def _source_findings(self, selection: Selection, experiment: SweptExperiment) -> Iterator[Finding]:
        """Yield flows without the probe of the quantity, and a finding if a flow must be named."""
        probes = experiment.points[0].experiment.probes
        if self.what == "rtt":
            if probes.ping is None:
                yield Finding(("what",), f"experiment {experiment.id!r} has no pings", "probes: {ping: 100 ms}")
            return
        if self.what == "fairness" and len(experiment.flows) < 2:
            yield Finding(("what",), f"experiment {experiment.id!r} has a single flow")
        if self.what in ("queue", "fairness"):
            return
        flows, kind = list(experiment.flows), "flows"
        if self.captured:
            flows, kind = (
                [one for one in flows if one in probes.capture and "sender" in probes.capture_at],
                "captured flows",
            )
            yield from among("captured flow", [selection.flow] if selection.flow else [], ("runs",), flows, below=False)
            yield from among("captured flow", self.flows, ("flows",), flows)
        if not selection.flow and not self.flows and len(flows) != 1:
            yield Finding(("runs",), f"must name a flow; {kind} of the experiment: {', '.join(flows) or 'none'}")

    @property
    def broad(self) -> bool:
        """Whether a paper shows it across all columns."""
        return self.panels is not None

    def experiments(self, study: Study) -> tuple[str, ...]:
        """Return the experiment whose runs it shows."""
        return (selected(self.runs, study).experiment,)

    def data(self, sources: Sources) -> FigureData:
        """Compute time in seconds and value for every valid repetition, thinned to the envelope of the curve."""
        dataset, selection = sources.grounds.dataset, selected(self.runs, sources.study)
        held = list(dict.fromkeys(name for name in (self.panels, self.series) if name))
        column, factor, _ = _COLUMNS[self.what]
        rows: list[tuple[Any, ...]] = []
        runs = [run for run in selection.chosen(dataset) if run.status == "ok" and set(held) <= run.factors.keys()]
        drawn = (self.what, *self.also)
        for run in sorted(runs, key=lambda run: ([series_order(run.factors[name]) for name in held], run.repetition)):
            for flow, what in itertools.product(self.flows or (selection.flow,), drawn):
                thin = envelope(_cut(_series(dataset, run, flow, what, self), self), CURVE_BINS)
                fixed = (
                    run.scenario,
                    run.repetition,
                    run.run_id[:RUN_ID_DIGITS],
                    *(run.factors[name] for name in held),
                    *([flow] if flow else []),
                )
                rows += [
                    (*fixed, *([what] if self.also else []), round(float(t) / 1e6, 6), float(f"{value * factor:.9g}"))
                    for t, value in zip(thin.t_us, thin.values, strict=True)
                ]
        flow_column = ("flow",) if self.flows or selection.flow else ()
        values = ("window", "t_s", "segments") if self.also else ("t_s", column)
        return FigureData(("scenario", "repetition", "run_id", *held, *flow_column, *values), tuple(rows))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw the repetition with the lowest number for each curve."""
        curves = _curves(self, data)
        panels = list(dict.fromkeys(panel for panel, _ in curves))
        keys = list(dict.fromkeys(key for _, key in curves))
        looks = dict(zip(keys, _colours(keys, self), strict=True))
        drawn = canvas.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for (panel, key), runs in curves.items():
            t_s, values = zip(*runs[min(runs)], strict=True)
            axes = drawn[panels.index(panel)]
            axes.plot(
                t_s, values, lw=0.8, color=looks[key], label=_label(key, self, data), drawstyle=_STEPS.get(self.what)
            )
        for axes, panel in zip(drawn, panels, strict=True):
            label_axes(axes, self.axes_labels)
            axes.yaxis.set_major_formatter(
                lambda value, _: f"{value / 1e6:g} M" if abs(value) >= 1e6 else f"{value:,.10g}"
            )
            if self.panels:
                axes.locator_params(axis="x", nbins=4)
                heading = panel if isinstance(panel, str) else f"{self.panels.replace('_', ' ')} = {tick(panel)}"
                axes.set_title(wrapped(heading, 0.8 * panel_width(axes), 9), fontsize=9)
            axes.label_outer()
        draw_published(drawn[0], self.published, {str(key): colour for key, colour in looks.items()})
        self.mark(list(drawn))
        drawn[0].set_ylim(bottom=0)  # after the marks, because the axis then no longer follows the data
        legend(canvas, _note(curves))

    @property
    def axes_labels(self) -> Labels:
        """The labels of both axes."""
        return self.labels or Labels(x="time (s)", y=_COLUMNS[self.what][2])


def _ambiguous(spec: TimeSeries, selection: Selection, study: Study) -> Iterator[Finding]:
    """Yield a finding if a curve would mix several points of the sweep."""
    held = [name for name in (spec.panels, spec.series) if name]
    experiment = experiment_named(selection.experiment, study)
    points = [experiment.points[place] for place in points_of(selection, study)]
    most = max(Counter(tuple(point.factors[name] for name in held) for point in points).values())
    if most > 1:
        message = f"{most} points of the sweep would be one curve"
        yield Finding(("runs",), message, "narrow them down with a condition, series or panels")


def envelope(series: Series, bins: int) -> Series:
    """Keep the first, smallest, largest and last point of each of ``bins`` equal intervals."""
    count = len(series.t_us)
    if count <= 4 * bins:
        return series
    edges = np.linspace(series.t_us[0], series.t_us[-1], bins + 1)[1:-1]
    starts = np.unique(np.concatenate(([0], np.searchsorted(series.t_us, edges))))
    ends = np.append(starts[1:], count)
    kept: set[int] = set()
    for start, end in zip(starts, ends, strict=True):
        if end > start:
            part = series.values[start:end]
            kept |= {int(start), int(start + part.argmin()), int(start + part.argmax()), int(end - 1)}
    chosen = np.array(sorted(kept))
    return Series(series.t_us[chosen], series.values[chosen])


_Points = dict[int, list[tuple[float, float]]]  # by repetition


def _series(dataset: Dataset, run: Run, flow: str | None, what: str, spec: TimeSeries) -> Series:
    if what == "acknowledged_rate":
        return _acknowledged(dataset, run, flow, spec.interval.value if spec.interval else _SECOND_US)
    if what == "rtt":
        return dataset.pings(run.run_id)
    if what == "fairness":
        return _fairness(RunData(dataset, run), spec.interval.value if spec.interval else _SECOND_US)
    if spec.captured:
        return dataset.throughput(run.run_id, flow) if what == "throughput" else dataset.outstanding(run.run_id, flow)
    if what == "queue":
        return _queue(dataset, run)
    table = dataset.sockets(run.run_id, flow)
    times, values = (
        table[name].astype(np.float64) for name in ("t_us", "srtt_us" if what == "srtt" else f"{what}_segments")
    )
    known = (table["stream"] == 0) & ~np.isnan(values) & ((what != "ssthresh") | (values < _UNSET))
    known &= (what != "srtt") | (values > 0)
    rows = dataset.flows.get(run.run_id, ())
    ends = [row["end_us"] for row in rows if flow in (None, row["flow"]) and row["end_us"]]
    known &= times <= max(ends, default=math.inf)  # one further sample is of the close, after the buffer is empty
    return Series(times[known], values[known])


def _queue(dataset: Dataset, run: Run) -> Series:
    """Return the packets in the queue of the slowest port; of several such ports, the fullest."""
    ports = dataset.columns_of("queues", run.run_id)
    rates = ports["rate_bps"].astype(np.float64)
    slowest = (rates > 0) & (rates == np.min(rates, where=rates > 0, initial=np.inf))
    found = [
        Series(ports["t_us"][own].astype(np.float64), ports["backlog_packets"][own].astype(np.float64))
        for name in dict.fromkeys(ports["interface"][slowest])
        if (own := slowest & (ports["interface"] == name)).any()
    ]
    return max(found, key=lambda series: series.values.max(), default=Series(np.zeros(0), np.zeros(0)))


def _fairness(data: RunData, interval_us: float) -> Series:
    """Return Jain's index of the flows' acknowledged rates in each interval, at the middle of the interval."""
    streams = data.streams()
    try:
        span = data.together()
        each = rates_mbps(list(streams.values()), span, interval_us)
    except NoValue:  # a flow did not send, or all together less than an interval
        return Series(np.zeros(0), np.zeros(0))
    owners = np.array([flow for flow, _ in streams])
    rates: Array = np.array([each[:, owners == flow].sum(axis=1) for flow in dict.fromkeys(owners)]).T
    busy = rates.any(axis=1)
    middles: Array = span.start_us + interval_us * (np.arange(len(rates), dtype=np.float64) + 0.5)
    return Series(middles[busy], jain(rates[busy]))


def jain(rates: Array) -> Array:
    """Return Jain's index of each row of rates, (sum x)^2 / (n sum x^2); no row is all zero."""
    index: Array = rates.sum(axis=1) ** 2 / (rates.shape[1] * (rates**2).sum(axis=1))
    return index


def _acknowledged(dataset: Dataset, run: Run, flow: str | None, interval_us: float) -> Series:
    """Return the rate in Mb/s of a flow, or of UDP traffic, in each interval, at the middle of the interval."""
    rows = [row for row in dataset.flows.get(run.run_id, ()) if flow in (None, row["flow"])]
    if not rows:
        return _arrived(dataset.datagrams(run.run_id, str(flow)), interval_us)
    (row,) = rows
    connections = list(RunData(dataset, run).streams(flow).values())
    span = Span(row["start_us"], row["end_us"])
    try:
        rates: Array = rates_mbps(connections, span, interval_us).sum(axis=1)
    except NoValue:  # shorter than an interval
        rates = np.zeros(0)
    middles: Array = span.start_us + interval_us * (np.arange(len(rates), dtype=np.float64) + 0.5)
    return Series(middles, rates)


def _arrived(sums: Series, interval_us: float) -> Series:
    """Return the rate in Mb/s of UDP traffic in each interval from the start of the run to the last sample."""
    times, values = (np.concatenate(([0.0], column)) for column in (sums.t_us, sums.values))
    edges: Array = interval_us * np.arange(times[-1] // interval_us + 1, dtype=np.float64)
    arrived = np.interp(edges, times, values)
    return Series(edges[:-1] + interval_us / 2, 8 * np.diff(arrived) / interval_us)


def _cut(series: Series, spec: TimeSeries) -> Series:
    inside = series.t_us <= (np.inf if spec.until is None else spec.until.value)
    return Series(series.t_us[inside], series.values[inside])


def _curves(spec: TimeSeries, data: FigureData) -> dict[tuple[Any, Any], _Points]:
    """Return the points of each repetition by panel and key of the curve: a value of a factor, a flow, or a window."""
    places = {name: data.columns.index(name) for name in data.columns}
    key_column = spec.series or ("flow" if spec.flows else "window" if spec.also else None)
    curves: dict[tuple[Any, Any], _Points] = {}
    for row in data.rows:
        panel = row[places[spec.panels]] if spec.panels else None
        key = row[places[key_column]] if key_column else None
        curves.setdefault((panel, key), {}).setdefault(row[1], []).append(row[-2:])
    return curves


def _colours(keys: Sequence[Any], spec: TimeSeries) -> list[str]:
    if spec.flows:
        return style.flow_colours([spec.flows[key] for key in keys])
    if spec.series:
        return [style.look(str(key), place)[0] for place, key in enumerate(keys)]
    if spec.also:
        return style.flow_colours([_WINDOWS[key] for key in keys])
    return [style.look(spec.algorithm)[0]]


def _label(key: Any, spec: TimeSeries, data: FigureData) -> str:
    if spec.flows:
        return spec.flows[key]
    if spec.series:
        return tick(key)
    if spec.also:
        return _WINDOWS[key]
    return spec.algorithm if spec.panels else str(data.rows[0][0])


def _note(curves: dict[tuple[Any, Any], _Points]) -> str:
    """Return the note about the drawn repetition."""
    drawn = {(min(runs), len(runs)) for runs in curves.values()}
    each = "a single run" if len(curves) == 1 else "each curve a single run"
    if len(drawn) == 1:
        ((lowest, count),) = drawn
        return each if count == 1 else f"{each}: repetition {lowest}, of {count} that are valid"
    most = max(len(runs) for runs in curves.values())
    return f"{each}: the lowest of up to {most} valid repetitions"
