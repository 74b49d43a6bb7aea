# SPDX-License-Identifier: Apache-2.0
"""Figures of single runs: boxes and distributions of a metric, and one metric against another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Ellipse
from pydantic import Field

from longfat.figures import style
from longfat.figures.base import (
    AxisText,
    Figure,
    Sources,
    TermText,
    axis,
    axis_findings,
    factor_findings,
    selected,
    selection_findings,
)
from longfat.figures.parts import (
    RUN_ID_DIGITS,
    FigureData,
    Labels,
    ascending,
    counted,
    in_unit,
    label_axes,
    label_powers,
    labelled,
    legend,
    link_runs,
    name_ticks,
    series_order,
    tick,
)
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import measure, metric_of_run
from longfat.relations.bind import experiment_named
from longfat.relations.nodes import Expression
from longfat.relations.syntax import parse_term
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.study import Study

WIDE = 50  # letters along an axis; with more they stand upright
LINE = 0.23  # least height of a cell of a heat map in inches
DECADES = 30.0  # ratio of the values of a factor from which its axis is logarithmic


class Runs(Figure):
    """Values of single runs, by series. A subclass names the factors of its axes and its metrics."""

    artifact: f.Name
    of: TermText
    series: f.FactorName | None = Field(None, description="a factor, each value of which has a colour")
    labels: Labels | None = Field(None, description="default: the metrics and the factor, with their units")

    @property
    def terms(self) -> tuple[str, ...]:
        """The metrics of its values."""
        return (self.of,)

    @property
    def held(self) -> tuple[str, ...]:
        """The factors in its data."""
        return (self.series,) if self.series else ()

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names, and metrics of different experiments."""
        found = [finding for term in self.terms for finding in selection_findings(term, "of", study)]
        yield from found
        if found:
            return
        experiments = {selected(term, study).experiment for term in self.terms}
        if len(experiments) > 1:
            yield Finding(("against",), "must be of the same experiment as `of`")
        experiment = _experiment(self, study)
        for key in ("x", "y"):
            if (text := getattr(self, key, None)) is not None:
                yield from axis_findings(text, key, experiment)
        if self.series:
            yield from factor_findings(self.series, ("series",), experiment)

    def expressions(self) -> Iterator[Expression]:
        """Yield its metrics."""
        yield from map(parse_term, self.terms)

    def data(self, sources: Sources) -> FigureData:
        """Compute the values of each valid run."""
        dataset = sources.grounds.dataset
        first, *others = (selected(term, sources.study) for term in self.terms)
        rows = []
        wanted = [{run.run_id for run in one.chosen(dataset)} for one in others]
        for run in first.chosen(dataset):
            if not all(run.run_id in ids for ids in wanted):
                continue
            if run.status != "ok" or not set(self.held) <= run.factors.keys():
                continue
            with suppress(NoValue):
                values = [metric_of_run(dataset, run, one) for one in (first, *others)]
                held = [run.factors[name] for name in self.held]
                rows.append((run.scenario, run.repetition, run.run_id[:RUN_ID_DIGITS], *held, *map(_nine, values)))
        names = [parse_term(term).metric for term in self.terms]
        rows.sort(key=lambda row: (*map(series_order, row[3 : -len(names)]), *row[:2]))
        return FigureData(("scenario", "repetition", "run_id", *self.held, *names), tuple(rows))

    def groups(self, data: FigureData) -> dict[Any, list[tuple[Any, ...]]]:
        """Return the rows of each series."""
        place = data.columns.index(self.series) if self.series else None
        found: dict[Any, list[tuple[Any, ...]]] = {}
        for row in data.rows:
            found.setdefault("" if place is None else row[place], []).append(row)
        return found

    def looks(self, data: FigureData) -> dict[Any, str]:
        """Return the colour of each series."""
        names = list(self.groups(data))
        return {
            name: style.look(str(name), place)[0] if self.series else style.SINGLE for place, name in enumerate(names)
        }

    def finish(self, canvas: Canvas, axes: Axes, data: FigureData, labels: Labels, note: str) -> None:
        """Label the axes, draw the stated numbers and the legend."""
        label_axes(axes, self.labels or labels)
        self.mark([axes])
        counts = Counter(row[3 : 3 + len(self.held)] for row in data.rows)
        colours = {tick(name): colour for name, colour in self.looks(data).items()} if self.series else {}
        each = f" for each {' and '.join(self.held)}" if self.held else ""
        legend(canvas, f"{note}; {counted(list(counts.values()))} runs{each}", colours)


class Box(Runs):
    """Median, quartiles and extremes of a metric over the runs, for each value of a factor on a true axis."""

    artifact: f.Name = Field(alias="box")
    x: AxisText = Field(description="a factor, with the unit of its axis: `buffer in kB`")

    @property
    def held(self) -> tuple[str, ...]:
        """The factors in its data."""
        return tuple(dict.fromkeys((axis(self.x)[0], *super().held)))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw a box for each value of x and series."""
        axes, (name, unit) = canvas.add_subplot(), axis(self.x)
        place = data.columns.index(name)
        xs = sorted({row[place] for row in data.rows}, key=ascending)
        at, width = positions(axes, xs, unit)
        looks = self.looks(data)
        for number, (series, rows) in enumerate(self.groups(data).items()):
            shift = (number + 0.5) / len(looks) - 0.5
            for x in dict.fromkeys(row[place] for row in rows):
                values = [row[-1] for row in rows if row[place] == x]
                where, wide = at[x] + shift * width[x], 0.8 * width[x] / len(looks)
                whole: Any = {"whis": (0, 100), "patch_artist": True, "manage_ticks": False}
                whole |= {"medianprops": {"color": style.INK}, "boxprops": {"facecolor": looks[series], "lw": 0.8}}
                axes.boxplot(values, positions=[where], widths=wide, **whole)
        metric = METRICS[parse_term(self.of).metric]
        labels = Labels(x=labelled(name.replace("_", " "), unit), y=labelled(metric.meaning, metric.unit))
        self.finish(canvas, axes, data, labels, "boxes: quartiles and median; whiskers: the extremes")


class Distribution(Runs):
    """The cumulative distribution of a metric over the runs, with a step for each run."""

    artifact: f.Name = Field(alias="cdf")

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw a staircase for each series."""
        axes = canvas.add_subplot()
        for place, (series, rows) in enumerate(self.groups(data).items()):
            dashes = style.DASHES[place // style.OTHERS % len(style.DASHES)]
            axes.ecdf([row[-1] for row in rows], color=self.looks(data)[series], lw=1.4, ls=dashes)
        metric = METRICS[parse_term(self.of).metric]
        labels = Labels(x=labelled(metric.meaning, metric.unit), y="share of runs up to this value")
        self.finish(canvas, axes, data, labels, "cumulative distribution")


class Plane(Runs):
    """One metric against another, such as goodput against delay: a dot for each run, an ellipse for each series."""

    artifact: f.Name = Field(alias="plane")
    against: TermText = Field(description="the metric along x")

    @property
    def terms(self) -> tuple[str, ...]:
        """The metrics of its values."""
        return (self.against, self.of)

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw dots, and the ellipse of one standard deviation around their mean."""
        axes = canvas.add_subplot()
        for place, (series, rows) in enumerate(self.groups(data).items()):
            colour = self.looks(data)[series]
            x, y = np.array([row[-2:] for row in rows], dtype=np.float64).T
            axes.plot(x, y, ls="", marker=style.look(str(series), place)[1], ms=4, color=colour)
            if len(rows) > 2:
                lengths, axes_of = np.linalg.eigh(np.cov(x, y))
                width, height = 2 * np.sqrt(np.maximum(lengths, 0.0))
                angle = float(np.degrees(np.arctan2(axes_of[1, 0], axes_of[0, 0])))
                middle = (float(x.mean()), float(y.mean()))
                axes.add_patch(Ellipse(middle, float(width), float(height), angle=angle, color=colour, alpha=0.18))
        x_metric, y_metric = (METRICS[parse_term(term).metric] for term in self.terms)
        labels = Labels(x=labelled(x_metric.meaning, x_metric.unit), y=labelled(y_metric.meaning, y_metric.unit))
        self.finish(canvas, axes, data, labels, "ellipses: one standard deviation")


class Heat(Runs):
    """The mean of a metric for each pair of values of two factors, as colours and numbers, or the harm to it."""

    artifact: f.Name = Field(alias="heat")
    x: AxisText = Field(description="a factor, with the unit of its axis")
    y: AxisText = Field(description="another factor, with the unit of its axis")
    alone: TermText | None = Field(None, description="the metric without competition: draw the harm instead")
    better: Literal["more", "less"] = Field("more", description="the better direction of the metric, for harm")

    def faults(self) -> Iterator[Finding]:
        """Yield keys that this kind does not have."""
        if self.series:
            yield Finding(("series",), "is not a key of heat; x and y are its factors")
        if self.alone and parse_term(self.alone).metric != parse_term(self.of).metric:
            yield Finding(("alone",), f"must be of the metric {parse_term(self.of).metric!r} as `of`")
        if "better" in self.model_fields_set and not self.alone:
            yield Finding(("better",), "needs alone")

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield unknown names."""
        yield from super().findings(study)
        if self.alone:
            yield from selection_findings(self.alone, "alone", study)

    def expressions(self) -> Iterator[Expression]:
        """Yield its metric, and the metric without competition."""
        yield from super().expressions()
        if self.alone:
            yield parse_term(self.alone)

    def data(self, sources: Sources) -> FigureData:
        """Compute the value of each valid run; with ``alone`` the value alone and the harm follow it.

        Harm (Ware, Mukerjee, Seshan and Sherry, HotNets 2019) to a metric of which more is better is
        (alone - value) / alone, else (value - alone) / value. The runs alone are those with the same values of x and y
        as far as their experiment has these factors.
        """
        data = super().data(sources)
        if not self.alone:
            return data
        selection = selected(self.alone, sources.study)
        factors = experiment_named(selection.experiment, sources.study).factors
        rows = []
        for row in data.rows:
            chosen = selection
            for name, value in zip(self.held, row[3:5], strict=True):
                chosen = chosen.narrowed(name, value) if name in factors else chosen
            with suppress(NoValue):
                alone, value = measure(sources.grounds.dataset, chosen, 1).value, float(row[-1])
                worse, base = (alone - value, alone) if self.better == "more" else (value - alone, value)
                if base > 0:
                    rows.append((*row, _nine(alone), _nine(worse / base)))
        return FigureData((*data.columns, "alone", "harm"), tuple(rows))

    @property
    def held(self) -> tuple[str, ...]:
        """The factors in its data."""
        return (axis(self.x)[0], axis(self.y)[0])

    def height(self, data: FigureData, sources: Sources) -> float:
        """Return the height of the drawing in inches, with room for a line in each cell."""
        return max(super().height(data, sources), 1.8 + LINE * len({row[4] for row in data.rows}))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw a cell for each pair of values."""
        axes = canvas.add_subplot()
        cells: dict[tuple[Any, Any], list[float]] = {}
        behind: dict[tuple[Any, Any], list[str]] = {}
        for row in data.rows:
            cells.setdefault((row[3], row[4]), []).append(row[-1])
            behind.setdefault((row[3], row[4]), []).append(row[2])
        xs, ys = (sorted({pair[side] for pair in cells}, key=ascending) for side in (0, 1))
        means = np.array([[np.mean(cells[x, y]) if (x, y) in cells else np.nan for x in xs] for y in ys])
        picture = axes.imshow(means, origin="lower", aspect="auto", cmap="viridis")
        middle = (np.nanmin(means) + np.nanmax(means)) / 2
        digits = "z.2f" if self.alone else ".3g"
        for (row, column), value in np.ndenumerate(means):
            text = "" if np.isnan(value) else f"{value:{digits}}"
            ink = "white" if value < middle else style.INK
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=7)
        experiment = selected(self.of, sources.study).experiment
        for (x, y), runs in behind.items():
            held = dict(zip(self.held, (x, y), strict=True))
            link_runs(axes, xs.index(x), ys.index(y) + 0.5, 1, experiment, held, runs, ys.index(y) - 0.5)
        units = [axis(text)[1] for text in (self.x, self.y)]
        axes.set_xticks(range(len(xs)), [tick(x, units[0]) for x in xs])
        if sum(len(tick(x, units[0])) for x in xs) > WIDE:
            axes.tick_params(axis="x", labelrotation=90)
        axes.set_yticks(range(len(ys)), [tick(y, units[1]) for y in ys])
        axes.grid(visible=False)
        metric = METRICS[parse_term(self.of).metric]
        meaning = f"harm to the {metric.meaning}" if self.alone else labelled(metric.meaning, metric.unit)
        canvas.colorbar(picture, ax=axes, label=meaning)
        names = [labelled(name.replace("_", " "), unit) for name, unit in zip(self.held, units, strict=True)]
        label_axes(axes, self.labels or Labels(x=names[0], y=names[1]))
        legend(canvas, f"mean of {counted([len(values) for values in cells.values()])} runs in each cell")


def positions(axes: Axes, xs: Sequence[Any], unit: str | None) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return place and width for each value: numbers at their places on an axis, words one after the other."""
    if not all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs):
        name_ticks(axes, range(len(xs)), xs)
        return {x: float(place) for place, x in enumerate(xs)}, dict.fromkeys(xs, 0.8)
    at = {x: in_unit(float(x), unit) for x in xs}
    places = sorted(at.values())
    if places[0] > 0 and places[-1] / places[0] >= DECADES:
        axes.set_xscale("log")
        label_powers(axes.xaxis)
        return at, {x: 0.3 * place for x, place in at.items()}
    gap = min((high - low for low, high in pairwise(places)), default=1.0)
    return at, dict.fromkeys(xs, 0.7 * gap)


def _experiment(figure: Runs, study: Study) -> Any:
    return experiment_named(selected(figure.of, study).experiment, study)


def _nine(value: float) -> float:
    return float(f"{value:.9g}")
