# SPDX-License-Identifier: Apache-2.0
"""Published series and laws, drawn into the axes of measured series: points from a CSV file, and dashed curves.

Each source has its own marker and label, so that points of two sources are never mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path as FilePath
from typing import Any

from matplotlib.axes import Axes
from pydantic import Field

from longfat.figures import style
from longfat.figures.parts import in_base
from longfat.figures.table import FileText
from longfat.relations.bind import RelationError
from longfat.relations.claims import placed
from longfat.relations.syntax import parse_formula
from longfat.relations.tables import Row, TableError, read_rows
from longfat.relations.tree import check_formula, computed
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding

Looks = Mapping[tuple[str | None, Any], str]  # the colour of each series, by its factor and value
Factors = Mapping[str, Sequence[object]]  # the values of each factor
DASHES = ("--", ":", "-.")  # of the laws, in their order
MARKERS = ("s", "^", "D", "v")  # of the sources, in their order
Points = Mapping[str, Sequence[tuple[float, float]]]  # x in the unit of the axis, and y, by series


class Published(f.Closed):
    """A published series: two columns of a CSV file next to figures.yaml, in the units of the axes."""

    label: f.Text = Field(description="its source")
    file: FileText
    x: f.Text = Field(description="the column of x")
    y: f.Text = Field(description="the column of y")
    series: f.Text | None = Field(None, description="the column that names the measured series of a point")
    of: f.Text | None = Field(None, description="instead of `series`: the one measured series of all points")
    where: dict[f.Text, f.Text] = Field({}, description="texts of columns that a row must have")

    @cached_property
    def points(self) -> Points:
        """The points by series, "" without one. Raises TableError."""
        found: dict[str, list[tuple[float, float]]] = {}
        needed = (self.x, self.y, *([self.series] if self.series else []), *self.where)
        for row in read_rows(FilePath(self.file), *needed):
            if row.columns[self.y] and all(row.columns[name] == text for name, text in self.where.items()):
                key = row.columns[self.series] if self.series else self.of or ""
                found.setdefault(key, []).append((self._number(row, self.x), self._number(row, self.y)))
        if not found:
            raise TableError(f"{FilePath(self.file).name} has no row of this series")
        return found

    def _number(self, row: Row, column: str) -> float:
        try:
            return float(row.columns[column])
        except ValueError:
            name, text = FilePath(self.file).name, row.columns[column]
            raise TableError(f"{name}, line {row.line}: {column} is {text!r}, not a number") from None


class Law(f.Closed):
    """A formula as a curve for each measured series."""

    label: f.Text
    of: f.Text = Field(description="a formula; `${FACTOR}` is the value on the x axis, or of the series")

    def at(self, values: Mapping[str, object]) -> float:
        """Return the value of the formula for these factor values in base units. Raises RelationError."""
        text = self.of
        for name, value in values.items():
            text = text.replace(f"${{{name}}}", str(value))
        formula = parse_formula(text)
        check_formula(formula)
        return computed(formula)


class WithSources(f.Closed):
    """The keys of a figure over a factor that shows published series and laws next to its measured series."""

    published: tuple[Published, ...] = Field((), description="published series, with style lines")
    laws: tuple[Law, ...] = Field((), description="formulas as curves, with style lines")

    def source_findings(self, factors: Factors) -> Iterator[Finding]:
        """Yield the faults of files, and of formulas at the first value of each factor."""
        yield from published_findings(self.published)
        for place, law in enumerate(self.laws):
            try:
                law.at({name: values[0] for name, values in factors.items()})
            except RelationError as error:
                yield Finding(("laws", place, "of"), placed(law.of, error), error.hint)
            except (ArithmeticError, ValueError) as error:
                yield Finding(("laws", place, "of"), f"has no value at the first value of each factor: {error}")

    def all_x(self, measured: Iterable[Any], unit: str | None) -> list[Any]:
        """Return the values of x of all series, in base units: numbers ascending, texts in their order."""
        values = list(dict.fromkeys(measured))
        if any(isinstance(one, str) for one in values):
            return values
        published = {in_base(x, unit) for one in self.published for points in one.points.values() for x, _ in points}
        return sorted({*values, *published})

    def draw_sources(self, axes: Axes, x: str, unit: str | None, xs: Mapping[Any, float], series: Looks) -> None:
        """Draw published series and laws over ``xs``, the positions of the values of factor ``x``."""
        for law, dashes in zip(self.laws, DASHES, strict=False):
            for (name, value), colour in series.items():
                values = [law.at({x: one, str(name): value}) for one in xs]
                axes.plot(list(xs.values()), values, color=colour, ls=dashes, lw=1.0)
            axes.plot([], [], color=style.INK, ls=dashes, lw=1.0, label=law.label)
        colours = {str(value): colour for (_, value), colour in series.items()}
        draw_published(axes, self.published, colours, lambda value: xs[in_base(value, unit)])
        if self.published or self.laws:
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.05 * axes.dataLim.y1))


def published_findings(published: Sequence[Published]) -> Iterator[Finding]:
    """Yield the faults of files."""
    for place, one in enumerate(published):
        if one.series and one.of:
            yield Finding(("published", place, "of"), "cannot be combined with series")
        try:
            _ = one.points
        except TableError as error:
            yield Finding(("published", place, "file"), str(error))


def draw_published(axes: Axes, published: Sequence[Published], colours: Mapping[str, str], place: Any = float) -> None:
    """Draw the points of each source in the colours of the measured series; ``place`` maps x to the axis."""
    for one, marker in zip(published, MARKERS, strict=False):
        look: Any = {"ls": "", "marker": marker, "ms": 5.5, "mfc": "none", "mew": 1.0}
        for name, points in one.points.items():
            if one.series and name not in colours:  # no measured series has its colour
                continue
            x, y = zip(*points, strict=True)
            axes.plot([place(value) for value in x], y, color=colours.get(name, style.INK), **look)
        axes.plot([], [], color=style.INK, label=one.label, **look)
