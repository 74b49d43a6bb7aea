# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: each as a drawing or as a table, beside what is stated of it and its claims.

Owns which of the two it is, and the files that it leads to.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.figures.base import Figure
from longfat.figures.document import FiguresDocument, beyond_the_paper
from longfat.figures.drawing import FOLDER
from longfat.figures.parts import RUN_IDS
from longfat.manifest.models import Header
from longfat.plan.model import Plan
from longfat.relations.counting import VerdictWord
from longfat.relations.judge import Verdict
from longfat.report.achieved import made_with
from longfat.report.inline import inlined

BEYOND_HEADING = "Beyond the paper: how far the results depend on what it does not state"
TABLES = ("table", "cells", "ranking")  # kinds of figure that are read as tables
FILES = ("csv", "svg", "pdf", "png")


@dataclass(frozen=True)
class Drawn:
    """A table's headings and rows, or an SVG element."""

    svg: str = ""
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ShownFigure:
    """A figure beside what is stated of it; ``drawn`` is None where it was not drawn.

    ``source`` says who states it, and is "" where nobody does; ``claims`` has the word on each, ``made_with`` which
    runs and kernels it is of, ``experiments`` whose runs they are. ``files`` lead to it, from the results folder.
    """

    artifact: str
    title: str
    kind: str
    drawn: Drawn | None
    source: str
    stated: str
    numbers: tuple[str, ...]
    claims: Mapping[str, VerdictWord]
    made_with: str
    experiments: tuple[str, ...]
    files: Mapping[str, str]


def shown_figures(
    results: Path,
    figures: FiguresDocument,
    verdicts: Sequence[Verdict],
    word_of: Mapping[str, VerdictWord],
    plan: Plan,
    drawn_in: Mapping[str, Sequence[str]],
) -> list[ShownFigure]:
    """All figures of figures.yaml, in its order."""
    planned = {run.experiment for run in plan.runs}
    return [
        ShownFigure(
            artifact=figure.artifact,
            title=figure.title,
            kind=figure.kind,
            drawn=_drawn(results / FOLDER, figure),
            source="The paper states" if figure.paper else "The study expects" if figure.hypothesis else "",
            stated=figure.paper or figure.hypothesis or "",
            numbers=tuple(mark.label for mark in figure.marks),
            claims={one.claim: word_of[one.claim] for one in verdicts if figure.artifact in (one.artifact, *one.also)},
            made_with=made_with(plan, drawn_in[figure.artifact]),
            experiments=tuple(one for one in drawn_in[figure.artifact] if one in planned),
            files={
                kind: f"{FOLDER}/{figure.artifact}.{kind}"
                for kind in FILES
                if (results / FOLDER / f"{figure.artifact}.{kind}").exists()
            },
        )
        for figure in figures.figures
    ]


def sections_of(shown: Sequence[ShownFigure], header: Header) -> list[tuple[str, str, list[ShownFigure]]]:
    """Anchor, heading and figures: those of the paper, then what it does not ask; without a paper all together."""
    if header.paper is None:
        return [("figures", "Figures and tables", list(shown))]
    beyond = [figure for figure in shown if beyond_the_paper(figure.artifact)]
    sections = [("figures", "Figures and tables", [figure for figure in shown if figure not in beyond])]
    return sections + ([("beyond", BEYOND_HEADING, beyond)] if beyond else [])


def _drawn(folder: Path, figure: Figure) -> Drawn | None:
    picture, data = (folder / f"{figure.artifact}.{kind}" for kind in ("svg", "csv"))
    if figure.kind in TABLES and data.exists():
        with data.open(encoding="utf-8", newline="") as file:
            headings, *rows = (tuple(row) for row in csv.reader(file))
        width = headings.index(RUN_IDS) if RUN_IDS in headings else len(headings)
        if rows:
            return Drawn(headings=headings[:width], rows=tuple(row[:width] for row in rows))
    if not picture.exists():
        return None
    title = f"{figure.artifact}: {figure.title}"
    return Drawn(svg=inlined(picture.read_text(encoding="utf-8"), figure.artifact, title))
