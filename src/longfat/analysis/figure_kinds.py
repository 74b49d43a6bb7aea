# SPDX-License-Identifier: Apache-2.0
"""The kinds of figures that figures.yaml may name: the closed form of each.

Owns shape and what a kind's keys allow beside each other. It must not look at the study; that its names are
those of the study is checked in ``longfat.analysis.figures``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from longfat.analysis.expressions import ConditionField, Quantity, check_arguments
from longfat.analysis.formulas import FORMULAS
from longfat.analysis.metric_table import METRICS
from longfat.analysis.quantities import Selection
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.names import Finding, unknown
from longfat.units import Duration, Rate, Size

FLOW = "flow"  # stands where a factor's name may: one series for each flow of the runs
_UNITS = {**Size.units, **Duration.units, **Rate.units}


def _unit(given: object) -> object:
    if given not in _UNITS:
        raise f.fault(*unknown("unit", given, _UNITS))
    return given


Unit = Annotated[str, BeforeValidator(_unit)]


class Mark(Closed):
    """A number of the paper, drawn as a line: across at a value of y, or upright at a value of x."""

    value: f.Number = Field(description="in the unit of its axis")
    label: f.Text = Field(description="what it is")
    axis: Literal["y", "x"] = Field("y", description="the axis that the value is read on")


class Stated(Closed):
    """What the paper states of the artifact."""

    text: f.Text = Field(description="in our own words; 'no number stated' where there is none")
    marks: tuple[Mark, ...] = Field((), description="numbers to draw beside the measurement")


class Labels(Closed):
    """Axis labels, each with its unit."""

    x: f.Text
    y: f.Text


class Figure(Closed):
    """What every figure has."""

    artifact: f.Name = Field(description="id of the figure or table")
    part_of: f.Name | None = Field(None, description="the paper's artifact that it shows a part of")
    title: f.Text = Field(description="one line in our own words")
    paper: Stated

    def faults(self) -> Iterator[Finding]:
        """What its keys do not allow beside each other, with places below the figure."""
        yield from ()


class Bars(Figure):
    """Mean of a quantity for each value of a factor, a series for each value of another or for each flow."""

    kind: Literal["bars"]
    of: Quantity
    x: f.FactorName
    x_unit: Unit | None = None
    series: f.FactorName | None = Field(None, description="a factor, or `flow`; without it there is one series")
    names: dict[str, f.Text] = Field({}, description="what the legend calls a flow or a value of the series")
    stacked: f.Switch = Field(False, description="lay the flows on each other, so that their sum shows")
    style: Literal["bars", "lines"] = Field("bars", description="bars, or points joined by a line for each series")
    over: f.FactorValue | None = Field(None, description="draw the percent gain of the other series over this one")
    highlight: f.FactorValue | None = Field(None, description="the value of x whose bars stand out")
    labels: Labels

    def faults(self) -> Iterator[Finding]:
        """What its keys do not allow beside each other."""
        allowed = [name for name, metric in METRICS.items() if metric.source in ("flows", "run")]
        if self.of.metric not in allowed:
            yield Finding(("of", "metric"), *unknown("metric of bars", self.of.metric, allowed))
        if self.series == FLOW and self.of.flow:
            yield Finding(("of", "flow"), "is one flow, and series flow draws every flow; leave one out")
        if self.series == self.x:
            yield Finding(("series",), f"{self.series!r} is already x")
        for key in ("over", "names"):
            if self.series is None and key in self.model_fields_set:
                yield Finding((key,), "needs series")
        if self.stacked and (self.series != FLOW or self.of.metric != "goodput"):
            yield Finding(("stacked",), "needs series flow and the metric goodput: only flows add up")
        if self.stacked and self.style == "lines":
            yield Finding(("stacked",), "does not go with style lines")
        if self.stacked and self.over is not None:
            yield Finding(("stacked",), "does not go with over")


class TimeSeries(Figure):
    """Outstanding data, rates or windows over time: a flow, several of a run, or a curve for each value.

    Outstanding data and throughput are read from captures, RTTs are those of pings, and all else comes from the samples
    of the sending sockets. Of a flow with several connections a window is that of the first, and goodput that of all.
    Goodput may be of UDP traffic too: that of whole packets at its receiver.
    """

    kind: Literal["timeseries"]
    experiment: f.ExperimentId
    what: Literal["outstanding", "throughput", "cwnd", "ssthresh", "dwnd", "goodput", "rtt"] = Field(
        "outstanding", description="what is drawn over time"
    )
    also: tuple[Literal["ssthresh", "dwnd"], ...] = Field((), description="beside cwnd: a curve for each of these")
    interval: f.Interval | None = Field(None, description="of goodput: what each point is the mean of (default 1 s)")
    unit: Literal["bytes/s", "Mb/s"] | None = Field(None, description="of throughput (default bytes/s)")
    where: dict[f.FactorName, ConditionField] = Field({}, description="conditions on factors")
    series: f.FactorName | None = Field(None, description="a curve for each value of this factor")
    panels: f.FactorName | None = Field(None, description="axes for each value of this factor, side by side")
    flow: f.Name | None = Field(None, description="the flow (default: the only captured)")
    flows: dict[f.Name, f.Text] = Field({}, description="several flows, with what the legend calls them")
    algorithm: f.Name = Field("standard", description="whose colour a single curve has")
    since: f.Delay = Duration(0)
    until: f.Delay | None = None
    labels: Labels

    def faults(self) -> Iterator[Finding]:
        """What its keys do not allow beside each other."""
        if self.unit and self.what != "throughput":
            yield Finding(("unit",), "belongs to throughput; outstanding data is in bytes, a window in segments")
        if self.interval and self.what != "goodput":
            yield Finding(("interval",), "belongs to goodput")
        if self.also and (self.what != "cwnd" or self.series or self.flows):
            yield Finding(("also",), "belongs to cwnd, without series and flows: both are told apart by colour")
        if self.flow and self.flows:
            yield Finding(("flow",), "does not go with flows")
        if self.flows and self.series:
            yield Finding(("flows",), "does not go with series: both are told apart by colour")
        if self.until is not None and self.since >= self.until:
            yield Finding(("until",), f"the window from {self.since} to {self.until} is empty")

    @property
    def captured(self) -> bool:
        """Whether it is read from captures."""
        return self.what in ("outstanding", "throughput")

    def selection(self) -> Selection:
        """The runs that it asks for."""
        return Selection("goodput", self.experiment, tuple(self.where.items()))


class Ranking(Figure):
    """The values of a factor from the best to the worst, beside the order that the paper gives."""

    kind: Literal["ranking"]
    of: Quantity = Field(description="what the order goes by")
    then: Quantity = Field(description="what decides among those that are alike")
    by: f.FactorName = Field(description="the factor whose values are ranked")
    names: dict[f.Name, f.Text] = Field({}, description="what the columns call a flow")
    expected: tuple[f.FactorValue, ...] = Field((), description="the paper's order, best first")

    def faults(self) -> Iterator[Finding]:
        """What its keys do not allow beside each other."""
        if self.of.experiment != self.then.experiment:
            yield Finding(
                ("then", "experiment"), f"{self.then.experiment!r} is not {self.of.experiment!r} of the first"
            )
        if len(set(self.expected)) < len(self.expected):
            yield Finding(("expected",), "names a value twice")


class Topology(Figure):
    """The network of an experiment: its hosts, its routers, and what each interface does."""

    kind: Literal["topology"]
    experiment: f.ExperimentId


class Computed(Closed):
    """A cell that a formula fills."""

    formula: f.Text
    arguments: dict[str, f.FactorValue] = Field({}, description="by name; numbers or quantities")
    digits: Annotated[int, Field(strict=True, ge=0, le=9)] = 2

    @model_validator(mode="after")
    def _check_formula(self) -> Computed:
        if self.formula not in FORMULAS:
            raise f.fault(*unknown("formula", self.formula, FORMULAS))
        check_arguments(self.formula, self.arguments)
        return self


class Measured(Quantity):
    """A cell that is the mean of a quantity."""

    digits: Annotated[int, Field(strict=True, ge=0, le=9)] = 1


def _cell_tag(given: Any) -> str:
    if isinstance(given, Measured) or (isinstance(given, dict) and "metric" in given):
        return "<measured>"
    return "<computed>" if isinstance(given, dict | Computed) else "<value>"


Cell = Annotated[
    Annotated[Computed, Tag("<computed>")]
    | Annotated[Measured, Tag("<measured>")]
    | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(_cell_tag),
]


class Table(Figure):
    """A table of texts, numbers, computed and measured cells."""

    kind: Literal["table"]
    columns: tuple[f.Text, ...] = Field(min_length=1)
    rows: tuple[tuple[Cell, ...], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_rows(self) -> Table:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise f.fault(f"row {number} has {len(row)} cells, the table has {len(self.columns)} columns")
        return self

    @property
    def measured(self) -> dict[tuple[int, int], Measured]:
        """The measured cells by row and column."""
        cells = (((i, j), cell) for i, row in enumerate(self.rows) for j, cell in enumerate(row))
        return {place: cell for place, cell in cells if isinstance(cell, Measured)}


class Curve(Closed):
    """A formula as a curve, with all its arguments but the one along the x axis."""

    formula: f.Text
    arguments: dict[str, f.FactorValue] = Field({}, description="by name; numbers or quantities")
    label: f.Text
    algorithm: f.Name = Field("standard", description="whose colour it has")


class Curves(Figure):
    """Formulas drawn over one of their arguments, both axes logarithmic."""

    kind: Literal["curves"]
    x: f.Name = Field(description="the argument along the x axis")
    between: tuple[f.Number, f.Number] = Field(description="the smallest and the largest value of x")
    curves: tuple[Curve, ...] = Field(min_length=1)
    labels: Labels

    @model_validator(mode="after")
    def _check_curves(self) -> Curves:
        low, high = self.between
        if not 0 < low < high:
            raise f.fault(f"between {low:g} and {high:g} is no range above 0")
        for curve in self.curves:
            if curve.formula not in FORMULAS:
                raise f.fault(*unknown("formula", curve.formula, FORMULAS))
            check_arguments(curve.formula, {**curve.arguments, self.x: low})
        return self


KINDS = ("bars", "timeseries", "ranking", "topology", "table", "curves")


def _known_kind(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise f.fault(f"{given!r} is not a mapping of keys to values")
    if given.get("kind") not in KINDS:
        raise f.fault(*unknown("kind of figure", given.get("kind"), KINDS))
    return given


OneFigure = Bars | TimeSeries | Ranking | Topology | Table | Curves
AnyFigure = Annotated[
    Annotated[Bars, Tag("<bars>")]
    | Annotated[TimeSeries, Tag("<timeseries>")]
    | Annotated[Ranking, Tag("<ranking>")]
    | Annotated[Topology, Tag("<topology>")]
    | Annotated[Table, Tag("<table>")]
    | Annotated[Curves, Tag("<curves>")],
    Discriminator(lambda given: f"<{given['kind'] if isinstance(given, Mapping) else given.kind}>"),
    BeforeValidator(_known_kind),
]


def in_unit(value: float, unit: str | None) -> float:
    """A number of base units in the unit of an axis."""
    return value / _UNITS[unit] if unit else value
