# SPDX-License-Identifier: Apache-2.0
"""Draws a figure of figures.yaml from the dataset, and saves it with its data beside it.

Owns drawing: a figure function takes data and returns a figure. No metric is defined here. Uncertainty and n
are always shown; what the paper states is drawn as a dashed line where it is a number.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from longfat.analysis import style
from longfat.analysis.expressions import compute
from longfat.analysis.figures import Bars, Computed, Stated, Table, TimeSeries, in_unit
from longfat.analysis.metrics import NoValue
from longfat.analysis.quantities import METRICS, measure, significant
from longfat.dataset.load import Dataset, Series
from longfat.errors import RigError

CURVE_BINS = 1200  # twice as many as a figure has points across: an envelope no eye can tell from the curve


@dataclass(frozen=True)
class FigureData:
    """What a figure shows, as a table: the text of its CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Drawing:
    """A drawn artifact with its data."""

    artifact: str
    figure: Figure
    data: FigureData

    def _repr_png_(self) -> bytes:
        return _image(self.figure, "png")


def draw(dataset: Dataset, spec: Bars | TimeSeries | Table) -> Drawing:
    """Draw one artifact; where there is no valid run the figure says so."""
    with matplotlib.rc_context(style.SETTINGS):
        figure = Figure(layout="constrained", figsize=_size(spec))
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.set_title(f"{spec.artifact}: {spec.title}")
        data = _data(dataset, spec)
        if not data.rows:
            # Without data the axes have no scale on which the paper's marks could stand.
            axes.text(0.5, 0.5, "no valid run", transform=axes.transAxes, ha="center", va="center", color="#777777")
        elif isinstance(spec, Bars):
            _draw_bars(axes, spec, data)
        elif isinstance(spec, TimeSeries):
            _draw_curves(axes, spec, data)
        else:
            _draw_table(axes, data)
        return Drawing(spec.artifact, figure, data)


def _data(dataset: Dataset, spec: Bars | TimeSeries | Table) -> FigureData:
    if isinstance(spec, Bars):
        return bars_data(dataset, spec)
    return curve_data(dataset, spec) if isinstance(spec, TimeSeries) else table_data(spec)


def save(drawing: Drawing, folder: Path) -> None:
    """Write ``<artifact>.png``, ``.svg`` and ``.csv``; equal drawings give equal bytes.

    Raises RigError when the folder cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([drawing.data.columns, *drawing.data.rows])
    files = {
        "png": _image(drawing.figure, "png"),
        "svg": _image(drawing.figure, "svg"),
        "csv": text.getvalue().encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, content in files.items():
            draft = folder / f".{drawing.artifact}.{kind}-{os.getpid()}"
            draft.write_bytes(content)
            draft.replace(folder / f"{drawing.artifact}.{kind}")
    except OSError as error:
        raise RigError(f"cannot write the figure {drawing.artifact}: {error}", where=str(folder)) from error


def bars_data(dataset: Dataset, spec: Bars) -> FigureData:
    """Mean, standard deviation, n and 95 % interval for each x and series that has a valid run."""
    selection = spec.of.selection()
    runs = [run for run in selection.chosen(dataset) if {spec.x, spec.series} <= run.factors.keys()]
    rows = []
    for x in sorted({run.factors[spec.x] for run in runs}, key=lambda value: (str(type(value)), value)):
        for name in dict.fromkeys(run.factors[spec.series] for run in runs):
            one = selection.narrowed(spec.x, x).narrowed(spec.series, name)
            try:
                found = measure(dataset, one, least=1)
            except NoValue:
                continue
            numbers = [value and significant(value) for value in (found.mean, found.sd, found.low, found.high)]
            rows.append((x, name, found.n, *numbers))
    # The lock is shuffled: series stand in an order of their own.
    rows.sort(key=lambda row: style.order(str(row[1])))
    names = ("n", "mean", "sd", "interval_low", "interval_high")
    return FigureData((spec.x, spec.series, *names), tuple(rows))


def curve_data(dataset: Dataset, spec: TimeSeries) -> FigureData:
    """Time in seconds and outstanding bytes of every valid repetition, thinned to the curve's envelope."""
    rows: list[tuple[Any, ...]] = []
    runs = [run for run in dataset.runs if run.experiment == spec.experiment and run.status == "ok"]
    for run in sorted(runs, key=lambda item: (item.repetition, item.scenario)):
        series = dataset.outstanding(run.run_id, spec.flow)
        until = np.inf if spec.until is None else spec.until.value
        inside = (series.t_us >= spec.since.value) & (series.t_us <= until)
        thin = envelope(Series(series.t_us[inside], series.values[inside]), CURVE_BINS)
        rows += [
            (run.scenario, run.repetition, round(float(t) / 1e6, 6), int(value))
            for t, value in zip(thin.t_us, thin.values, strict=True)
        ]
    return FigureData(("scenario", "repetition", "t_s", "outstanding_bytes"), tuple(rows))


def table_data(spec: Table) -> FigureData:
    """The table with its formulas computed."""
    rows = tuple(
        tuple(
            f"{compute(cell.formula, cell.arguments):.{cell.digits}f}" if isinstance(cell, Computed) else cell
            for cell in row
        )
        for row in spec.rows
    )
    return FigureData(spec.columns, rows)


def envelope(series: Series, bins: int) -> Series:
    """First, smallest, largest and last point of each of ``bins`` equal intervals: the curve as it looks."""
    count = len(series.t_us)
    if count <= 4 * bins:
        return series
    edges = np.linspace(series.t_us[0], series.t_us[-1], bins + 1)[1:-1]
    starts = np.unique(np.concatenate(([0], np.searchsorted(series.t_us, edges))))
    ends = np.append(starts[1:], count)
    kept: set[int] = set()
    for start, end in zip(starts, ends, strict=True):
        if end > start:
            part = series.values[start:end]
            kept |= {int(start), int(start + part.argmin()), int(start + part.argmax()), int(end - 1)}
    chosen = np.array(sorted(kept))
    return Series(series.t_us[chosen], series.values[chosen])


def _size(spec: Bars | TimeSeries | Table) -> tuple[float, float]:
    """Width and height in inches; a table is as high as its rows."""
    return (7.2, 0.3 * (len(spec.rows) + 1) + 0.5) if isinstance(spec, Table) else (7.2, 3.9)


def _draw_bars(axes: Axes, spec: Bars, data: FigureData) -> None:
    xs = sorted({row[0] for row in data.rows}, key=lambda value: (str(type(value)), value))
    names = list(dict.fromkeys(str(row[1]) for row in data.rows))
    width = 0.8 / max(len(names), 1)
    counts = {row[2] for row in data.rows}
    for place, name in enumerate(names):
        own = {row[0]: row for row in data.rows if str(row[1]) == name}
        at = [xs.index(x) + (place - (len(names) - 1) / 2) * width for x in own]
        means = [row[3] for row in own.values()]
        reach = [[row[3] - row[5] for row in own.values()], [row[6] - row[3] for row in own.values()]]
        colour, _ = style.look(name, place)
        axes.bar(at, means, width * 0.92, label=name, color=colour, yerr=reach, capsize=2, error_kw={"lw": 0.8})
        if len(counts) > 1:
            for x, row in zip(at, own.values(), strict=True):
                axes.text(x, 0, f"n={row[2]}", rotation=90, ha="center", va="bottom", fontsize=6, color="white")
    axes.set_xticks(range(len(xs)), [_tick(x, spec.x_unit) for x in xs])
    axes.grid(axis="x", visible=False)
    axes.set_xlabel(spec.labels.x)
    axes.set_ylabel(spec.labels.y)
    _draw_marks(axes, spec.paper)
    note = f"{METRICS[spec.of.metric].meaning}, mean"
    if data.rows:
        n = f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}, on each bar"
        note += f"; {n}; " + ("whiskers: 95 % interval" if max(counts) > 1 else "one run has no interval")
    _draw_legend(axes, note)


def _draw_curves(axes: Axes, spec: TimeSeries, data: FigureData) -> None:
    curves: dict[tuple[str, int], list[tuple[float, int]]] = {}
    for scenario, repetition, t_s, value in data.rows:
        curves.setdefault((scenario, repetition), []).append((t_s, value))
    colour, _ = style.look(spec.algorithm)
    for place, (name, points) in enumerate(curves.items()):
        t_s, values = zip(*points, strict=True)
        first = place == 0
        label = f"{name[0]}, run {name[1]} of {len(curves)}" if first else None
        axes.plot(t_s, values, lw=0.8, color=colour, alpha=1 if first else 0.25, label=label)
    axes.set_xlabel(spec.labels.x)
    axes.set_ylabel(spec.labels.y)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    _draw_marks(axes, spec.paper)
    _draw_legend(axes, None)


def _draw_table(axes: Axes, data: FigureData) -> None:
    axes.axis("off")
    text = [[str(cell) for cell in row] for row in data.rows]
    table = axes.table(text, colLabels=list(data.columns), loc="center", cellLoc="center")
    table.auto_set_font_size(False)
    table.set_fontsize(9)
    table.scale(1, 1.5)
    for (row, _), cell in table.get_celld().items():
        cell.set_edgecolor("#d5dae0")
        cell.set_facecolor("#f1f4f7" if row == 0 else "white")


def _draw_legend(axes: Axes, note: str | None) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(ncols=4, title=note, title_fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _draw_marks(axes: Axes, paper: Stated) -> None:
    for mark in paper.marks:
        line = axes.axhline if mark.axis == "y" else axes.axvline
        first = mark is paper.marks[0]
        line(mark.value, label="stated by the paper" if first else None, **style.PAPER_MARK)
        if mark.axis == "y":
            at, place, angle, side = (1.01, mark.value), axes.get_yaxis_transform(), 0, ("left", "center")
        else:
            at, place, angle, side = (mark.value, 0.02), axes.get_xaxis_transform(), 90, ("right", "bottom")
        ha, va = side
        axes.text(*at, mark.label, transform=place, rotation=angle, ha=ha, va=va, **style.PAPER_LABEL)


def _image(figure: Figure, kind: str) -> bytes:
    """The figure's bytes, without date and version of the program."""
    nothing: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format=kind, metadata=nothing)
    return stream.getvalue()


def _tick(value: Any, unit: str | None) -> str:
    return f"{in_unit(value, unit):g}" if isinstance(value, int | float) else str(value)
