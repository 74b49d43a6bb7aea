# SPDX-License-Identifier: Apache-2.0
"""Assembles the report of a study: one HTML page that needs nothing else.

Owns what the page tells and in which order; its looks are in ``report.html.j2`` and what that includes. Computes no
metric and gives no verdict: it shows what dataset, verdicts and figures hold, and beside them what the committed
evidence and the study's README say. No wall-clock time gets in, so equal results and evidence give an equal page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from longfat.dataset.columns import STATUSES
from longfat.dataset.load import load_dataset
from longfat.evidence.conditions import Condition
from longfat.evidence.judged import Evidenced
from longfat.figures.document import FiguresDocument, beyond_the_paper
from longfat.figures.drawing import check_figures
from longfat.manifest.models import Header
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.record.made_on import read_made_on
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import VERDICT_WORDS, apart, tally
from longfat.relations.judge import Verdict, read_origin, read_verdicts
from longfat.report.achieved import achieved
from longfat.report.beside import Beside, beside
from longfat.report.explorer import explorer_data
from longfat.report.findings import GLYPHS, NAMES, answer, unreproduced
from longfat.report.forest import HEIGHT, WIDTH, by_section, forest
from longfat.report.numbers import allowed, measured
from longfat.report.page import render, write_page
from longfat.report.readme import read_readme
from longfat.report.reference import other_stack
from longfat.report.settings import settings_of
from longfat.report.shown import ShownFigure, sections_of, shown_figures
from longfat.report.trust import digests_of, exclusions_of, trust
from longfat.seals import seal, seal_of
from longfat.studies import CLAIMS, FIGURES, StudyFolder

REPORT = "report.html"
SHOWN_EXCLUSIONS = 200  # a longer list is better read in exclusions.csv
OUTCOMES = {"holds": "within", "fails": "outside", "undecided": "undecided", "no_data": "no data"}


def write_report(
    results: Path,
    folder: StudyFolder,
    evidence: Evidenced | None = None,
    conditions: Sequence[Condition] = (),
) -> Path:
    """Write ``report.html`` from what the earlier steps left under ``results``; give its path.

    With ``evidence``, all that is committed of the study's, each claim has its verdict by that first. ``conditions``
    say on which values of what the paper leaves open its claims depend.
    Raises RigError when dataset or verdicts are missing or the page cannot be written, RecordError when something was
    changed since it was made, StudyError on faulty study files.
    """
    plan = read_lock(results / "lock.json")
    dataset = load_dataset(results)
    verdicts = read_verdicts(results, folder.path)
    check_figures(results, folder.path)
    study, figures = folder.study, folder.figures
    drawn_in = {one.artifact: one.experiments(study) for one in figures.figures}
    noun, nouns = claim_nouns(study.header)
    judged = {item.verdict.claim: item for item in evidence.judged} if evidence else {}
    first = [judged[one.claim].verdict if one.claim in judged else one for one in verdicts]
    word_of = {one.claim: one.verdict for one in first}
    own_counts = tally(verdict.counted for verdict in verdicts)
    counts = evidence.counts if evidence else own_counts
    readme = read_readme(folder.path, word_of)
    causes = unreproduced(first, word_of, readme)
    origin = read_origin(results)
    parts = by_section(first)
    shown = shown_figures(results, figures, verdicts, word_of, plan, drawn_in, study, evidence)
    home = folder.path.parent.parent
    page = render(
        "report.html.j2",
        plan=plan,
        study=study,
        noun=noun,
        nouns=nouns,
        source=_source(study.header, verdicts),
        runs={name: [run.status for run in dataset.runs].count(name) for name in STATUSES},
        counts=counts,
        own_counts=own_counts,
        apart=apart,
        evidence=evidence,
        judged=judged,
        word_of=word_of,
        words={word: sum(one == word for one in word_of.values()) for word in VERDICT_WORDS},
        glyphs=GLYPHS,
        names=NAMES,
        origin=origin,
        readme=readme,
        answer=tuple(answer(counts, (noun, nouns), causes)),
        causes=causes,
        conditions=[one for one in conditions if one.claims],
        own={verdict.claim: verdict for verdict in verdicts},
        parts=parts,
        main=forest({name: [one for one in of if one.category not in _FOLDED] for name, of in parts.items()}),
        folded=forest({name: [one for one in of if one.category in _FOLDED] for name, of in parts.items()}),
        forest_size=(WIDTH, HEIGHT),
        verdicts=verdicts,
        outcomes=OUTCOMES,
        topology=max((one for one in shown if one.kind == "topology" and one.drawn), key=_runs_of(plan), default=None),
        sections=sections_of(shown, study.header),
        figures={one.artifact: one for one in shown},
        other=_beside(results, folder, plan, verdicts),
        coverage=coverage(figures, verdicts, study.header),
        settings=settings_of(plan, drawn_in),
        achieved=achieved(dataset),
        exclusions=exclusions_of(dataset, plan),
        not_ok=[run for run in dataset.runs if run.status != "ok"][:SHOWN_EXCLUSIONS],
        trust=tuple(trust(plan, dataset, origin, evidence, read_made_on(results))),
        digests=digests_of(results, plan, verdicts),
        measured=measured,
        allowed=allowed,
        files=[f"experiments/{folder.name}/{name}" for name in (CLAIMS, FIGURES) if folder.has(name)],
        links=_links(results, folder, home),
        data=explorer_data(plan, dataset, drawn_in),
    )
    path = write_page(results / REPORT, page)
    before = (seal_of(results, step) for step in ("dataset", "verdicts", "figures"))
    seal(results, "report", [path, *(one for one in before if one.exists())])
    return path


def _runs_of(plan: Plan) -> Callable[[ShownFigure], int]:
    """How many runs of the plan a figure is about."""
    return lambda figure: sum(run.experiment in figure.experiments for run in plan.runs)


_FOLDED = ("law", "construction", "arithmetic")  # kinds of claims that no measurement of the paper's could turn


def coverage(figures: FiguresDocument, verdicts: list[Verdict], header: Header) -> tuple[str, ...]:
    """How many of the paper's artifacts and claims are here; what goes beyond the paper does not count.

    Nothing where the study has no paper to cover.
    """
    if header.paper is None:
        return ()
    drawn = len({one.part_of or one.artifact for one in figures.figures if not beyond_the_paper(one.artifact)})
    claimed = sum(not beyond_the_paper(verdict.artifact) for verdict in verdicts)
    if figures.paper is None:
        return (f"{drawn} figures and tables", f"{claimed} claims")
    return (
        f"{drawn} of the paper's {figures.paper.artifacts} figures and tables",
        f"{claimed} of its {figures.paper.claims} claims",
    )


def _links(results: Path, folder: StudyFolder, home: Path) -> dict[str, str]:
    """Words and addresses of what lies beside the page, as seen from the results folder."""
    found = {"lock": "lock.json", "verdicts": "verdicts.json", "data": "dataset/", "raw records": "raw/"}
    if (results / "notebook.ipynb").exists():
        found["notebook"] = "notebook.ipynb"
    if results.resolve().parent == (home / "results").resolve():
        found["all studies"] = "../index.html"
        found["README of the study"] = quote(f"../../experiments/{folder.name}/README.md", errors="surrogateescape")
    return {words: address for words, address in found.items() if (results / address).exists() or ".." in address}


def _source(header: Header, verdicts: list[Verdict]) -> str:
    """The heading over what others state of the claims; "" where none states anything."""
    return "Paper" if header.paper else "Source" if any(verdict.paper for verdict in verdicts) else ""


def _beside(results: Path, folder: StudyFolder, plan: Plan, verdicts: list[Verdict]) -> Beside | None:
    """The verdicts beside those of another stack, where the study has a reference of one."""
    other = other_stack(results, folder, plan)
    own: Mapping[str, str] = {verdict.claim: verdict.verdict for verdict in verdicts}
    return beside(plan, own, other) if other else None
