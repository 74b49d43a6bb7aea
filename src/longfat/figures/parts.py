# SPDX-License-Identifier: Apache-2.0
"""The parts of every figure: data, title, stated numbers, tables, and the legend with its note."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter
from matplotlib.transforms import Bbox
from pydantic import Field

from longfat.figures import style
from longfat.spec.units import Duration, Rate, Ratio, Size
from longfat.study.schema import fields as f

WIDTH = 7.2  # inches
RUN_IDS = "run_ids"  # the last column of a CSV file: the runs behind a line
RUN_ID_DIGITS = 16  # digits of a run_id in a CSV file
EXPLORED_DIGITS = 12  # digits of a run_id in the explorer
TITLE = "title"  # the id of a drawing's title in its SVG
_TITLE = 84  # characters of a title in one line
_HEADINGS = (16, 12, 9)  # characters of a heading in one line: the first width that fits, else the last
_TABLE = 92  # characters across a table in the usual size; a wider table has smaller letters
_TABLE_FONT = 9.0
_LINE = 0.24  # height of a line of a table in inches
_RAISED = str.maketrans("-0123456789", "\N{SUPERSCRIPT MINUS}⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_GAPS = 20  # the widest true axis, in smallest gaps; on a wider one bars would be too thin
_EM = 0.62  # width of a letter, relative to the size of the text
_LEGEND = 0.75  # height of a legend in inches; a higher one makes the figure higher
_NEAR = 0.05  # labels of nearer lines, relative to the largest value, would overlap


UNITS = {**Size.units, **Duration.units, **Rate.units, **Ratio.units}


class Mark(f.Closed):
    """A stated number, drawn as a line at a value of y or x."""

    value: f.Number = Field(description="in the unit of its axis")
    label: f.Text = Field(description="its label")
    axis: Literal["y", "x"] = Field("y", description="the axis of the value")


class Labels(f.Closed):
    """Axis labels, each with its unit."""

    x: f.Text
    y: f.Text


def in_unit(value: float, unit: str | None) -> float:
    """Convert a number of base units to the unit of an axis."""
    return value / UNITS[unit] if unit else value


def in_base(value: float, unit: str | None) -> float:
    """Convert a number of the unit of an axis to whole base units."""
    return round(value * UNITS[unit]) if unit else value


@dataclass(frozen=True)
class FigureData:
    """The data of a figure as a table. ``runs`` has the ids of the runs behind each row.

    ``runs`` is None without runs, or if the rows have a column of runs.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    runs: tuple[tuple[str, ...], ...] | None = None

    @property
    def lines(self) -> Iterator[tuple[Any, ...]]:
        """The lines of the CSV file: headings and rows, with the runs of each row in the last column."""
        if self.runs is None:
            yield from (self.columns, *self.rows)
            return
        yield (*self.columns, RUN_IDS)
        for row, runs in zip(self.rows, self.runs, strict=True):
            yield (*row, " ".join(run_id[:RUN_ID_DIGITS] for run_id in runs))


def link_runs(
    axes: Axes,
    x: float,
    y: float,
    width: float,
    experiment: str,
    held: Mapping[str, Any],
    runs: Sequence[str],
    bottom: float = 0.0,
) -> None:
    """Put an invisible mark over a bar, cell or point, which in a report opens these runs in the explorer."""
    ids = ",".join(run_id[:EXPLORED_DIGITS] for run_id in runs)
    address = "#" + urlencode({"explore": experiment, **held, "runs": ids}, safe=",")
    if width:
        axes.fill_between([x - width / 2, x + width / 2], y, bottom, alpha=0, urls=[address])
    else:
        axes.scatter([x], [y], s=90, alpha=0, urls=[address])


def ascending(value: Any) -> tuple[bool, Any]:
    """Return the sort key of a value of a factor: numbers by size, then texts by alphabet."""
    return isinstance(value, str), value


def series_order(value: Any) -> tuple[Any, ...]:
    """Return the sort key of a value of a series: numbers by size, then algorithms in the order of the style."""
    return (True, *style.order(value)) if isinstance(value, str) else (False, value)


def tick(value: Any, unit: str | None = None) -> str:
    """Format a value of a factor at an axis or in a legend."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{in_unit(value, unit):.10g}" if isinstance(value, int | float) else str(value)


def title(figure: Figure, text: str) -> None:
    """Write the title of a figure, wrapped, at its left edge."""
    size = style.SETTINGS["axes.titlesize"]
    figure.suptitle(textwrap.fill(text, _TITLE), x=0.01, ha="left", fontsize=size).set_gid(TITLE)


def empty(figure: Figure, why: str) -> None:
    """Draw empty axes with a reason."""
    axes = figure.add_subplot(xticks=[], yticks=[])
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", color=style.SOFT)


def even_or_true(xs: Sequence[Any]) -> dict[Any, float]:
    """Return the position of each sorted x: numbers on a true axis in units of the smallest gap, else 0, 1, 2, ..."""
    if all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs) and len(xs) > 1:
        gap = min(high - low for low, high in itertools.pairwise(xs))
        if xs[-1] - xs[0] <= MOST_GAPS * gap:
            return {x: (x - xs[0]) / gap for x in xs}
    return {x: float(place) for place, x in enumerate(xs)}


def labelled(name: str, unit: str | None) -> str:
    """Format a name with its unit, if it has one."""
    return f"{name} ({unit})" if unit else name


def wrapped(text: str, inches: float, points: float) -> str:
    """Wrap a text of a size in points, so that it is not broader than a length."""
    return "\n".join(textwrap.fill(line, max(8, int(72 * inches / (_EM * points)))) for line in text.splitlines())


def name_ticks(axes: Axes, at: Sequence[float], values: Sequence[Any], unit: str | None = None) -> None:
    """Label places of the x axis with values of a factor; words are wrapped into the room between two places."""
    room = panel_width(axes) / max(len(values), 1)
    texts = [wrapped(tick(x), room, 10) if isinstance(x, str) else tick(x, unit) for x in values]
    axes.set_xticks(at, texts)


def panel_width(axes: Axes) -> float:
    """Return the width in inches of these axes with all that is next to them."""
    place = axes.get_subplotspec()
    return _size(axes)[0] / (place.get_gridspec().ncols if place else 1)


def _size(axes: Axes) -> tuple[float, float]:
    """Return width and height in inches of the whole figure."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure.get_figwidth(), figure.get_figheight()


def label_axes(axes: Axes, labels: Labels) -> None:
    """Label both axes."""
    axes.set_xlabel(wrapped(labels.x, 0.8 * panel_width(axes), 10))
    axes.set_ylabel(wrapped(labels.y, 0.65 * _size(axes)[1], 10))


def label_powers(axis: Axis) -> None:
    """Label the powers of ten of a logarithmic axis in plain letters."""
    axis.set_major_formatter(lambda value, _: f"10{str(round(math.log10(value))).translate(_RAISED)}")
    axis.set_minor_formatter(NullFormatter())


def table(axes: Axes, data: FigureData) -> None:
    """Draw the data as a table: columns as wide as their texts, headings wrapped."""
    axes.axis("off")
    headings = _headings(data)
    text = _text(data)
    lengths = _lengths(headings, text)
    widths = [length / sum(lengths) for length in lengths]
    drawn = axes.table(text, colLabels=headings, colWidths=widths, cellLoc="center", bbox=Bbox.unit())
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(_TABLE_FONT * min(1.0, _TABLE / sum(lengths)))
    highest = max(heading.count("\n") for heading in headings)
    for (row, _), cell in drawn.get_celld().items():
        cell.set_height(1.25 + 0.75 * highest if row == 0 else 1.25)
        cell.set_edgecolor("#d5dae0")
        cell.set_facecolor(style.GROUND if row == 0 else "white")


def table_height(data: FigureData) -> float:
    """Return the height of a table and its title in inches."""
    lines = 1.25 * (len(data.rows) + 1) + 0.75 * max(heading.count("\n") for heading in _headings(data))
    return _LINE * lines + 0.4


def _headings(data: FigureData) -> list[str]:
    """Return the headings, wrapped so that the table fits, if possible."""
    for width in _HEADINGS:
        headings = ["\n".join(textwrap.wrap(heading, width, break_long_words=False)) for heading in data.columns]
        if sum(_lengths(headings, _text(data))) <= _TABLE:
            break
    return headings


def _text(data: FigureData) -> list[list[str]]:
    return [["" if cell is None else str(cell) for cell in row] for row in data.rows]


def _lengths(headings: Sequence[str], text: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column in characters, with the space next to it."""
    columns = zip(*([heading.split("\n") for heading in headings], *text), strict=True)
    return [max(len(line) for line in (*heading, *cells)) + 2 for heading, *cells in columns]


def legend(
    figure: Figure, note: str | None, colours: Mapping[str, str] | None = None, hatches: Sequence[str] = ()
) -> None:
    """Draw a legend with a note below all axes: ``colours`` by label, with ``hatches``, then the axes' labels."""
    found: dict[str, Any] = {
        label: Patch(fc=colour, ec="white", lw=0, hatch=hatches[place % len(hatches)] if hatches else None)
        for place, (label, colour) in enumerate((colours or {}).items())
    }
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not (found or note):
        return
    names = [wrapped(label, figure.get_figwidth() - 1, 9) for label in found]
    look: Any = {"title": wrapped(note or "", figure.get_figwidth(), 8), "title_fontsize": 8}
    for columns in range(min(4, max(1, len(found))), 0, -1):
        drawn = figure.legend(list(found.values()), names, loc="outside lower center", ncols=columns, **look)
        size = drawn.get_window_extent()
        if columns == 1 or size.width <= figure.bbox.width:
            break
        drawn.remove()
    figure.set_figheight(figure.get_figheight() + max(0, size.height / figure.dpi - _LEGEND))


def counted(counts: Collection[int], elsewhere: str = "") -> str:
    """Format the number of repetitions behind a mean."""
    low, high = min(counts), max(counts)
    return f"n = {low}" if low == high else f"n = {low} to {high}{elsewhere}"


def draw_marks(panels: Sequence[Axes], marks: Sequence[Mark], name: str) -> None:
    """Draw stated numbers as dashed lines in all axes, with labels at the right or above; ``name`` is in the legend."""
    for mark in marks:
        width = 0.5 * panel_width(panels[0]) if mark.axis == "x" else 0.16 * _size(panels[0])[0]
        label = wrapped(mark.label, width, 8)
        colour = style.named_in(mark.label)  # the number of an algorithm has its colour
        own: Any = {"color": colour} if colour else {}
        for axes in panels:
            line = axes.axhline if mark.axis == "y" else axes.axvline
            first = mark is marks[0] and axes is panels[0]
            line(mark.value, label=name if first else None, **style.PAPER_MARK | own)
            if mark.axis == "x":
                place = axes.get_xaxis_transform()
                above: Any = {"ha": "center", "va": "bottom", "transform": place}
                axes.text(mark.value, 1.01, label, **above, **style.PAPER_LABEL | own)
            elif axes is panels[-1]:
                place = axes.get_yaxis_transform()
                side = label_side(mark.value, [other.value for other in marks if other.axis == "y"])
                axes.text(1.01, mark.value, label, transform=place, va=side, **style.PAPER_LABEL | own)


def label_side(value: float, all_values: Sequence[float]) -> str:
    """Return the side of the label of a line: away from a label that would overlap."""
    near = [other for other in all_values if 0 < abs(other - value) < _NEAR * max(map(abs, all_values))]
    if not near:
        return "center"
    return "top" if value < min(near) else "bottom" if value > max(near) else "center"
