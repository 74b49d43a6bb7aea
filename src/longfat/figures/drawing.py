# SPDX-License-Identifier: Apache-2.0
"""Draws figures of figures.yaml from a dataset, and saves them with their data.

Every figure shows uncertainty and n; a number that the paper states is a dashed line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from longfat.figures import Figure as Spec
from longfat.figures import style
from longfat.figures.base import Sources
from longfat.figures.parts import WIDTH, FigureData, empty, title
from longfat.metrics.data import NoValue
from longfat.plan.model import Plan
from longfat.study.study import Study
from longfat.system.checksums import checksums_of, verify_checksums, write_checksums
from longfat.system.files import write_whole

FOLDER = "figures"
_VARYING = {"svg": ("Date",), "png": ("Software",), "pdf": ("CreationDate", "Creator", "Producer")}
COLOURS = 64


@dataclass(frozen=True)
class Drawing:
    """A drawn artifact with its data."""

    artifact: str
    figure: Figure
    data: FigureData

    def __repr__(self) -> str:
        """Return name and size, the text of a notebook next to the picture."""
        return f"Drawing({self.artifact!r}, {len(self.data.rows)} rows)"

    def _repr_png_(self) -> bytes:
        """Return a PNG for a notebook, a quarter of the size of the saved one by 110 dots per inch and 64 colours."""
        stream = io.BytesIO()
        picture = Image.open(io.BytesIO(image(self.figure, "png", dpi=110))).convert("RGB")
        picture.quantize(COLOURS).save(stream, "png", optimize=True)
        return stream.getvalue()


def draw(sources: Sources, spec: Spec, *, paper: bool = False) -> Drawing:
    """Draw one artifact, ``paper`` for a column of a paper; without a valid run the figure has the reason."""
    settings, width = style.SETTINGS, WIDTH
    if paper:
        settings, width = settings | style.IN_PAPERS, WIDTH if spec.broad else style.PAPER_WIDTH
    data = spec.data(sources)
    with matplotlib.rc_context(settings):
        figure = Figure(layout="constrained", figsize=(width, spec.height(data, sources) * (width / WIDTH) ** 0.5))
        FigureCanvasAgg(figure)
        if not paper:  # the paper has the title as a caption
            title(figure, f"{spec.artifact}: {spec.title}")
        if data.rows:
            spec.draw(figure, data, sources)
        else:
            empty(figure, why_empty(sources.plan, sources.study, spec))
        return Drawing(spec.artifact, figure, data)


def data_of(sources: Sources, spec: Spec) -> FigureData | None:
    """Return the data of a figure; None without data, or if the values of evidence do not suffice for it."""
    try:
        data = spec.data(sources)
    except NoValue:
        return None
    return data if data.rows else None


def why_empty(plan: Plan, study: Study, spec: Spec) -> str:
    """Explain why a figure is empty."""
    planned = {run.experiment for run in plan.runs}
    missing = any(experiment not in planned for experiment in spec.experiments(study))
    if missing or any(not one.among(plan.runs) for one in spec.selections(study)):
        return f"no run in this plan (profile {plan.profile})"
    return "no run with this value"


def save(drawing: Drawing, folder: Path) -> None:
    """Write ``<artifact>.png``, ``.svg``, ``.pdf`` and ``.csv``; equal drawings give equal bytes."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(drawing.data.lines)
    files = {kind: image(drawing.figure, kind) for kind in _VARYING} | {"csv": text.getvalue().encode()}
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in files.items():
        write_whole(folder / f"{drawing.artifact}.{kind}", content)


def write_figure_checksums(results: Path, study: Mapping[str, str | None], *others: Path) -> None:
    """Write the checksums of all figures and ``others``, the dataset, and the files of the study that define them."""
    files = [path for path in (results / FOLDER).glob("[!.]*") if path.is_file()]
    write_checksums(results, "figures", [*files, *others, checksums_of(results, "dataset")], study)


def check_figures(results: Path, study_dir: Path | None = None) -> None:
    """Raise RecordError if a figure was changed since it was drawn."""
    if (results / FOLDER).exists():
        verify_checksums(results, "figures", study_dir)


def image(figure: Figure, kind: str, dpi: float | str = "figure") -> bytes:
    """Return the bytes of a figure, without date and version of the program."""
    nothing: dict[str, Any] = dict.fromkeys(_VARYING[kind])
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format=kind, metadata=nothing, dpi=dpi)
    return stream.getvalue()
