# SPDX-License-Identifier: Apache-2.0
"""Draws a figure of figures.yaml from the dataset, and saves it with its data next to it.

Owns the files. No metric is defined here. Uncertainty and n are always
shown; a number that the paper states is drawn as a dashed line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from longfat.errors import RigError
from longfat.figures import Figure as Spec
from longfat.figures import style
from longfat.figures.base import Sources
from longfat.figures.parts import WIDTH, FigureData, empty, title
from longfat.files import write_whole
from longfat.manifest.study import Study
from longfat.metrics.data import NoValue
from longfat.plan.model import Plan
from longfat.seals import check_seal, seal, seal_of

FOLDER = "figures"
_TELLTALES = {"svg": ("Date",), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
COLOURS = 64


@dataclass(frozen=True)
class Drawing:
    """A drawn artifact with its data."""

    artifact: str
    figure: Figure
    data: FigureData

    def __repr__(self) -> str:
        """Its name and size alone: a notebook keeps this text beside the picture."""
        return f"Drawing({self.artifact!r}, {len(self.data.rows)} rows)"

    def _repr_png_(self) -> bytes:
        """A PNG for a notebook: 110 dots per inch and 64 colours take a quarter of the bytes of the saved one."""
        stream = io.BytesIO()
        picture = Image.open(io.BytesIO(image(self.figure, "png", dpi=110))).convert("RGB")
        picture.quantize(COLOURS).save(stream, "png", optimize=True)
        return stream.getvalue()


def draw(sources: Sources, spec: Spec) -> Drawing:
    """Draw one artifact; where there is no valid run the figure says so."""
    data = spec.data(sources)
    with matplotlib.rc_context(style.SETTINGS):
        figure = Figure(layout="constrained", figsize=(WIDTH, spec.height(data, sources)))
        FigureCanvasAgg(figure)
        title(figure, f"{spec.artifact}: {spec.title}")
        if data.rows:
            spec.draw(figure, data, sources)
        else:
            # Without data the axes have no scale for the paper's marks.
            empty(figure, why_empty(sources.plan, sources.study, spec))
        return Drawing(spec.artifact, figure, data)


def data_of(sources: Sources, spec: Spec) -> FigureData | None:
    """Its data; None where there is none, or where it needs more than the values that evidence keeps."""
    try:
        data = spec.data(sources)
    except NoValue:
        return None
    return data if data.rows else None


def why_empty(plan: Plan, study: Study, spec: Spec) -> str:
    """Why a figure is empty, for people."""
    planned = {run.experiment for run in plan.runs}
    if any(experiment not in planned for experiment in spec.experiments(study)):
        return f"no run in this plan (profile {plan.profile})"
    return "no valid run"


def save(drawing: Drawing, folder: Path) -> None:
    """Write ``<artifact>.png``, ``.svg``, ``.pdf`` and ``.csv``; equal drawings give equal bytes.

    Raises RigError when the folder cannot be written.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(drawing.data.lines)
    files = {
        "png": image(drawing.figure, "png"),
        "svg": image(drawing.figure, "svg"),
        "pdf": image(drawing.figure, "pdf"),
        "csv": text.getvalue().encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, content in files.items():
            write_whole(folder / f"{drawing.artifact}.{kind}", content)
    except OSError as error:
        raise RigError(f"cannot write the figure {drawing.artifact}: {error}", where=str(folder)) from error


def seal_figures(results: Path, study: Iterable[Path], *others: Path) -> None:
    """Seal all figures, and what else was made with them, by the dataset and the study's files that they go by."""
    files = [path for path in (results / FOLDER).glob("[!.]*") if path.is_file()]
    seal(results, "figures", [*files, *others, seal_of(results, "dataset")], study)


def check_figures(results: Path, study_dir: Path | None = None) -> None:
    """Raise RecordError unless the figures, where there are some, are as they were drawn."""
    if (results / FOLDER).exists():
        check_seal(results, "figures", study_dir)


def drawn(results: Path) -> list[str]:
    """The figures that were drawn with data: those without have but a heading in their CSV file.

    Raises RigError when a file cannot be read, RecordError when it is not as it was drawn.
    """
    check_figures(results)
    files = sorted((results / FOLDER).glob("*.csv"))
    try:
        return [path.stem for path in files if len(path.read_text(encoding="utf-8").splitlines()) > 1]
    except OSError as error:
        raise RigError(f"the figures cannot be read: {error}", where=str(results)) from error


def image(figure: Figure, kind: str, dpi: float | str = "figure") -> bytes:
    """The figure's bytes, without date and version of the program."""
    nothing: dict[str, Any] = dict.fromkeys(_TELLTALES[kind])
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format=kind, metadata=nothing, dpi=dpi)
    return stream.getvalue()
