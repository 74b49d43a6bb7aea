# SPDX-License-Identifier: Apache-2.0
"""Rankings and tables: the rows of a table that is measured, and of one that is written or computed.

Owns their columns. The order itself is that of ``longfat.analysis.ranking``.
"""

from __future__ import annotations

from longfat.analysis.draw_parts import FigureData, ascending, tick
from longfat.analysis.expressions import Quantity, base_units, compute
from longfat.analysis.figure_kinds import Cell, Computed, Measured, Ranking, Table
from longfat.analysis.metric_table import METRICS
from longfat.analysis.metrics import NoValue
from longfat.analysis.quantities import Selection, measure
from longfat.analysis.ranking import ranking
from longfat.dataset.load import Dataset


def ranking_data(dataset: Dataset, spec: Ranking) -> FigureData:
    """Rank, value, both quantities with their deviation, n, and the rank in the paper.

    Values that cannot be ranked stand last, without a rank; no rows when none can be.
    """
    first, second = spec.of.selection(), spec.then.selection()
    columns = ("rank", spec.by, *_headings(spec.of, spec), *_headings(spec.then, spec), "n", "rank in the paper")
    try:
        order = ranking(dataset, first, second, spec.by)
    except NoValue:
        return FigureData(columns, ())
    known = {run.factors[spec.by] for run in first.chosen(dataset) if spec.by in run.factors}
    unranked = sorted(known - set(order), key=ascending)
    places = {base_units(value): place for place, value in enumerate(spec.expected, start=1)}
    rows = [
        (
            order.index(value) + 1 if value in order else "-",
            tick(value),
            *_numbers(dataset, first.narrowed(spec.by, value))[:2],
            *_numbers(dataset, second.narrowed(spec.by, value)),
            places.get(value, "-"),
        )
        for value in (*order, *unranked)
    ]
    return FigureData(columns, tuple(rows))


def table_data(dataset: Dataset, spec: Table) -> FigureData:
    """The table with its formulas computed and its quantities measured."""
    return FigureData(spec.columns, tuple(tuple(_cell(dataset, cell) for cell in row) for row in spec.rows))


def _cell(dataset: Dataset, cell: Cell) -> object:
    """What stands in a cell; of a quantity the mean, its deviation and n, or a dash where there is no value."""
    if isinstance(cell, Computed):
        return _number(compute(cell.formula, cell.arguments), cell.digits)
    if not isinstance(cell, Measured):
        return cell
    try:
        found = measure(dataset, cell.selection(), least=1)
    except NoValue:
        return "-"
    spread = "" if found.sd is None else f" \N{PLUS-MINUS SIGN} {_number(found.sd, cell.digits)} (n = {found.n})"
    return f"{_number(found.mean, cell.digits)}{spread}"


def _number(value: float, digits: int) -> str:
    """So many digits behind the point; of a number too small for them, in scientific notation."""
    small = 0 < abs(value) < 10**-digits
    return f"{value:.{digits}{'e' if small else 'f'}}"


def _headings(quantity: Quantity, spec: Ranking) -> tuple[str, str]:
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
    return f"{found.mean:.1f}", "-" if found.sd is None else f"{found.sd:.1f}", found.n
