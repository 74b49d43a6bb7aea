# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports, ``results/index.html``: all studies, the gallery, cards of algorithms, and tests.

A study has the verdicts by all committed evidence, or else by the first results. The studies with most decided claims
come first. No wall-clock time is in the page, so equal results and evidence give equal bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from longfat.data.study_folder import StudyFolder, studies_in
from longfat.dataset.load import load_dataset
from longfat.evidence.baselines import Baseline
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.figures.drawing import FOLDER as FIGURES
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import Counts, tally
from longfat.relations.judge import VERDICTS, Verdict, read_verdicts
from longfat.relations.outcomes import WORDS
from longfat.report.findings import answer, causes_of, headline_counts
from longfat.report.forest import Part, by_section, forest
from longfat.report.page import render, write_page
from longfat.report.readme import quoted
from longfat.report.report import REPORT, coverage
from longfat.study.models import Header
from longfat.system.checksums import verify_checksums
from longfat.system.errors import LongfatError

FRONT = "index.html"
GALLERY, PICTURE = "gallery", "picture.png"
PAGES = {"README.md": "study", "VERDICTS.md": "verdicts", "CARDS.md": "cards", "study.yaml": "manifest"}
"""Files of a study to which its card links, with the words of the links."""
MATRIX = "cards/matrix.html"  # of the results folder of an evaluation


@dataclass
class Card:
    """A study at a glance. ``question`` and ``answer`` are HTML, ``picture`` is the address of a plot or "".

    Without a plot ``parts`` are drawn. A source is all evidence of the study or one folder with results: its name, the
    address of its report or "", the number of valid runs and of all runs, and its settings. ``links`` has addresses by
    words.
    """

    study: str
    header: Header | None = None
    sources: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    coverage: tuple[str, ...] = ()
    counts: Counts = field(default_factory=dict)
    question: str = ""
    answer: str = ""
    picture: str = ""
    parts: Sequence[Part] = ()
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def decided(self) -> int:
        """Number of measured claims that are not undecided."""
        measured = self.counts.get("measured", {})
        return sum(measured.get(word, 0) for word in ("reproduced", "compatible", "not reproduced"))


def write_front(results_root: Path, studies: Iterable[StudyFolder], baselines: Sequence[Baseline] = ()) -> Path:
    """Write the page of studies over all results in a folder and the committed evidence; return its path.

    Studies whose names begin with an underscore test the testbed and come last. The page names files that cannot be
    read.
    """
    faults: list[str] = []
    plans: dict[Path, Plan] = {}
    for path in sorted(results_root.glob("*/lock.json")):
        with _noted(faults):
            plans[path.parent] = read_lock(path)
    groups: dict[str, list[Card]] = {name: [] for name in ("papers", "rules", GALLERY, "tests")}
    gallery = studies_in(results_root.parent / "experiments" / GALLERY)
    for study in (*studies, *gallery):
        card = _card(study, results_root, plans, baselines, faults)
        paper = card.header and card.header.paper
        own = study.path.parent.name == GALLERY
        groups[GALLERY if own else "tests" if study.name[0] == "_" else "papers" if paper else "rules"].append(card)
    for cards in groups.values():
        cards.sort(key=lambda card: (not card.sources, -card.decided))
    page = render("front.html.j2", groups=groups, faults=dict.fromkeys(faults), verdict_words=WORDS)
    return write_page(results_root / FRONT, page)


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    """Record an error and continue, so that a faulty file does not hide other studies."""
    try:
        yield
    except LongfatError as error:
        faults.append(str(error))


def _card(
    study: StudyFolder, root: Path, plans: Mapping[Path, Plan], baselines: Sequence[Baseline], faults: list[str]
) -> Card:
    card = Card(study.name)
    verdicts: list[Verdict] = []
    folders: list[Path] = []
    evidence: Evidenced | None = None
    for folder, plan in plans.items():
        if plan.study == study.name and (folder / VERDICTS).exists():
            with _noted(faults):
                card.sources.append(_results(folder, plan))
                verdicts = verdicts or read_verdicts(folder)
                folders.append(folder)
    with _noted(faults):
        card.header = study.header
        if evidence := evidence_of(study, baselines):
            alone = root / study.name not in plans and (root / study.name / REPORT).exists()
            card.sources.insert(0, _evidence(evidence, quote(f"{study.name}/{REPORT}") if alone else ""))
            verdicts = [one.verdict for one in evidence.judged]
        card.coverage = coverage(study.figures, verdicts, study.header) if verdicts else ()
    with _noted(faults):
        readme = quoted(study, [one.claim for one in verdicts])
        card.question = readme.question
        card.counts = tally(one.counted for one in verdicts)
        card.parts = forest(by_section(verdicts), lambda one: one.category in ("measured", "calibrated"))
        place = os.path.relpath(study.path, root)
        card.links = {PAGES[file]: quote(f"{place}/{file}") for file in PAGES if (study.path / file).exists()}
        matrix = root / study.name / MATRIX
        if matrix.exists():
            card.links["matrix of cards"] = quote(f"{study.name}/{MATRIX}")
        if verdicts and card.header:
            sentences = [*answer(card.counts, claim_nouns(card.header), causes_of(verdicts, readme))]
            if evidence and evidence.headlines:
                sentences.insert(0, f"Conclusions of the paper: {headline_counts(evidence.headlines)}.")
            card.answer = f"<p>{' '.join(sentences)}</p>"
        own = study.path / PICTURE
        card.picture = quote(f"{place}/{PICTURE}") if own.exists() else _picture(study, verdicts, folders)
    return card


def _picture(study: StudyFolder, verdicts: Sequence[Verdict], folders: Sequence[Path]) -> str:
    """Return the address of the plot with the most claims; "" without a plot. The text of tables would be too small."""
    artifacts = Counter(name for one in verdicts for name in (one.artifact, *one.also) if name)
    tables = {figure.artifact for figure in study.figures.figures if figure.is_table}
    for name, _ in artifacts.most_common():
        for folder in folders if name not in tables else ():
            if (folder / FIGURES / f"{name}.svg").exists():
                return quote(f"{folder.name}/{FIGURES}/{name}.svg")
    return ""


def _evidence(evidence: Evidenced, report: str) -> tuple[str, str, int, int, str]:
    profiles = " and ".join(ground.profile for ground in evidence.grounds) or "no profile"
    setting = f"{profiles}, {evidence.stack}, {evidence.backend}"
    return f"evidence of baseline {evidence.baseline}", report, *evidence.valid_runs, setting


def _results(folder: Path, plan: Plan) -> tuple[str, str, int, int, str]:
    report = ""
    if (folder / REPORT).exists():
        verify_checksums(folder, "report")
        report = quote(f"{folder.name}/{REPORT}", errors="surrogateescape")
    statuses = [run.status for run in load_dataset(folder).runs]
    setting = f"{plan.profile}, {plan.stack}, {plan.pins.get('backend', 'none')}"
    return f"results/{folder.name}", report, statuses.count("ok"), len(statuses), setting
