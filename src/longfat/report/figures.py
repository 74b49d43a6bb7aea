# SPDX-License-Identifier: Apache-2.0
"""The figures of a report, each as a drawing or as a table, with the paper's statement and the claims about it.

Owns the placement of images within the page. A figure without data in the report's own results is drawn from
the committed runs of one profile.
"""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longfat.data.study_folder import StudyFolder
from longfat.evidence.judged import Evidenced
from longfat.figures.bars import Bars
from longfat.figures.base import Figure, Sources
from longfat.figures.document import beyond_the_paper
from longfat.figures.drawing import FOLDER, data_of, draw, image, why_empty
from longfat.figures.parts import RUN_IDS, TITLE
from longfat.plan.model import Plan
from longfat.relations.judge import Verdict
from longfat.relations.outcomes import Word
from longfat.study.models import Header
from longfat.study.study import Study

BEYOND_HEADING = "Beyond the paper: how far the results depend on what it does not state"
FILES = ("csv", "svg", "pdf", "png")
BROAD = 6  # most columns of a table that does not take the whole width of the page


@dataclass(frozen=True)
class Content:
    """The headings and rows of a table, or an SVG element; of committed runs if it names their ``profile``."""

    svg: str = ""
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    profile: str = ""

    @property
    def broad(self) -> bool:
        """Whether it is a table that takes the whole width of the page."""
        return len(self.headings) > BROAD


@dataclass(frozen=True)
class FigureView:
    """A figure as the page shows it; without ``content`` it has the reason ``why``.

    ``claims`` has verdicts by claim, ``made_with`` names runs and kernels, and ``files`` has addresses from the results
    folder.
    """

    figure: Figure
    content: Content | None
    why: str
    claims: Mapping[str, Word]
    made_with: str
    experiments: tuple[str, ...]
    files: Mapping[str, str]

    @property
    def highlight(self) -> str:
        """The highlighted value of its factor, as a part of an address in the explorer."""
        figure = self.figure
        return f"&{figure.factor}={figure.highlight}" if isinstance(figure, Bars) and figure.highlight else ""

    @property
    def good(self) -> int:
        """The number of its claims that are reproduced."""
        return sum(word == "reproduced" for word in self.claims.values())


def figure_views(
    results: Path, folder: StudyFolder, verdicts: Sequence[Verdict], plan: Plan, evidence: Evidenced | None
) -> list[FigureView]:
    """Return all figures of figures.yaml, in its order."""
    study = folder.study
    found = []
    for figure in folder.figures.figures:
        own = _content(results / FOLDER, figure)
        drawn_in = figure.experiments(study)
        about = {one.claim: one.verdict for one in verdicts if figure.artifact in (one.artifact, *one.also)}
        files = {kind: f"{FOLDER}/{figure.artifact}.{kind}" for kind in FILES}
        missing = not (results / files["csv"]).exists()
        content = own or (_committed(figure, plan, evidence) if evidence else None)
        view = FigureView(
            figure=figure,
            content=content,
            why=_how_to_draw(study, figure) if missing else why_empty(plan, study, figure),
            claims=about,
            made_with="" if content and content.profile else _made_with(plan, drawn_in),
            experiments=tuple(one for one in drawn_in if any(run.experiment == one for run in plan.runs)),
            files={kind: place for kind, place in files.items() if own and (results / place).exists()},
        )
        found.append(view)
    return found


def sections_of(figures: Sequence[FigureView], header: Header) -> list[tuple[str, str, list[FigureView]]]:
    """Return anchor, heading and figures: first the paper's figures, then figures beyond the paper."""
    beyond = [one for one in figures if header.paper and beyond_the_paper(one.figure.artifact)]
    sections = [("figures", "Figures and tables", [one for one in figures if one not in beyond])]
    return sections + ([("beyond", BEYOND_HEADING, beyond)] if beyond else [])


def _content(folder: Path, figure: Figure) -> Content | None:
    """Return the content from the results; None for a figure without a drawing or data."""
    picture, data = (folder / f"{figure.artifact}.{kind}" for kind in ("svg", "csv"))
    if not data.exists():
        return None
    with data.open(encoding="utf-8", newline="") as file:
        headings, *rows = (tuple(row) for row in csv.reader(file))
    if not rows:
        return None
    if figure.is_table:
        width = headings.index(RUN_IDS) if RUN_IDS in headings else len(headings)
        return Content(headings=headings[:width], rows=tuple(row[:width] for row in rows))
    return Content(_inline(picture.read_text(encoding="utf-8"), figure)) if picture.exists() else None


def _inline(svg: str, figure: Figure) -> str:
    return inlined(svg, figure.artifact, f"{figure.artifact}: {figure.title}")


def _committed(figure: Figure, plan: Plan, evidence: Evidenced) -> Content | None:
    """Return the content from the committed runs, without samples, of the profile with the most scenarios.

    Only runs of the results' own backend: the report of a simulator shows no numbers of a kernel.
    """
    experiments = {*figure.experiments(evidence.study)} if figure.kind != "topology" else set()
    grounds = evidence.grounds if evidence.backend == plan.pins.get("backend") else ()
    for ground in sorted(grounds, key=lambda one: -one.scenarios_of(experiments)):
        sources = Sources(ground.grounds, plan)
        if data := data_of(sources, figure):
            profile = ground.profile if ground.scenarios_of(experiments) else ""
            if figure.is_table:
                rows = tuple(tuple(map(str, row)) for row in data.rows)
                return Content(headings=data.columns, rows=rows, profile=profile)
            svg = image(draw(sources, figure).figure, "svg").decode()
            return Content(_inline(svg, figure), profile=profile)
    return None


def _how_to_draw(study: Study, figure: Figure) -> str:
    return f"Its runs are not in these results: ./just reproduce {study.header.study} --only {figure.artifact}"


def _made_with(plan: Plan, experiments: Sequence[str]) -> str:
    """Return the number of runs behind a figure, and their kernels; "" without runs or kernels, as in the evidence."""
    runs = [run for run in plan.runs if run.experiment in experiments]
    kernels: dict[str, None] = {}
    for run in runs:
        if digest := run.spec.pins.get("kernel"):
            source = plan.source_of(run)
            kernels[f"kernel {digest[:12]}" + (f" ({source})" if source else "")] = None
    noun = "run" if len(runs) == 1 else "runs"
    return f"{len(runs)} {noun} of {', '.join(experiments)}; {', '.join(kernels)}" if kernels else ""


_PROLOG = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>", re.DOTALL)
_OPENING = re.compile(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>')
_TAG = re.compile(r"<[^>]*>")
_NUMBER = re.compile(r"-?\d+\.\d+")
_PATH = re.compile(r' d="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_USED = re.compile(r"#([\w.-]+)")
_TITLE = re.compile(rf'<g id="{TITLE}">.*?</g>', re.DOTALL)
_FONT = re.compile(r"font-family: [^;\"]*;? ?")
_NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^)]*\)"')
_LINK = re.compile(r'<a xlink:href="(#explore[^"]*)"[^>]*>')  # not in the order of the tab key: the page has links
_BETWEEN = re.compile(r">\s+<")
TITLE_HEIGHT = 14  # points of a line of a title; the page has the title as text
LONG = 400  # most characters of a path with full precision; longer curves are rounded to a tenth of a point


def inlined(svg: str, name: str, title: str) -> str:
    """Return the SVG element of a file of matplotlib, with ``name`` in front of its ids."""
    text = _PROLOG.sub("", svg)
    cut = TITLE_HEIGHT * sum(found.count("<text") for found in _TITLE.findall(text))
    text = _TITLE.sub("", text)
    text = _PATH.sub(lambda found: f' d="{_path(found[1])}"', text)
    text = _LINK.sub(r'<g data-explore="\1">', text).replace("</a>", "</g>")
    text = _TAG.sub(lambda tag: _rounded_tag(tag[0]), text)
    text = _OPENING.sub(lambda found: _opening(found[1], cut, title), text, count=1)
    used = set(_USED.findall(text))
    text = _ID.sub(lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", text)
    text = _USED.sub(lambda found: f"#{name}-{found[1]}" if f' id="{name}-{found[1]}"' in text else found[0], text)
    text = _NO_ROTATION.sub("", _FONT.sub("", text)).replace("xlink:href", "href")
    return _BETWEEN.sub("><", text).strip()


def _rounded_tag(tag: str) -> str:
    """Return a tag with numbers of two decimals, except in an address."""
    return tag if "data-explore" in tag else _NUMBER.sub(lambda found: _rounded(found[0], 2), tag)


def _opening(box: str, cut: int, title: str) -> str:
    """Return the opening tag with the view box cut by ``cut`` points at the top."""
    left, top, width, height = (float(number) for number in box.split())
    seen = f"{left:g} {top + cut:g} {width:g} {height - cut:g}"
    return f'<svg viewBox="{seen}" role="img" aria-label="{html.escape(title)}">'


def _path(data: str) -> str:
    digits = 1 if len(data) > LONG else 2
    joined = _NUMBER.sub(lambda found: _rounded(found[0], digits), " ".join(data.split()))
    return re.sub(r" ?([A-Za-z]) ?", r"\1", joined)


def _rounded(number: str, digits: int) -> str:
    text = f"{float(number):.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
