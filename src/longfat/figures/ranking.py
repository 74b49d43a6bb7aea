# SPDX-License-Identifier: Apache-2.0
"""Rankings: the values of a factor from the best to the worst. The rule is in ``longfat.relations.ranking``."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure as Canvas
from pydantic import Field

from longfat.dataset.load import Dataset
from longfat.figures.base import (
    Figure,
    Sources,
    TermText,
    among,
    chosen,
    experiment_of,
    factor_findings,
    term_findings,
    value_findings,
)
from longfat.figures.parts import FigureData, ascending, table, table_height, tick
from longfat.manifest.study import Study
from longfat.manifest.sweep import base_value
from longfat.metrics import METRICS
from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection, measure
from longfat.relations.nodes import Expression
from longfat.relations.ranking import ranking
from longfat.relations.syntax import parse_term
from longfat.schema import fields as f
from longfat.schema.names import Finding


class Ranking(Figure):
    """The values of a factor from the best to the worst, next to the paper's order."""

    artifact: f.Name = Field(alias="ranking")
    of: TermText = Field(description="what the order goes by")
    then: TermText = Field(description="what decides among those that are alike")
    by: f.FactorName = Field(description="the factor whose values are ranked")
    names: dict[f.Name, f.Text] = Field({}, description="what the columns call a flow")
    expected: tuple[f.FactorValue, ...] = Field((), description="the paper's order, best first")

    def faults(self) -> Iterator[Finding]:
        """The combinations of keys that are not allowed."""
        if len(set(self.expected)) < len(self.expected):
            yield Finding(("expected",), "names a value twice")

    def findings(self, study: Study) -> Iterator[Finding]:
        """The names in it that the study lacks."""
        found = [*term_findings(self.of, "of", study), *term_findings(self.then, "then", study)]
        yield from found
        if found:
            return
        first, second = chosen(self.of, study), chosen(self.then, study)
        if first.experiment != second.experiment:
            yield Finding(
                ("then",), f"is of experiment {second.experiment!r}, not of {first.experiment!r} as the first"
            )
        experiment = experiment_of(first, study)
        yield from factor_findings(self.by, ("by",), experiment)
        yield from among("flow", self.names, ("names",), experiment.flows)
        for index, value in enumerate(self.expected):
            yield from value_findings(self.by, value, ("expected", index), experiment)

    def expressions(self) -> Iterator[Expression]:
        """The metrics that it ranks by."""
        yield parse_term(self.of)
        yield parse_term(self.then)

    def data(self, sources: Sources) -> FigureData:
        """Rank, value, both quantities with their deviation, n, and the rank in the paper."""
        return ranking_data(self, sources)

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """The data as a table."""
        table(canvas.add_subplot(), data)

    def height(self, data: FigureData, sources: Sources) -> float:
        """As high as its rows."""
        return table_height(data) if data.rows else 1.2


def ranking_data(spec: Ranking, sources: Sources) -> FigureData:
    """Rank, value, both quantities with their deviation, n, and the rank in the paper.

    Values that cannot be ranked come last, without a rank; no rows when none can be.
    """
    dataset = sources.grounds.dataset
    first, second = chosen(spec.of, sources.study), chosen(spec.then, sources.study)
    columns = ("rank", spec.by, *_headings(first, spec), *_headings(second, spec), "n", "rank in the paper")
    try:
        order = ranking(dataset, first, second, spec.by)
    except NoValue:
        return FigureData(columns, (), ())
    known = {run.factors[spec.by] for run in first.chosen(dataset) if spec.by in run.factors}
    unranked = sorted(known - set(order), key=ascending)
    places = {base_value(value): place for place, value in enumerate(spec.expected, start=1)}
    ranks = (*order, *unranked)
    rows = [
        (
            order.index(value) + 1 if value in order else "-",
            tick(value),
            *_numbers(dataset, first.narrowed(spec.by, value))[:2],
            *_numbers(dataset, second.narrowed(spec.by, value)),
            places.get(value, "-"),
        )
        for value in ranks
    ]
    runs = [sources.runs(*(one.narrowed(spec.by, value) for one in (first, second))) for value in ranks]
    return FigureData(columns, tuple(rows), tuple(runs))


def _headings(quantity: Selection, spec: Ranking) -> tuple[str, str]:
    """Headings of the mean and of the standard deviation."""
    metric = METRICS[quantity.metric]
    unit = f" ({metric.unit})" if metric.unit else ""
    if quantity.flow is None:
        return f"combined {metric.meaning}{unit}", "sd of combined"
    whose = spec.names.get(quantity.flow, quantity.flow)
    return f"{metric.meaning} of {whose}{unit}", f"sd of {whose}"


def _numbers(dataset: Dataset, selection: Selection) -> tuple[str, str, int]:
    """Mean and standard deviation to a tenth, as texts, and the number of repetitions."""
    try:
        found = measure(dataset, selection, least=1)
    except NoValue:
        return "-", "-", 0
    return f"{found.value:.1f}", "-" if found.sd is None else f"{found.sd:.1f}", found.n
