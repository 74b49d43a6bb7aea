# SPDX-License-Identifier: Apache-2.0
"""Converts figures of format 1: their quantities become texts of the language of relations, implied labels are dropped.

Knows the keys of which format 2 has another form; all others are passed on, and format 2's own models check them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from longfat.convert.claims import formula_text
from longfat.convert.document import document_text
from longfat.convert.former import Condition, Quantity
from longfat.convert.terms import Terms
from longfat.figures import KINDS
from longfat.figures.bars import Bars as NewBars
from longfat.figures.document import Coverage
from longfat.figures.timeseries import TimeSeries as NewTimeSeries
from longfat.manifest import fields as f
from longfat.manifest.closed import Closed
from longfat.manifest.document import document_of
from longfat.manifest.explain import explain
from longfat.manifest.names import Finding, unknown
from longfat.manifest.source import read_source
from longfat.manifest.study import Study
from longfat.metrics.registry import load_own_metrics

Data = dict[str, object]


class Figure(BaseModel):
    """The keys of every figure; keys that are not named here are unchanged."""

    model_config = ConfigDict(extra="allow", frozen=True)

    artifact: f.Name
    part_of: f.Name | None = None
    title: f.Text
    labels: dict[str, str] | None = None
    paper: Stated

    def entry(self, kind: str, terms: Terms) -> Data:
        """The figure as data of format 2."""
        head: Data = {kind: self.artifact, "part_of": self.part_of, "title": self.title}
        entry = _without_none({**head, **self.own(terms), **(self.model_extra or {})})
        if self.labels is not None and self.labels != _labels(kind, {**entry, "paper": self.paper.text}):
            entry["labels"] = self.labels
        marks = {"marks": self.paper.marks} if self.paper.marks else {}
        return {**entry, "paper": self.paper.text, **marks}

    def own(self, terms: Terms) -> Data:
        """The keys of its kind that have another form now."""
        return {}

    def quantities(self) -> Iterator[tuple[tuple[str | int, ...], Quantity]]:
        """The quantities that it names, with their places."""
        yield from ((((key,), value)) for key, value in self if isinstance(value, Quantity))


class Stated(Closed):
    """The paper's statement about the artifact."""

    text: f.Text
    marks: list[Data] = Field([])


class Bars(Figure):
    """Mean of a quantity for each value of a factor."""

    kind: Literal["bars"]
    of: Quantity
    x: f.FactorName
    x_unit: f.Text | None = None

    def own(self, terms: Terms) -> Data:
        """The metric, and the axis with its unit."""
        return {"of": terms.of(self.of).text(), "x": f"{self.x} in {self.x_unit}" if self.x_unit else self.x}


class TimeSeries(Figure):
    """Runs over time."""

    kind: Literal["timeseries"]
    experiment: f.Text
    where: dict[f.FactorName, Condition] = Field({})
    flow: f.Name | None = None

    def own(self, terms: Terms) -> Data:
        """The chosen runs and the flow."""
        items = terms.items(self.experiment, self.where, {"flow": self.flow} if self.flow else {})
        return {"runs": ", ".join(item.text for item in items)}

    def quantities(self) -> Iterator[tuple[tuple[str | int, ...], Quantity]]:
        """Its runs, as a quantity."""
        yield (), Quantity(metric="goodput", experiment=self.experiment, where=self.where)


class Ranking(Figure):
    """The values of a factor from the best to the worst."""

    kind: Literal["ranking"]
    of: Quantity
    then: Quantity

    def own(self, terms: Terms) -> Data:
        """Both metrics."""
        return {"of": terms.of(self.of).text(), "then": terms.of(self.then).text()}


class Topology(Figure):
    """The network of an experiment."""

    kind: Literal["topology"]


class Computed(Closed):
    """A cell that a formula fills."""

    formula: f.Text
    arguments: dict[str, f.FactorValue] = Field({})
    digits: int | None = None


class Measured(Quantity):
    """A cell that is the mean of a quantity."""

    digits: int | None = None


def _cell(given: object) -> str:
    if not isinstance(given, Mapping):
        return "<value>"
    return "<measured>" if "metric" in given else "<computed>"


Cell = Annotated[
    Annotated[Computed, Tag("<computed>")]
    | Annotated[Measured, Tag("<measured>")]
    | Annotated[f.FactorValue, Tag("<value>")],
    Discriminator(_cell),
]


class Table(Figure):
    """A table of texts, numbers, computed and measured cells."""

    kind: Literal["table"]
    columns: list[str]
    rows: list[list[Cell]]

    def own(self, terms: Terms) -> Data:
        """The rows with their expressions."""
        return {"columns": self.columns, "rows": [[_expression(cell, terms) for cell in row] for row in self.rows]}

    def quantities(self) -> Iterator[tuple[tuple[str | int, ...], Quantity]]:
        """The measured cells."""
        for i, row in enumerate(self.rows):
            yield from ((("rows", i, j), cell) for j, cell in enumerate(row) if isinstance(cell, Quantity))


def _expression(cell: Cell, terms: Terms) -> object:
    if isinstance(cell, Measured):
        of = terms.of(cell).text()
    elif isinstance(cell, Computed):
        of = formula_text(cell.formula, cell.arguments, terms)
    else:
        return cell
    return _without_none({"of": of, "digits": cell.digits})


class Curve(Closed):
    """A formula as a curve."""

    formula: f.Text
    arguments: dict[str, f.FactorValue] = Field({})
    label: f.Text
    algorithm: f.Name | None = None


class Curves(Figure):
    """Formulas over one of their arguments."""

    kind: Literal["curves"]
    x: f.Name
    between: list[f.FactorValue]
    curves: list[Curve]

    def own(self, terms: Terms) -> Data:
        """The formulas with their arguments."""
        curves = [
            _without_none(
                {
                    "of": formula_text(curve.formula, curve.arguments, terms),
                    "label": curve.label,
                    "algorithm": curve.algorithm,
                }
            )
            for curve in self.curves
        ]
        return {"x": self.x, "between": self.between, "of": curves}


def _without_none(data: Data) -> Data:
    return {key: value for key, value in data.items() if value is not None}


def _labels(kind: str, data: Data) -> dict[str, str] | None:
    """The labels that a figure has when it gives none; None where it has to give them, or cannot be read."""
    try:
        figure = KINDS[kind].model_validate(data)
        return figure.axes_labels.model_dump() if isinstance(figure, NewBars | NewTimeSeries) else None
    except (ValidationError, KeyError):
        return None


_FORMER = ("bars", "timeseries", "ranking", "topology", "table", "curves")


def _known_kind(given: object) -> object:
    if not isinstance(given, Mapping):
        raise f.fault(f"{given!r} is not a mapping of keys to values")
    if given.get("kind") not in _FORMER:
        raise f.fault(*unknown("kind of figure", given.get("kind"), _FORMER))
    return given


AnyFigure = Annotated[
    Annotated[Bars, Tag("<bars>")]
    | Annotated[TimeSeries, Tag("<timeseries>")]
    | Annotated[Ranking, Tag("<ranking>")]
    | Annotated[Topology, Tag("<topology>")]
    | Annotated[Table, Tag("<table>")]
    | Annotated[Curves, Tag("<curves>")],
    Discriminator(lambda given: f"<{given['kind']}>"),
    BeforeValidator(_known_kind),
]


class FiguresDocument(Closed):
    """The whole of a figures.yaml of format 1."""

    format: Literal[1]
    study: f.Name
    paper: Coverage | None = None
    figures: tuple[AnyFigure, ...]


def converted_figures(path: FilePath, study: Study) -> str:
    """The text of a ``figures.yaml`` of format 1 in format 2, for the ``study`` in format 2.

    Raises StudyError with all that is wrong with it, of which each problem names the figure.
    """
    load_own_metrics(path.parent)
    terms = Terms(study)
    entries: list[Data] = []

    def check(document: FiguresDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, figure in enumerate(document.figures):
            found = [one for place, quantity in figure.quantities() for one in terms.findings(quantity, place)]
            entries.append(figure.entry(figure.kind, terms))
            found = found or list(_faults(figure.kind, entries[-1], study))
            for one in found:
                message = f"figure {figure.artifact!r}: {one.message}"
                yield Finding(("figures", index, *one.path), message, one.hint)

    document_of(read_source(path), FiguresDocument, "figures", "artifact", check)
    return document_text(path, "figures", entries)


def _faults(kind: str, entry: Data, study: Study) -> Sequence[Finding]:
    """The problems that format 2 finds in a figure."""
    model = KINDS[kind]
    try:
        figure = model.model_validate(entry)
    except ValidationError as error:
        return explain(error, entry, model)
    return [*figure.faults(), *figure.findings(study)]
