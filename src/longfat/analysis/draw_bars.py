# SPDX-License-Identifier: Apache-2.0
"""Bars: the mean of a quantity for each value of a factor, by series, with spread and n.

Owns what the bars stand for and how they look. The quantity is measured by ``longfat.analysis.quantities``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longfat.analysis import style
from longfat.analysis.draw_parts import FigureData, ascending, counted, label_axes, legend, marks, series_order, tick
from longfat.analysis.expressions import base_units
from longfat.analysis.figure_kinds import FLOW, Bars
from longfat.analysis.metric_table import METRICS
from longfat.analysis.metrics import NoValue
from longfat.analysis.quantities import Selection, measure, significant
from longfat.analysis.statistics import Summary, percent_gain
from longfat.dataset.load import Dataset

SUM = "sum"  # the row of stacked flows that stands for all of them
CROWD = 20  # more values of x than this leave no room for a label each
_NONE = math.nan  # a whisker that is not drawn
_ERROR: Any = {"capsize": 2, "error_kw": {"lw": 0.8}}


class Bar(NamedTuple):
    """A row of the data: one bar, or the sum of stacked ones."""

    x: Any
    series: Any
    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None


def bars_data(dataset: Dataset, spec: Bars) -> FigureData:
    """Mean, standard deviation, n and 95 % interval for each x and series that has a valid run."""
    selection = spec.of.selection()
    factors = {name for name in (spec.x, spec.series) if name not in (None, FLOW)}
    runs = [run for run in selection.chosen(dataset) if factors <= run.factors.keys()]
    xs = sorted({run.factors[spec.x] for run in runs}, key=ascending)
    series: list[tuple[Any, Selection]] = [(None, selection)]
    if spec.series == FLOW:
        flows = {row["flow"] for run in runs for row in dataset.flows.get(run.run_id, ())}
        series = [(flow, dataclasses.replace(selection, flow=flow)) for flow in _named_first(sorted(flows), spec)]
        series += [(SUM, selection)] if spec.stacked else []
    elif spec.series:
        # The lock is shuffled: series stand in an order of their own.
        values = _named_first(sorted({run.factors[spec.series] for run in runs}, key=series_order), spec)
        series = [(value, selection.narrowed(spec.series, value)) for value in values]
    found: dict[tuple[Any, Any], Summary] = {}
    for name, one in series:
        for x in xs:
            try:
                found[name, x] = measure(dataset, one.narrowed(spec.x, x), least=1)
            except NoValue:
                continue
    if spec.over is not None:
        bars = _gains(found, base_units(spec.over))
    else:
        bars = [
            _bar(x, name, one.n, one.mean, one.sd, one.low, one.high) for (name, x), one in found.items()
        ]  # fmt: skip
    what = ("n", "mean", "sd", "interval_low", "interval_high")
    if spec.series is None:
        return FigureData((spec.x, *what), tuple((bar.x, *bar[2:]) for bar in bars))
    return FigureData((spec.x, spec.series, *what), tuple(tuple(bar) for bar in bars))


def draw_bars(figure: Figure, spec: Bars, data: FigureData) -> None:
    """Draw the data's rows."""
    axes = figure.add_subplot()
    bars = [Bar(*row) if spec.series else Bar(row[0], None, *row[1:]) for row in data.rows]
    xs = sorted({bar.x for bar in bars}, key=ascending)
    names = list(dict.fromkeys(bar.series for bar in bars if bar.series != SUM or not spec.stacked))
    looks = dict(zip(names, _colours(names, spec), strict=True))
    chosen = None if spec.highlight is None else base_units(spec.highlight)
    if spec.stacked:
        _stack(axes, spec, bars, xs, looks)
    elif spec.style == "lines":
        _lines(axes, spec, bars, xs, looks)
    else:
        width = (0.8 if len(xs) <= CROWD else 0.9) / max(len(names), 1)
        for place, name in enumerate(names):
            own = [bar for bar in bars if bar.series == name]
            at = [xs.index(bar.x) + (place - (len(names) - 1) / 2) * width for bar in own]
            shades = [_shade(looks[name], bar.x, chosen) for bar in own]
            axes.bar(at, [bar.mean for bar in own], width * 0.92, color=shades, yerr=_reach(own, spec), **_ERROR)
            if len({bar.n for bar in bars}) > 1 and len(xs) <= CROWD:
                for x, bar in zip(at, own, strict=True):
                    axes.text(x, 0, f"n={bar.n}", rotation=90, ha="center", va="bottom", fontsize=6, color="white")
    _ticks(axes, spec, xs, chosen)
    label_axes(axes, spec.labels)
    marks([axes], spec.paper)
    legend(
        figure,
        _note(spec, bars, chosen, len(xs) <= CROWD),
        {_called(name, spec): colour for name, colour in looks.items() if spec.series and spec.style == "bars"},
    )


def _bar(x: Any, name: Any, n: int, *numbers: float | None) -> Bar:
    mean, sd, low, high = (value and significant(value) for value in numbers)
    return Bar(x, name, n, mean or 0.0, sd, low, high)


def _gains(found: dict[tuple[Any, Any], Summary], over: Any) -> list[Bar]:
    """Percent by which each other series exceeds one, where both were measured at the same x."""
    bars = []
    for (name, x), one in found.items():
        base = found.get((over, x))
        if name == over or base is None or base.mean <= 0:
            continue
        try:
            gain = percent_gain(one, base)
            bars.append(_bar(x, name, gain.n, gain.mean, None, gain.low, gain.high))
        except ValueError:  # the interval of what is divided by reaches zero: a mean without an interval
            bars.append(_bar(x, name, min(one.n, base.n), 100 * (one.mean / base.mean - 1), None, None, None))
    return bars


def _stack(axes: Axes, spec: Bars, bars: Sequence[Bar], xs: Sequence[Any], looks: dict[Any, str]) -> None:
    """The flows on each other; whiskers are those of the lowest and of the sum."""
    chosen = None if spec.highlight is None else base_units(spec.highlight)
    width = 0.6 if len(xs) <= CROWD else 0.9
    ground = dict.fromkeys(xs, 0.0)
    for place, (name, colour) in enumerate(looks.items()):
        own = [bar for bar in bars if bar.series == name]
        shades = [_shade(colour, bar.x, chosen) for bar in own]
        under = [ground[bar.x] for bar in own]
        axes.bar([xs.index(bar.x) for bar in own], [bar.mean for bar in own], width, under, color=shades)
        if place == 0:
            _whiskers(axes, own, xs)
        for bar in own:
            ground[bar.x] += bar.mean
    if len(looks) > 1:
        _whiskers(axes, [bar for bar in bars if bar.series == SUM], xs)


def _lines(axes: Axes, spec: Bars, bars: Sequence[Bar], xs: Sequence[Any], looks: dict[Any, str]) -> None:
    """A point with its whisker for each bar, joined along x; series that share a colour differ in their dashes."""
    for place, (name, colour) in enumerate(looks.items()):
        own = [bar for bar in bars if bar.series == name]
        marker = style.look(str(name), place)[1]
        dashes = style.DASHES[place // style.OTHERS % len(style.DASHES)]
        points: Any = {"color": colour, "marker": marker, "ls": dashes, "lw": 1.2, "ms": 4.5, "elinewidth": 0.8}
        points |= {"capsize": 2, "label": _called(name, spec) if spec.series else None}
        axes.errorbar([xs.index(bar.x) for bar in own], [bar.mean for bar in own], _reach(own, spec), **points)
    if spec.over is None:
        axes.set_ylim(0, 1.1 * max(bar.mean + (bar.sd or 0) for bar in bars) or None)


def _whiskers(axes: Axes, bars: Sequence[Bar], xs: Sequence[Any]) -> None:
    at = [xs.index(bar.x) for bar in bars]
    spread = [_NONE if bar.sd is None else bar.sd for bar in bars]
    axes.errorbar(at, [bar.mean for bar in bars], spread, fmt="none", ecolor=style.INK, elinewidth=0.8, capsize=2)


def _reach(bars: Sequence[Bar], spec: Bars) -> list[list[float]]:
    """How far the whiskers go down and up: a standard deviation, or the interval of a gain."""
    if spec.over is None:
        return [[_NONE if bar.sd is None else bar.sd for bar in bars]] * 2
    down = [_NONE if bar.low is None else bar.mean - bar.low for bar in bars]
    return [down, [_NONE if bar.high is None else bar.high - bar.mean for bar in bars]]


def _ticks(axes: Axes, spec: Bars, xs: Sequence[Any], chosen: Any) -> None:
    """A label for each x, or in a crowd for every k-th, the highlighted one among them."""
    step = math.ceil(len(xs) / CROWD) if xs else 1
    start = xs.index(chosen) % step if chosen in xs else 0
    labelled = list(xs)[start::step]
    axes.set_xticks([xs.index(x) for x in labelled], [tick(x, spec.x_unit) for x in labelled])
    axes.set_xlim(-0.7, len(xs) - 0.3)
    axes.grid(axis="x", visible=False)
    if spec.over is not None:
        axes.axhline(0, color=style.INK, lw=0.8)


def _note(spec: Bars, bars: Sequence[Bar], chosen: Any, roomy: bool) -> str:
    what = METRICS[spec.of.metric].meaning
    counts = {bar.n for bar in bars}
    on_bars = ", on each bar" if roomy and not spec.stacked and spec.style == "bars" else ""
    n = counted(counts, on_bars)
    if spec.over is not None:
        text = f"gain in {what} over {_called(base_units(spec.over), spec)}; {n}"
        text += "; whiskers: 95 % interval" if any(bar.low != bar.high for bar in bars) else ""
        text += "; no whisker where its divisor's interval reaches zero" if any(bar.low is None for bar in bars) else ""
    elif max(counts) == 1:
        text = f"{what}; n = 1, one run has no deviation"
    else:
        text = f"{what}: mean, standard deviation, {n}"
        text += "; whiskers: of the lowest flow and of the sum" if spec.stacked else ""
    return text + (f"; in full colour: {tick(chosen, spec.x_unit)}" if chosen is not None else "")


def _named_first(values: Sequence[Any], spec: Bars) -> list[Any]:
    """Flows or values of the series in the order of their names in the legend, then the others as they are."""
    order = {name: place for place, name in enumerate(spec.names)}
    return sorted(values, key=lambda value: order.get(str(value), len(order)))


def _called(name: Any, spec: Bars) -> str:
    return spec.names.get(str(name), tick(name))


def _colours(names: Sequence[Any], spec: Bars) -> list[str]:
    if spec.series == FLOW:
        return style.flow_colours([_called(name, spec) for name in names])
    return [style.look(str(name), place)[0] for place, name in enumerate(names)] if spec.series else [style.SINGLE]


def _shade(colour: str, x: Any, chosen: Any) -> str:
    return colour if chosen is None or x == chosen else style.pale(colour)
