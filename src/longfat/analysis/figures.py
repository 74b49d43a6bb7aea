# SPDX-License-Identifier: Apache-2.0
"""Which figures and tables a study draws: the closed format of figures.yaml, with all problems at once.

Owns what a figure shows, of which experiment, and what the paper states beside it. Draws nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from longfat.analysis.claims import factor_findings, load_document, quantity_findings, study_beside
from longfat.analysis.expressions import Quantity, check_arguments
from longfat.analysis.formulas import FORMULAS
from longfat.analysis.quantities import METRICS
from longfat.errors import StudyError
from longfat.manifest import fields as f
from longfat.manifest.models import Closed
from longfat.manifest.names import Finding, unknown
from longfat.units import Duration, Size

FIGURES = "figures.yaml"
_UNITS = {**Size.units, **Duration.units}


def _unit(given: object) -> object:
    if given not in _UNITS:
        raise f.fault(*unknown("unit", given, _UNITS))
    return given


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
    title: f.Text = Field(description="one line in our own words")
    paper: Stated


class Bars(Figure):
    """Mean of a quantity for each value of a factor, a series for each value of another."""

    kind: Literal["bars"]
    of: Quantity
    x: f.FactorName
    x_unit: Annotated[str, BeforeValidator(_unit)] | None = None
    series: f.FactorName
    labels: Labels

    @model_validator(mode="after")
    def _check_metric(self) -> Bars:
        allowed = [name for name, metric in METRICS.items() if metric.source == "flows"]
        if self.of.metric not in allowed:
            raise f.fault(*unknown("metric of bars", self.of.metric, allowed))
        return self


class TimeSeries(Figure):
    """Outstanding data of one captured flow over time."""

    kind: Literal["timeseries"]
    experiment: f.ExperimentId
    flow: f.Name | None = None
    algorithm: f.Name = Field("standard", description="whose colour the curve has")
    since: f.Delay = Duration(0)
    until: f.Delay | None = None
    labels: Labels


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


Cell = Annotated[
    Annotated[Computed, Tag("<computed>")] | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(lambda given: "<computed>" if isinstance(given, dict | Computed) else "<value>"),
]


class Table(Figure):
    """A table of texts, numbers and computed cells."""

    kind: Literal["table"]
    columns: tuple[f.Text, ...] = Field(min_length=1)
    rows: tuple[tuple[Cell, ...], ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_rows(self) -> Table:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise f.fault(f"row {number} has {len(row)} cells, the table has {len(self.columns)} columns")
        return self


KINDS = ("bars", "timeseries", "table")


def _known_kind(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise f.fault(f"{given!r} is not a mapping of keys to values")
    if given.get("kind") not in KINDS:
        raise f.fault(*unknown("kind of figure", given.get("kind"), KINDS))
    return given


AnyFigure = Annotated[
    Annotated[Bars, Tag("<bars>")] | Annotated[TimeSeries, Tag("<timeseries>")] | Annotated[Table, Tag("<table>")],
    Discriminator(lambda given: f"<{given['kind'] if isinstance(given, Mapping) else given.kind}>"),
    BeforeValidator(_known_kind),
]


class Coverage(Closed):
    """How many artifacts and claims the paper has, so that the report can say how many are here."""

    artifacts: f.Count
    claims: f.Count


class FiguresDocument(Closed):
    """The whole of figures.yaml."""

    format: Literal[1] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    paper: Coverage | None = Field(None, description="size of the paper's catalogue")
    figures: tuple[AnyFigure, ...] = Field(description="the figures, in the order of the report")

    def figure(self, artifact: str) -> Bars | TimeSeries | Table:
        """The figure of an artifact. Raises StudyError when there is none."""
        for figure in self.figures:
            if figure.artifact == artifact:
                return figure
        message, hint = unknown("artifact", artifact, [figure.artifact for figure in self.figures])
        raise StudyError(message, where=FIGURES, hint=hint)


def load_figures(path: FilePath) -> FiguresDocument:
    """Read and check a ``figures.yaml``, against the ``study.yaml`` in the same folder when there is one.

    Raises StudyError when it cannot be read, or with all its problems, each with file, line and key.
    """
    study = study_beside(path)

    def check(document: FiguresDocument) -> Iterator[Finding]:
        if study and document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        experiments = {item.id: item for item in study.experiments} if study else {}
        for index, figure in enumerate(document.figures):
            place = ("figures", index)
            if isinstance(figure, Bars):
                yield from quantity_findings(figure.of, (*place, "of"), study)
                if experiment := experiments.get(figure.of.experiment):
                    yield from factor_findings(figure.x, (*place, "x"), experiment)
                    yield from factor_findings(figure.series, (*place, "series"), experiment)
            if isinstance(figure, TimeSeries) and study and figure.experiment not in experiments:
                message, hint = unknown("experiment", figure.experiment, experiments)
                yield Finding((*place, "experiment"), message, hint)

    return load_document(path, FiguresDocument, "figures", "artifact", check)


def in_unit(value: float, unit: str | None) -> float:
    """A number of base units in the unit of an axis."""
    return value / _UNITS[unit] if unit else value
