# SPDX-License-Identifier: Apache-2.0
"""Curves over time: outstanding data, throughput or congestion window, a single run to a curve.

Owns the choice of the run that a curve shows and how curves look. The papers' time plots are single runs too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from longfat.analysis import style
from longfat.analysis.draw_parts import FigureData, label_axes, legend, marks, series_order, tick
from longfat.analysis.figure_kinds import TimeSeries
from longfat.dataset.load import Dataset, Run, Series

CURVE_BINS = 1200  # twice as many as a figure has points across: an envelope no eye can tell from the curve
_COLUMNS = {
    ("outstanding", None): ("outstanding_bytes", 1.0),
    ("cwnd", None): ("cwnd_segments", 1.0),
    ("throughput", None): ("throughput_bytes_per_s", 1.0),
    ("throughput", "bytes/s"): ("throughput_bytes_per_s", 1.0),
    ("throughput", "Mb/s"): ("throughput_mbps", 8e-6),
}


def curve_data(dataset: Dataset, spec: TimeSeries) -> FigureData:
    """Time in seconds and the value of every valid repetition, thinned to the curve's envelope."""
    held = list(dict.fromkeys(name for name in (spec.panels, spec.series) if name))
    column, factor = _COLUMNS[spec.what, spec.unit]
    rows: list[tuple[Any, ...]] = []
    runs = [run for run in spec.selection().chosen(dataset) if run.status == "ok" and set(held) <= run.factors.keys()]
    for run in sorted(runs, key=lambda run: ([series_order(run.factors[name]) for name in held], run.repetition)):
        for flow in spec.flows or (spec.flow,):
            thin = envelope(_cut(_series(dataset, run, flow, spec.what), spec), CURVE_BINS)
            fixed = (run.scenario, run.repetition, *(run.factors[name] for name in held), *([flow] if flow else []))
            rows += [
                (*fixed, round(float(t) / 1e6, 6), float(f"{value * factor:.9g}"))
                for t, value in zip(thin.t_us, thin.values, strict=True)
            ]
    flow_column = ("flow",) if spec.flows or spec.flow else ()
    return FigureData(("scenario", "repetition", *held, *flow_column, "t_s", column), tuple(rows))


def draw_curves(figure: Figure, spec: TimeSeries, data: FigureData) -> None:
    """Draw of each curve the lowest repetition among the data's rows."""
    curves = _curves(spec, data)
    panels = list(dict.fromkeys(panel for panel, _ in curves))
    keys = list(dict.fromkeys(key for _, key in curves))
    looks = dict(zip(keys, _colours(keys, spec), strict=True))
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for (panel, key), runs in curves.items():
        t_s, values = zip(*runs[min(runs)], strict=True)
        axes = drawn[panels.index(panel)]
        axes.plot(t_s, values, lw=0.8, color=looks[key], label=_label(key, spec, data))
    for axes, panel in zip(drawn, panels, strict=True):
        axes.set_xlabel(spec.labels.x)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        if spec.panels:
            axes.locator_params(axis="x", nbins=4)
            axes.set_title(f"{spec.panels.replace('_', ' ')} = {tick(panel)}", fontsize=9)
    label_axes(drawn[0], spec.labels)
    marks(list(drawn), spec.paper)
    drawn[0].set_ylim(bottom=0)  # after the marks: from here on the axis no longer follows what is drawn
    legend(figure, _note(curves))


def envelope(series: Series, bins: int) -> Series:
    """First, smallest, largest and last point of each of ``bins`` equal intervals: the curve as it looks."""
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


def _series(dataset: Dataset, run: Run, flow: str | None, what: str) -> Series:
    if what == "cwnd":
        table = dataset.sockets(run.run_id, flow)
        first = table["stream"] == 0
        return Series(*(table[name][first].astype(np.float64) for name in ("t_us", "cwnd_segments")))
    return dataset.throughput(run.run_id, flow) if what == "throughput" else dataset.outstanding(run.run_id, flow)


def _cut(series: Series, spec: TimeSeries) -> Series:
    until = np.inf if spec.until is None else spec.until.value
    inside = (series.t_us >= spec.since.value) & (series.t_us <= until)
    return Series(series.t_us[inside], series.values[inside])


def _curves(spec: TimeSeries, data: FigureData) -> dict[tuple[Any, Any], _Points]:
    """Points of each repetition by panel and by what tells curves apart: a factor's value, a flow, or nothing."""
    places = {name: data.columns.index(name) for name in data.columns}
    apart = spec.series or ("flow" if spec.flows else None)
    curves: dict[tuple[Any, Any], _Points] = {}
    for row in data.rows:
        panel = row[places[spec.panels]] if spec.panels else None
        key = row[places[apart]] if apart else None
        curves.setdefault((panel, key), {}).setdefault(row[1], []).append(row[-2:])
    return curves


def _colours(keys: Sequence[Any], spec: TimeSeries) -> list[str]:
    if spec.flows:
        return style.flow_colours([spec.flows[key] for key in keys])
    if spec.series:
        return [style.look(str(key), place)[0] for place, key in enumerate(keys)]
    return [style.look(spec.algorithm)[0]]


def _label(key: Any, spec: TimeSeries, data: FigureData) -> str:
    if spec.flows:
        return spec.flows[key]
    if spec.series:
        return tick(key)
    return spec.algorithm if spec.panels else str(data.rows[0][0])


def _note(curves: dict[tuple[Any, Any], _Points]) -> str:
    """Which of the repetitions is drawn."""
    drawn = {(min(runs), len(runs)) for runs in curves.values()}
    each = "a single run" if len(curves) == 1 else "each curve a single run"
    if len(drawn) == 1:
        ((lowest, count),) = drawn
        return f"{each}: {'the only one' if count == 1 else f'repetition {lowest}, of {count} that are valid'}"
    most = max(len(runs) for runs in curves.values())
    return f"{each}: the lowest of up to {most} valid repetitions"
