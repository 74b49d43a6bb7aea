# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: each as a drawing or as a table, beside what is stated of it and its claims.

Owns which of the two it is, the files that it leads to, and what committed runs show where the report's own have no
value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longfat.evidence.judged import Evidenced
from longfat.figures.base import Figure, Sources
from longfat.figures.document import FiguresDocument, beyond_the_paper
from longfat.figures.drawing import FOLDER, data_of, draw, image, why_empty
from longfat.figures.parts import RUN_IDS, FigureData
from longfat.figures.table import NO_VALUE
from longfat.manifest.models import Header
from longfat.manifest.study import Study
from longfat.plan.model import Plan
from longfat.relations.counting import VerdictWord
from longfat.relations.judge import Verdict
from longfat.report.achieved import made_with
from longfat.report.inline import inlined

BEYOND_HEADING = "Beyond the paper: how far the results depend on what it does not state"
TABLES = ("table", "cells", "ranking")  # kinds of figure that are read as tables
FILES = ("csv", "svg", "pdf", "png")
MANY = 6  # columns beside which a page has no room for a text


@dataclass(frozen=True)
class Drawn:
    """A table's headings and rows, or an SVG element.

    ``profiles`` name those of committed runs that it is of, or of which it has the ``committed`` cells, by row and
    column.
    """

    svg: str = ""
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    profiles: tuple[str, ...] = ()
    committed: frozenset[tuple[int, int]] = frozenset()

    @property
    def broad(self) -> bool:
        """Whether it is a table that takes all of a page's width."""
        return len(self.headings) > MANY


@dataclass(frozen=True)
class ShownFigure:
    """A figure beside what is stated of it; ``drawn`` is None where it was not drawn, and ``why`` says why.

    ``source`` says who states it, and is "" where nobody does; ``claims`` has the word on each, ``made_with`` which
    runs and kernels it is of, ``experiments`` whose runs they are. ``files`` lead to it, from the results folder.
    """

    artifact: str
    title: str
    kind: str
    drawn: Drawn | None
    why: str
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
    study: Study,
    evidence: Evidenced | None,
) -> list[ShownFigure]:
    """All figures of figures.yaml, in its order; with ``evidence`` also what the results have no run of."""
    planned = {run.experiment for run in plan.runs}
    own = {figure.artifact: _drawn(results / FOLDER, figure) for figure in figures.figures}
    filled = {
        figure.artifact: _with_evidence(figure, own[figure.artifact], plan, evidence) for figure in figures.figures
    }
    return [
        ShownFigure(
            artifact=figure.artifact,
            title=figure.title,
            kind=figure.kind,
            drawn=filled[figure.artifact],
            why=why_empty(plan, study, figure)
            if (results / FOLDER / f"{figure.artifact}.csv").exists()
            else f"{figure.artifact} has not been drawn",
            source="The paper states" if figure.paper else "The study expects" if figure.hypothesis else "",
            stated=figure.paper or figure.hypothesis or "",
            numbers=tuple(mark.label for mark in figure.marks),
            claims={one.claim: word_of[one.claim] for one in verdicts if figure.artifact in (one.artifact, *one.also)},
            made_with=made_with(plan, drawn_in[figure.artifact]),
            experiments=tuple(one for one in drawn_in[figure.artifact] if one in planned),
            files={
                kind: f"{FOLDER}/{figure.artifact}.{kind}"
                for kind in FILES
                if own[figure.artifact] and (results / FOLDER / f"{figure.artifact}.{kind}").exists()
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
    """What the results have of it; None where it was not drawn, or without any data."""
    picture, data = (folder / f"{figure.artifact}.{kind}" for kind in ("svg", "csv"))
    if not data.exists():
        return None
    with data.open(encoding="utf-8", newline="") as file:
        headings, *rows = (tuple(row) for row in csv.reader(file))
    if not rows:
        return None
    if figure.kind in TABLES:
        width = headings.index(RUN_IDS) if RUN_IDS in headings else len(headings)
        return Drawn(headings=headings[:width], rows=tuple(row[:width] for row in rows))
    return Drawn(svg=_inline(picture.read_text(encoding="utf-8"), figure)) if picture.exists() else None


def _inline(svg: str, figure: Figure) -> str:
    return inlined(svg, figure.artifact, f"{figure.artifact}: {figure.title}")


def _with_evidence(figure: Figure, own: Drawn | None, plan: Plan, evidence: Evidenced | None) -> Drawn | None:
    """What the results have of a figure; where that is no value, what the evidence has, of the first profile with it.

    Only evidence of the results' own backend: a simulator's report shows no numbers of a kernel.
    A picture is of the one or of the other: two lengths of runs in one would be compared by eye.
    """
    if evidence is None or evidence.backend != plan.pins.get("backend") or (own is not None and not own.rows):
        return own
    for profile, sources, data in _of_evidence(figure, plan, evidence):
        if figure.kind in TABLES:
            own = _filled(own, data, profile)
        else:
            return Drawn(svg=_inline(image(draw(sources, figure).figure, "svg").decode(), figure), profiles=(profile,))
    return own


def _of_evidence(figure: Figure, plan: Plan, evidence: Evidenced) -> Iterator[tuple[str, Sources, FigureData]]:
    """The profiles that have data of a figure; of a curve none has."""
    for ground in evidence.grounds:
        sources = Sources(ground.grounds, plan)
        if data := data_of(sources, figure):
            yield ground.profile, sources, data


def _filled(own: Drawn | None, data: FigureData, profile: str) -> Drawn:
    """A table with the values of other data in the place of dashes; all of these where it has no row."""
    rows = tuple(tuple(str(cell) for cell in row) for row in data.rows)
    if own is None:
        return Drawn(headings=data.columns, rows=rows, profiles=(profile,))
    if own.headings != data.columns or len(own.rows) != len(rows):
        return own  # a ranking has an order of its own
    new = {
        (i, j)
        for i, row in enumerate(own.rows)
        for j, cell in enumerate(row)
        if cell == NO_VALUE and rows[i][j] != NO_VALUE
    }
    if not new:
        return own
    cells = tuple(
        tuple(rows[i][j] if (i, j) in new else cell for j, cell in enumerate(row)) for i, row in enumerate(own.rows)
    )
    return replace(own, rows=cells, profiles=(*own.profiles, profile), committed=own.committed | new)
