# SPDX-License-Identifier: Apache-2.0
"""A study's results opened for notebooks and programs, as frames and figures."""

from __future__ import annotations

import html
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from longfat.data import frames
from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import Dataset, load_dataset
from longfat.figures.base import Sources
from longfat.figures.drawing import FOLDER, Drawing, draw, image, save, write_figure_checksums
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.evaluate import Grounds
from longfat.relations.judge import Verdict, read_verdicts
from longfat.study.schema.names import require
from longfat.system.errors import StudyError
from longfat.system.files import write_whole

RESULTS_VARIABLE = "LONGFAT_RESULTS"
STUDY_VARIABLE = "LONGFAT_STUDY"


@dataclass(frozen=True)
class OpenedStudy:
    """A study and a folder with its results."""

    results: Path
    folder: StudyFolder
    _drawn: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset. Raises RigError if it is missing or damaged."""
        return load_dataset(self.results)

    def frame(self, table: str, experiment: str | None = None) -> pl.DataFrame:
        """Return a table of the dataset, or ``verdicts``, as a polars frame.

        ``experiment`` selects the rows of its runs. Raises StudyError for an unknown name, RigError if results are
        missing.
        """
        require("table", table, frames.FRAMES)
        if table == frames.VERDICTS:
            if experiment is not None:
                raise StudyError("the table verdicts has no experiments; leave the experiment out", where=experiment)
            return frames.verdict_frame(read_verdicts(self.results))
        known = {one.id: one for one in self.folder.study.experiments}
        if experiment is not None:
            require("experiment", experiment, known)
        return frames.frame(self.dataset.folder, table, known.get(experiment or ""))

    def columns(self, table: str) -> pl.DataFrame:
        """Describe the columns of a table: name, type, unit and meaning."""
        return frames.columns(self.frame(table), table, self.folder.study)

    @cached_property
    def plan(self) -> Plan:
        """The lock. Raises StudyError if it is missing, RecordError if it is damaged."""
        return read_lock(self.results / "lock.json")

    @cached_property
    def sources(self) -> Sources:
        """The sources of its figures."""
        return Sources(Grounds(self.folder.study, self.dataset), self.plan)

    def show(self, artifact: str) -> Drawing:
        """Draw an artifact and save it under ``figures/``. Raises StudyError for an unknown artifact."""
        drawing = draw(self.sources, self.folder.figures.figure(artifact))
        save(drawing, self.results / FOLDER)
        self._drawn.add(artifact)
        return drawing

    def show_others(self) -> Gallery:
        """Draw and save the artifacts of figures.yaml that ``show`` has not drawn."""
        others = [figure.artifact for figure in self.folder.figures.figures if figure.artifact not in self._drawn]
        for artifact in others:
            self.show(artifact)
        return Gallery(tuple(others), os.path.relpath(self.results / FOLDER))

    def verdicts(self) -> VerdictTable:
        """Return the verdicts as a table for a notebook."""
        return VerdictTable(tuple(read_verdicts(self.results)))


@dataclass(frozen=True)
class Gallery:
    """Drawn artifacts as small pictures in a notebook, with links to their files in ``folder``."""

    artifacts: tuple[str, ...]
    folder: str

    def __repr__(self) -> str:
        return ", ".join(self.artifacts) or "no other figure"

    def _repr_html_(self) -> str:
        places = [html.escape(f"{self.folder}/{artifact}") for artifact in self.artifacts]
        link = '<a href="{0}.svg"><img src="{0}.png" alt="{0}" width="240"></a>'
        return "".join(link.format(place) for place in places)


@dataclass(frozen=True)
class VerdictTable:
    """Verdicts as text, one per line."""

    verdicts: tuple[Verdict, ...]

    def __repr__(self) -> str:
        width = max((len(verdict.claim) for verdict in self.verdicts), default=0)
        rows = (
            f"{verdict.claim:<{width}}  {verdict.verdict.replace('_', ' '):<15}"
            f" {verdict.artifact or '-':<7} {verdict.reason or ''}".rstrip()
            for verdict in self.verdicts
        )
        return "\n".join(rows)


def open_study(name: str) -> OpenedStudy:
    """Open a study and its results.

    The folders are LONGFAT_RESULTS and LONGFAT_STUDY if set, else ``results/<name>`` and ``experiments/<name>`` of the
    checkout around the current folder. Raises StudyError for an unknown study.
    """
    here = Path.cwd()
    root = next((path for path in (here, *here.parents) if (path / "experiments" / name).is_dir()), here)
    results = os.environ.get(RESULTS_VARIABLE)
    study_dir = os.environ.get(STUDY_VARIABLE)
    return OpenedStudy(
        Path(results) if results else root / "results" / name,
        StudyFolder(Path(study_dir) if study_dir else root / "experiments" / name),
    )


def draw_all(results: Path, folder: StudyFolder, *, papers: bool = False) -> tuple[str, ...]:
    """Draw every artifact of figures.yaml; return their ids. ``papers`` adds ``ARTIFACT-paper.pdf`` for each."""
    study = OpenedStudy(results, folder)
    drawn = tuple(study.show(figure.artifact).artifact for figure in folder.figures.figures)
    for figure in folder.figures.figures if papers else ():
        small = image(draw(study.sources, figure, paper=True).figure, "pdf")
        write_whole(results / FOLDER / f"{figure.artifact}-paper.pdf", small)
    _remove_former(results / FOLDER, drawn)
    write_figure_checksums(results, folder.drawn_by)
    return drawn


def _remove_former(folder: Path, drawn: Collection[str]) -> None:
    """Remove the files of figures that figures.yaml no longer has; other files of the user stay."""
    for picture in folder.glob("[!.]*.svg"):
        files = [picture.with_suffix(f".{kind}") for kind in ("svg", "png", "pdf", "csv")]
        if picture.stem not in drawn and all(file.is_file() for file in files):
            for file in (*files, folder / f"{picture.stem}-paper.pdf"):
                file.unlink(missing_ok=True)
