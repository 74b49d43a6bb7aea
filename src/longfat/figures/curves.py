# SPDX-License-Identifier: Apache-2.0
"""Formulas as curves over one of their arguments, on logarithmic axes; nothing is measured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure as Canvas
from pydantic import Field, model_validator

from longfat.figures import style
from longfat.figures.base import Figure, Sources, distinct
from longfat.figures.parts import FigureData, Labels, label_axes, label_powers, legend
from longfat.relations.bind import RelationError, Value
from longfat.relations.claims import placed
from longfat.relations.nodes import Formula
from longfat.relations.syntax import parse_formula
from longfat.relations.tree import check_formula, computed
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding
from longfat.study.study import Study

POINTS = 400  # enough points to show a step as an edge


class Curve(f.Closed):
    """A formula as a curve, with all arguments except the one along the x axis."""

    of: f.Text = Field(description="such as `scalable_loss_rate(a=0.01, b=0.125, lwnd=16)`")
    label: f.Text
    algorithm: f.Name = Field("standard", description="the algorithm with its colour")


class Curves(Figure):
    """Formulas drawn over one of their arguments, both axes logarithmic."""

    artifact: f.Name = Field(alias="curves")
    x: f.Name = Field(description="the argument along the x axis")
    between: tuple[f.Number, f.Number] = Field(description="the smallest and the largest value of x")
    curves: tuple[Curve, ...] = Field(min_length=1, alias="of")
    labels: Labels

    @model_validator(mode="after")
    def _check_range(self) -> Curves:
        low, high = self.between
        if not 0 < low < high:
            raise f.fault(f"between {low:g} and {high:g} is not a range above 0")
        return self

    def findings(self, study: Study) -> Iterator[Finding]:
        """Yield the faults of its formulas and names."""
        yield from distinct((("of", index, "label"), curve.label) for index, curve in enumerate(self.curves))
        for index, curve in enumerate(self.curves):
            try:
                check_formula(self._at(curve, self.between[0]))
            except RelationError as error:
                yield Finding(("of", index, "of"), placed(curve.of, error), error.hint)

    def _at(self, curve: Curve, x: float) -> Formula:
        """Return the formula of a curve at a value of x. Raises RelationError."""
        formula = parse_formula(curve.of)
        return Formula(formula.name, (*formula.arguments, (self.x, Value(x, f"{x:g}", 1))), formula.column)

    def data(self, sources: Sources) -> FigureData:
        """Compute label, x and the value of the formula, curve by curve."""
        rows = [
            (curve.label, float(f"{x:.6g}"), float(f"{computed(self._at(curve, float(x))):.6g}"))
            for curve in self.curves
            for x in np.geomspace(*self.between, POINTS)
        ]
        return FigureData(("curve", self.x, "value"), tuple(rows))

    def draw(self, canvas: Canvas, data: FigureData, sources: Sources) -> None:
        """Draw a line for each curve."""
        axes = canvas.add_subplot(xscale="log", yscale="log")
        for curve in self.curves:
            x, values = zip(*(row[1:] for row in data.rows if row[0] == curve.label), strict=True)
            axes.plot(x, values, lw=1.4, color=style.look(curve.algorithm)[0], label=curve.label)
        label_powers(axes.xaxis)
        label_powers(axes.yaxis)
        label_axes(axes, self.labels)
        self.mark([axes])
        legend(canvas, "computed")
