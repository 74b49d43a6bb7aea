# SPDX-License-Identifier: Apache-2.0
"""Formulas as curves over one of their arguments, on logarithmic axes. Nothing of it is measured."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from longfat.analysis import style
from longfat.analysis.draw_parts import FigureData, label_axes, legend, marks
from longfat.analysis.expressions import compute
from longfat.analysis.figure_kinds import Curves

POINTS = 400  # on a logarithmic axis a step at a single value shows as an edge


def formula_data(spec: Curves) -> FigureData:
    """The curve's label, x and the formula's value, curve by curve."""
    places = np.geomspace(*spec.between, POINTS)
    rows = [
        (curve.label, float(f"{x:.6g}"), float(f"{compute(curve.formula, {**curve.arguments, spec.x: float(x)}):.6g}"))
        for curve in spec.curves
        for x in places
    ]
    return FigureData(("curve", spec.x, "value"), tuple(rows))


def draw_formulas(figure: Figure, spec: Curves, data: FigureData) -> None:
    """A line for each curve."""
    axes = figure.add_subplot(xscale="log", yscale="log")
    for curve in spec.curves:
        x, values = zip(*(row[1:] for row in data.rows if row[0] == curve.label), strict=True)
        axes.plot(x, values, lw=1.4, color=style.look(curve.algorithm)[0], label=curve.label)
    label_axes(axes, spec.labels)
    marks([axes], spec.paper)
    legend(figure, "computed")
