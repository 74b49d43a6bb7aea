# SPDX-License-Identifier: Apache-2.0
"""Bars: the mean of a metric for each value of a factor, by series, with spread and n."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from pydantic import Field

from longfat.figures import style
from longfat.figures.base import (
    AxisText,
    Figure,
    Sources,
    TermText,
    among,
    axis,
    axis_findings,
    distinct,
    factor_findings,
    selected,
    selection_findings,
    value_findings,
)
from longfat.figures.parts import (
    FigureData,
    Labels,
    ascending,
    counted,
    even_or_true,
    label_axes,
    labelled,
    legend,
    link_runs,
    name_ticks,
    series_order,
    tick,
)
from longfat.figures.published import WithSources
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, measure, repetitions, significant
from longfat.metrics.statistics import Estimate, percent_gain, total
from longfat.relations.bind import experiment_named
from longfat.relations.nodes import Expression
from longfat.relations.syntax import parse_term
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.study import Study, SweptExperiment
from longfat.study.sweep import base_value

FLOW = "flow"  # instead of a factor: a series for each flow
SUM = "sum"  # series of the sum of stacked flows
FEW = 5  # up to this number of runs, dots replace the deviation
CROWD = 20  # up to this number each x has a label
_NONE = math.nan  # no whisker
HATCHES = ("", "///", "\\\\\\", "xxx", "---")  # distinguish series in grey prints
_ERROR: Any = {"capsize": 2, "error_kw": {"lw": 0.8}}


class Bars(Figure, WithSources):
    """Mean of a metric for each value of a factor, a series for each value of another or for each flow."""

    artifact: f.Name = Field(alias="bars")
    of: TermText
    x: AxisText = Field(description="a factor, with the unit of its axis: `window in MiB`")
    series: f.FactorName | None = Field(None, description="a factor, or `flow`; without it there is one series")
    names: dict[str, f.Text] = Field({}, description="names of flows or of values of the series in the legend")
    stacked: f.Switch = Field(False, description="stack the flows, so that their sum shows")
    style: Literal["bars", "lines"] = Field("bars", description="bars, or points joined by a line for each series")
    over: f.FactorValue | None = Field(None, description="draw the percent gain of the other series over this one")
    highlight: f.FactorValue | None = Field(None, description="the value of x whose bars are highlighted")
    labels: Labels | None = Field(None, description="default: the factor and the metric, with their units")

    @property
    def factor(self) -> str:
        """The factor along x."""
        return axis(self.x)[0]

    @property
    def unit(self) -> str | None:
        """The unit of x, if it has one."""
        return axis(self.x)[1]

    @property
    def metric(self) -> str:
        """The metric's name."""
        return parse_term(self.of).metric

    @property
    def of_one_flow(self) -> bool:
        """Whether its metric names a flow."""
        return any(item.name == FLOW for item in parse_term(self.of).items)

    def faults(self) -> Iterator[Finding]:
        """Yield forbidden combinations of keys."""
        if self.series == FLOW and self.of_one_flow:
            yield Finding(("of",), "is one flow, and series flow draws every flow; leave one out")
        if self.series == self.factor:
            yield Finding(("series",), f"{self.series!r} is already x")
        for key in ("over", "names"):
            if self.series is None and key in self.model_fields_set:
                yield Finding((key,), "needs series")
        if self.stacked and (self.series != FLOW or self.metric != "goodput"):
            yield Finding(("stacked",), "needs series flow and the metric goodput")
        if self.stacked and self.style == "lines":
            yield Finding(("stacked",), "does not go with style lines")
        if self.style != "lines" and (self.published or self.laws):
            yield Finding(("style",), "must be lines with published series or laws")
        if self.stacked and self.over is not None:
            yield Finding(("stacked",), "does not go with over")

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names."""
        found = list(selection_findings(self.of, "of", study))
        yield from found
        if not found:
            yield from self._factors(experiment_named(selected(self.of, study).experiment, study))

    def _factors(self, experiment: SweptExperiment) -> Iterator[Finding]:
        yield from axis_findings(self.x, "x", experiment)
        yield from self.source_findings(experiment.factors)
        yield from distinct((("names", key), name) for key, name in self.names.items())
        if self.highlight is not None:
            yield from value_findings(self.factor, self.highlight, ("highlight",), experiment)
        if self.series == FLOW:
            yield from among("flow", self.names, ("names",), experiment.flows)
            if self.over is not None and self.over not in experiment.flows:
                yield from among("flow", [str(self.over)], ("over",), experiment.flows, below=False)
        elif self.series is not None:
            yield from factor_findings(self.series, ("series",), experiment)
            if self.over is not None:
                yield from value_findings(self.series, self.over, ("over",), experiment)
            values = [str(value) for value in experiment.factors.get(self.series, ())]
            if values:
                yield from among(self.series, self.names, ("names",), values)

    def expressions(self) -> Iterator[Expression]:
        """Yield the metric of its bars."""
        yield parse_term(self.of)

    def data(self, sources: Sources) -> FigureData:
        """Compute mean, standard deviation, n, 95 % interval and the values of the runs for each x and series."""
        dataset, x_factor, study = sources.grounds.dataset, self.factor, sources.study
        selection = selected(self.of, study)
        factors = {name for name in (x_factor, self.series) if name not in (None, FLOW)}
        runs = [run for run in selection.chosen(dataset) if factors <= run.factors.keys()]
        planned = experiment_named(selection.experiment, study).factors.get(x_factor, ())
        order = [value for value in planned if isinstance(value, str)]  # numbers in ascending order
        xs = sorted(
            {run.factors[x_factor] for run in runs}, key=lambda x: (order.index(x) if x in order else -1, ascending(x))
        )
        series: list[tuple[Any, Selection]] = [(None, selection)]
        if self.series == FLOW:
            flows = {row["flow"] for run in runs for row in dataset.flows.get(run.run_id, ())}
            declared = {name: place for place, name in enumerate(experiment_named(selection.experiment, study).flows)}
            named = sorted(flows, key=lambda flow: (declared.get(flow, len(declared)), flow))
            series = [(flow, dataclasses.replace(selection, flow=flow)) for flow in _in_order(named, self)]
            series += [(SUM, selection)] if self.stacked else []
        elif self.series:
            # The order of the lock is random.
            values = _in_order(sorted({run.factors[self.series] for run in runs}, key=series_order), self)
            series = [(value, selection.narrowed(self.series, value)) for value in values]
        found: dict[tuple[Any, Any], Estimate] = {}
        each: dict[tuple[Any, Any], tuple[float, ...]] = {}
        measured = [(name, one) for name, one in series if name != SUM or not self.stacked]
        for name, one in measured:
            for x in xs:
                try:
                    narrowed = one.narrowed(x_factor, x)
                    found[name, x] = measure(dataset, narrowed, 1, sources.grounds.pool)
                    each[name, x] = repetitions(dataset, narrowed, sources.grounds.pool)
                except NoValue:
                    continue
        for x in xs if self.stacked else ():
            parts = [(name, x) for name, _ in measured]
            if all(part in found for part in parts) and len({len(each[part]) for part in parts}) == 1:
                found[SUM, x] = reduce(total, (found[part] for part in parts))
                each[SUM, x] = tuple(map(sum, zip(*(each[part] for part in parts), strict=True)))
        over: list[Selection] = []
        if self.over is not None:
            base = base_value(self.over)
            over = [own for name, own in series if name == base]
            bars = _gains(found, base)
        else:
            bars = [
                _bar(x, name, one.n, one.value, one.sd or _deviation(each[name, x]), *one.interval())._replace(
                    values=" ".join(f"{significant(value):.9g}" for value in each[name, x])
                )
                for (name, x), one in found.items()
            ]
        behind = dict(series)
        ids = [sources.runs(*(one.narrowed(x_factor, bar.x) for one in (behind[bar.series], *over))) for bar in bars]
        what = ("n", "mean", "sd", "interval_low", "interval_high", "values")
        columns = (x_factor, *([self.series] if self.series else []), *what)
        rows = tuple(tuple(bar) if self.series else (bar.x, *bar[2:]) for bar in bars)
        return FigureData(columns, rows, tuple(ids))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw a bar or a point for each row."""
        axes = canvas.add_subplot()
        bars = [Bar(*row) if self.series else Bar(row[0], None, *row[1:]) for row in data.rows]
        xs = even_or_true(self.all_x((bar.x for bar in bars), self.unit))
        names = list(dict.fromkeys(bar.series for bar in bars if bar.series != SUM or not self.stacked))
        looks = dict(zip(names, _colours(names, self), strict=True))
        chosen = None if self.highlight is None else base_value(self.highlight)
        width = 0.0 if self.stacked or self.style == "lines" else (0.8 if len(xs) <= CROWD else 0.9) / len(names)
        if self.stacked:
            _stack(axes, self, bars, xs, looks)
        elif self.style == "lines":
            _lines(axes, self, bars, xs, looks)
            series = {(self.series, name): colour for name, colour in looks.items()}
            self.draw_sources(axes, self.factor, self.unit, xs, series)
        else:
            for place, name in enumerate(names):
                own = [bar for bar in bars if bar.series == name]
                at = [xs[bar.x] + (place - (len(names) - 1) / 2) * width for bar in own]
                shades = [_shade(looks[name], bar.x, chosen) for bar in own]
                hatch = HATCHES[place % len(HATCHES)] if len(names) > 1 else ""
                axes.bar(
                    at,
                    [bar.mean for bar in own],
                    width * 0.92,
                    color=shades,
                    hatch=hatch,
                    edgecolor="white",
                    linewidth=0,
                    yerr=_reach(own, self),
                    **_ERROR,
                )
                _dots(axes, own, at, width)
                if len({bar.n for bar in bars}) > 1 and len(xs) <= CROWD:
                    for x, bar in zip(at, own, strict=True):
                        axes.text(x, 0, f"n={bar.n}", rotation=90, ha="center", va="bottom", fontsize=7, color="white")
        (experiment,) = self.experiments(sources.study)
        for bar, runs in zip(bars, data.runs or (), strict=False):
            held = {self.factor: bar.x} | ({} if self.series in (None, FLOW) else {str(self.series): bar.series})
            shift = (names.index(bar.series) - (len(names) - 1) / 2) * width if width else 0.0
            link_runs(axes, xs[bar.x] + shift, bar.mean, width, experiment, held, runs)
        _ticks(axes, self, xs, chosen)
        label_axes(axes, self.axes_labels)
        self.mark([axes])
        every = selected(self.of, sources.study).chosen(sources.grounds.dataset)
        absent = {one.factors[self.factor] for one in every if self.factor in one.factors} - {bar.x for bar in bars}
        without = ", ".join(tick(x, self.unit) for x in sorted(absent, key=ascending))
        legend(
            canvas,
            _note(self, bars, chosen, len(xs) <= CROWD, self.pooled(sources))
            + (f"; without a value: {without}" if without else ""),
            {_name(name, self): colour for name, colour in looks.items() if self.series and self.style == "bars"},
            () if self.stacked else HATCHES,
        )

    def pooled(self, sources: Sources) -> list[str]:
        """Return the factors over which each bar is a mean."""
        found: dict[str, None] = {}
        seen: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for run in selected(self.of, sources.study).chosen(sources.grounds.dataset):
            first = seen.setdefault((run.factors.get(self.factor), run.factors.get(str(self.series))), run.factors)
            found |= dict.fromkeys(name for name, value in run.factors.items() if value != first[name])
        return list(found)

    @property
    def axes_labels(self) -> Labels:
        """The labels of both axes."""
        if self.labels:
            return self.labels
        metric = METRICS[self.metric]
        meaning, unit = ("gain", "%") if self.over is not None else (metric.meaning, metric.unit)
        return Labels(x=labelled(self.factor.replace("_", " "), self.unit), y=labelled(meaning, unit))


class Bar(NamedTuple):
    """A row of the data: one bar, or the sum of stacked ones."""

    x: Any
    series: Any
    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    values: str = ""

    @property
    def dots(self) -> tuple[float, ...]:
        """The values of the runs, if they are so few that each is drawn."""
        return tuple(float(value) for value in self.values.split()) if 1 < self.n <= FEW else ()

    @property
    def whisker(self) -> float:
        """The standard deviation; NaN if there is none, or if each run is drawn."""
        return _NONE if self.sd is None or self.dots else self.sd


def _bar(x: Any, name: Any, n: int, *numbers: float | None) -> Bar:
    mean, sd, low, high = (value and significant(value) for value in numbers)
    return Bar(x, name, n, mean or 0.0, sd, low, high)


def _deviation(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _gains(found: dict[tuple[Any, Any], Estimate], over: Any) -> list[Bar]:
    """Return the percent gain of each other series over one, for each x with both."""
    bars = []
    for (name, x), one in found.items():
        base = found.get((over, x))
        if name == over or base is None or base.value <= 0:
            continue
        try:
            gain = percent_gain(one, base)
            bars.append(_bar(x, name, gain.n, gain.value, None, *gain.interval()))
        except ValueError:  # the interval of the divisor reaches zero
            bars.append(_bar(x, name, min(one.n, base.n), 100 * (one.value / base.value - 1), None, None, None))
    return bars


def _stack(axes: Axes, spec: Bars, bars: Sequence[Bar], xs: Mapping[Any, float], looks: dict[Any, str]) -> None:
    """Stack the flows, with whiskers for the lowest flow and for the sum."""
    chosen = None if spec.highlight is None else base_value(spec.highlight)
    width = 0.6 if len(xs) <= CROWD else 0.9
    ground = dict.fromkeys(xs, 0.0)
    for place, (name, colour) in enumerate(looks.items()):
        own = [bar for bar in bars if bar.series == name]
        shades = [_shade(colour, bar.x, chosen) for bar in own]
        under = [ground[bar.x] for bar in own]
        axes.bar([xs[bar.x] for bar in own], [bar.mean for bar in own], width, under, color=shades)
        if place == 0:
            _whiskers(axes, own, xs)
        for bar in own:
            ground[bar.x] += bar.mean
    if len(looks) > 1:
        _whiskers(axes, [bar for bar in bars if bar.series == SUM], xs)


def _lines(axes: Axes, spec: Bars, bars: Sequence[Bar], xs: Mapping[Any, float], looks: dict[Any, str]) -> None:
    """Draw a point with its whisker for each row, joined along x; series with the same colour have different dashes."""
    for place, (name, colour) in enumerate(looks.items()):
        own = [bar for bar in bars if bar.series == name]
        marker = style.look(str(name), place)[1]
        before = list(looks.values())[:place].count(colour)
        dashes = style.DASHES[before % len(style.DASHES)]
        points: Any = {"color": colour, "marker": marker, "ls": dashes, "lw": 1.2, "ms": 4.5, "elinewidth": 0.8}
        points |= {"capsize": 2, "label": _name(name, spec) if spec.series else None}
        axes.errorbar([xs[bar.x] for bar in own], [bar.mean for bar in own], _reach(own, spec), **points)
        _dots(axes, own, [xs[bar.x] for bar in own], 0.3)
    if spec.over is None:
        axes.set_ylim(0, 1.1 * max(bar.mean + (bar.sd or 0) for bar in bars) or None)


def _dots(axes: Axes, bars: Sequence[Bar], at: Sequence[float], width: float) -> None:
    """Draw a dot for each run of bars with few runs."""
    for x, bar in zip(at, bars, strict=True):
        steps = [(place + 0.5) / len(bar.dots) - 0.5 for place in range(len(bar.dots))]
        places = [x + 0.5 * width * step for step in steps]
        axes.plot(places, bar.dots, ls="", marker="o", ms=2.6, mfc="white", mec=style.INK, mew=0.6, zorder=5)


def _whiskers(axes: Axes, bars: Sequence[Bar], xs: Mapping[Any, float]) -> None:
    at = [xs[bar.x] for bar in bars]
    _dots(axes, bars, at, 0.5)
    look: Any = {"fmt": "none", "ecolor": style.INK, "elinewidth": 0.8, "capsize": 2}
    axes.errorbar(at, [bar.mean for bar in bars], [bar.whisker for bar in bars], **look)


def _reach(bars: Sequence[Bar], spec: Bars) -> list[list[float]]:
    """Return the lengths of the whiskers down and up: a standard deviation, or the interval of a gain."""
    if spec.over is None:
        lowest, highest = METRICS[spec.metric].bounds
        down = [np.minimum(bar.whisker, bar.mean - lowest) for bar in bars]
        return [down, [np.minimum(bar.whisker, highest - bar.mean) for bar in bars]]
    down = [_NONE if bar.low is None else bar.mean - bar.low for bar in bars]
    return [down, [_NONE if bar.high is None else bar.high - bar.mean for bar in bars]]


def _ticks(axes: Axes, spec: Bars, xs: Mapping[Any, float], chosen: Any) -> None:
    """Label each x, or every k-th of many, including the highlighted one."""
    step = math.ceil(len(xs) / CROWD) if xs else 1
    start = list(xs).index(chosen) % step if chosen in xs else 0
    labelled = list(xs)[start::step]
    name_ticks(axes, [xs[x] for x in labelled], labelled, spec.unit)
    axes.set_xlim(-0.7, max(xs.values(), default=0) + 0.7)
    axes.grid(axis="x", visible=False)
    if spec.over is not None:
        axes.axhline(0, color=style.INK, lw=0.8)


def _note(spec: Bars, bars: Sequence[Bar], chosen: Any, roomy: bool, pooled: Sequence[str]) -> str:
    what = METRICS[spec.metric].meaning + (f", mean over {', '.join(pooled)}" if pooled else "")
    counts = {bar.n for bar in bars}
    on_bars = " (on each bar)" if roomy and not spec.stacked and spec.style == "bars" else ""
    n = counted(counts, on_bars)
    if spec.over is not None:
        text = f"gain in {what} over {_name(base_value(spec.over), spec)}; {n}"
        text += "; whiskers: 95 % interval" if any(bar.low != bar.high for bar in bars) else ""
        text += (
            "; no whisker if the interval of the divisor reaches zero" if any(bar.low is None for bar in bars) else ""
        )
    elif max(counts) == 1:
        text = f"{what}; n = 1, one run has no deviation"
    else:
        few = any(bar.dots for bar in bars)
        both = few and any(not math.isnan(bar.whisker) for bar in bars)
        spread = "standard deviation" if spec.stacked else "whiskers: standard deviation"
        text = f"{what}: mean, {n}, " + (f"each {'repetition' if pooled else 'run'} a dot" if few else spread)
        text += "; whiskers of more runs: standard deviation" if both else ""
        whose = "dots" if few else "whiskers"
        text += f"; {whose}: of the flow at the bottom and of the sum" if spec.stacked else ""
    return text + (f"; in full colour: {tick(chosen, spec.unit)}" if chosen is not None else "")


def _in_order(values: Sequence[Any], spec: Bars) -> list[Any]:
    """Return flows or values of the series in the order of ``names``, then all others."""
    order = {name: place for place, name in enumerate(spec.names)}
    return sorted(values, key=lambda value: order.get(str(value), len(order)))


def _name(name: Any, spec: Bars) -> str:
    return spec.names.get(str(name), tick(name))


def _colours(names: Sequence[Any], spec: Bars) -> list[str]:
    if spec.series == FLOW:
        return style.flow_colours([_name(name, spec) for name in names])
    if not spec.series:
        return [style.SINGLE]
    own = [style.named_in(_name(name, spec)) if spec.style == "lines" else None for name in names]
    return [
        colour or style.look(str(name), place)[0] for place, (name, colour) in enumerate(zip(names, own, strict=True))
    ]


def _shade(colour: str, x: Any, chosen: Any) -> str:
    return colour if chosen is None or x == chosen else style.pale(colour)
