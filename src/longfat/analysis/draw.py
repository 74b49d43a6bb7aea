# SPDX-License-Identifier: Apache-2.0
"""Draws a figure of figures.yaml from the dataset, and saves it with its data beside it.

Owns the choice of what draws which kind, and the files. No metric is defined here. Uncertainty and n are always
shown; what the paper states is drawn as a dashed line where it is a number.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from longfat.analysis import style
from longfat.analysis.draw_bars import bars_data, draw_bars
from longfat.analysis.draw_curves import curve_data, draw_curves
from longfat.analysis.draw_formulas import draw_formulas, formula_data
from longfat.analysis.draw_parts import WIDTH, FigureData, empty, table, table_height, title
from longfat.analysis.draw_ranking import ranking_data, table_data
from longfat.analysis.draw_topology import draw_topology, topology_data, topology_height
from longfat.analysis.figure_kinds import Bars, Curves, OneFigure, Ranking, Table, TimeSeries, Topology
from longfat.dataset.load import Dataset
from longfat.errors import RigError
from longfat.plan.model import Plan


@dataclass(frozen=True)
class Drawing:
    """A drawn artifact with its data."""

    artifact: str
    figure: Figure
    data: FigureData

    def _repr_png_(self) -> bytes:
        return _image(self.figure, "png")


def draw(dataset: Dataset, plan: Plan, spec: OneFigure) -> Drawing:
    """Draw one artifact; where there is no valid run the figure says so."""
    data = _data(dataset, plan, spec)
    with matplotlib.rc_context(style.SETTINGS):
        figure = Figure(layout="constrained", figsize=(WIDTH, _height(plan, spec, data)))
        FigureCanvasAgg(figure)
        title(figure, f"{spec.artifact}: {spec.title}")
        if not data.rows:
            # Without data the axes have no scale on which the paper's marks could stand.
            empty(figure, _reason(plan, spec))
        elif isinstance(spec, Bars):
            draw_bars(figure, spec, data)
        elif isinstance(spec, TimeSeries):
            draw_curves(figure, spec, data)
        elif isinstance(spec, Topology):
            draw_topology(figure, plan, spec)
        elif isinstance(spec, Curves):
            draw_formulas(figure, spec, data)
        else:
            table(figure.add_subplot(), data)
        return Drawing(spec.artifact, figure, data)


def _reason(plan: Plan, spec: OneFigure) -> str:
    """Why a figure is empty."""
    quantity = getattr(spec, "of", spec)
    experiment = getattr(quantity, "experiment", None)
    if experiment is not None and experiment not in {run.experiment for run in plan.runs}:
        return f"no run in this plan (profile {plan.profile})"
    return "no valid run"


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


def drawn(results: Path) -> list[str]:
    """The figures that were drawn with data: those without have but a heading in their CSV file.

    Raises RigError when a file cannot be read.
    """
    files = sorted((results / "figures").glob("*.csv"))
    try:
        return [path.stem for path in files if len(path.read_text(encoding="utf-8").splitlines()) > 1]
    except OSError as error:
        raise RigError(f"the figures cannot be read: {error}", where=str(results)) from error


def _data(dataset: Dataset, plan: Plan, spec: OneFigure) -> FigureData:
    match spec:
        case Bars():
            return bars_data(dataset, spec)
        case TimeSeries():
            return curve_data(dataset, spec)
        case Ranking():
            return ranking_data(dataset, spec)
        case Topology():
            return topology_data(plan, spec)
        case Table():
            return table_data(dataset, spec)
        case Curves():
            return formula_data(spec)


def _height(plan: Plan, spec: OneFigure, data: FigureData) -> float:
    """Height in inches; a table is as high as its rows."""
    if isinstance(spec, Table | Ranking):
        return table_height(data) if data.rows else 1.2
    return topology_height(plan, spec) if isinstance(spec, Topology) else 3.9


def _image(figure: Figure, kind: str) -> bytes:
    """The figure's bytes, without date and version of the program."""
    nothing: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format=kind, metadata=nothing)
    return stream.getvalue()
