# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports, ``results/index.html``: every study with its artifacts and its claims by verdict.

The committed evidence of a study comes first, then the results folders. No wall-clock time is in it, so equal results
and evidence give equal bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longfat.checksums import verify_checksums
from longfat.dataset.load import load_dataset
from longfat.errors import LongfatError
from longfat.evidence.baselines import Baseline
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.figures.document import Coverage
from longfat.figures.drawing import FOLDER as FIGURES
from longfat.figures.drawing import drawn
from longfat.manifest.models import Header
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import VERDICT_WORDS, Counts, VerdictWord, tally
from longfat.relations.judge import VERDICTS, Verdict, read_verdicts
from longfat.report.findings import answer, unreproduced
from longfat.report.forest import Part, by_section, forest
from longfat.report.page import render, write_page
from longfat.report.readme import read_readme
from longfat.report.report import REPORT
from longfat.studies import StudyFolder

FRONT = "index.html"


@dataclass(frozen=True)
class Row:
    """All evidence of a study, or one folder with its results.

    ``report`` is an address or ""; ``artifacts`` is the number of the paper's artifacts that were drawn with data, None
    for evidence; ``runs`` are the numbers of valid and of all runs.
    """

    name: str
    report: str
    profile: str
    stack: str
    backend: str
    artifacts: int | None
    counts: Counts
    runs: tuple[int, int]


@dataclass(frozen=True)
class Card:
    """A study at a glance. ``question`` and ``answer`` are HTML, ``picture`` is the address of a plot or "".

    Without a plot ``parts`` are drawn. ``links`` are text and address.
    """

    question: str
    answer: str
    counts: Mapping[VerdictWord, int]
    picture: str
    parts: Sequence[Part]
    links: Mapping[str, str]


@dataclass(frozen=True)
class StudyView:
    """A study with its rows. ``size`` is the size of its paper, ``nouns`` the words for one and several claims."""

    name: str
    header: Header | None
    size: Coverage | None
    nouns: tuple[str, str]
    rows: tuple[Row, ...]
    card: Card | None


def write_front(results_root: Path, studies: Iterable[StudyFolder], baselines: Sequence[Baseline] = ()) -> Path:
    """Write the page of studies over all results in a folder and the evidence of ``baselines``; return its path.

    Studies whose names begin with an underscore test the testbed and are left out. The page names files that cannot be
    read. Raises RigError if the page cannot be written.
    """
    faults: list[str] = []
    plans: dict[Path, Plan] = {}
    for path in sorted(results_root.glob("*/lock.json")):
        with _noted(faults):
            plans[path.parent] = read_lock(path)
    views = [_view(study, plans, baselines, faults) for study in studies if not study.name.startswith("_")]
    page = render("front.html.j2", studies=views, faults=dict.fromkeys(faults), verdict_words=VERDICT_WORDS)
    return write_page(results_root / FRONT, page)


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    """Note an error and go on: one faulty file hides no other study."""
    try:
        yield
    except LongfatError as error:
        faults.append(str(error))


def _view(
    study: StudyFolder, plans: Mapping[Path, Plan], baselines: Sequence[Baseline], faults: list[str]
) -> StudyView:
    header: Header | None = None
    size: Coverage | None = None
    evidence: Evidenced | None = None
    card: Card | None = None
    rows: list[Row] = []
    folders: list[Path] = []
    with _noted(faults):
        header = study.header
    for folder, plan in plans.items():
        if plan.study == study.name and (folder / VERDICTS).exists():
            with _noted(faults):
                rows.append(_results(folder, plan, study))
                folders.append(folder)
    with _noted(faults):
        size = study.catalogue.size if header and header.paper else None
        if evidence := evidence_of(study, baselines):
            rows.insert(0, _evidence(evidence))
    if header:
        with _noted(faults):
            card = _card(study, evidence, folders)
    return StudyView(
        study.name, header, size, claim_nouns(header) if header else ("claim", "claims"), tuple(rows), card
    )


def _card(study: StudyFolder, evidence: Evidenced | None, folders: Sequence[Path]) -> Card:
    """A study by all evidence, or else by its first results."""
    verdicts = [one.verdict for one in evidence.judged] if evidence else read_verdicts(folders[0]) if folders else []
    counts = tally(one.counted for one in verdicts)
    readme = read_readme(study.path, [one.claim for one in verdicts])
    sentences = " ".join(answer(counts, claim_nouns(study.header), unreproduced(verdicts, readme)))
    reports = [_address(folder) for folder in folders if (folder / REPORT).exists()]
    links = {"Report" + (f" {number}" if number > 1 else ""): report for number, report in enumerate(reports, start=1)}
    files = [file for file in ("README.md", "VERDICTS.md") if (study.path / file).exists()]
    return Card(
        question=readme.question,
        answer=(readme.answer or f"<p>{sentences}</p>") if verdicts else "",
        counts=counts["measured"],
        picture=_picture(study, verdicts, folders),
        parts=forest(by_section(verdicts), lambda one: one.category in ("measured", "calibrated")),
        links=links | {file: f"../experiments/{study.name}/{file}" for file in files},
    )


def _picture(study: StudyFolder, verdicts: Sequence[Verdict], folders: Sequence[Path]) -> str:
    """The address of the plot with the most claims; "" without a plot. The text of a table would be too small."""
    artifacts = Counter(name for one in verdicts for name in (one.artifact, *one.also) if name)
    for name, _ in artifacts.most_common():
        for folder in folders if name not in study.catalogue.tables else ():
            if (folder / FIGURES / f"{name}.svg").exists():
                return quote(f"{folder.name}/{FIGURES}/{name}.svg")
    return ""


def _evidence(evidence: Evidenced) -> Row:
    return Row(
        name=f"all evidence, baseline {evidence.baseline}",
        report="",
        profile=" and ".join(ground.profile for ground in evidence.grounds) or "no profile",
        stack=evidence.stack,
        backend=evidence.backend,
        artifacts=None,
        counts=evidence.counts,
        runs=evidence.valid_runs,
    )


def _results(folder: Path, plan: Plan, study: StudyFolder) -> Row:
    reported = (folder / REPORT).exists()
    if reported:
        verify_checksums(folder, "report")
    statuses = [run.status for run in load_dataset(folder).runs]
    return Row(
        name=folder.name if reported else f"{folder.name}, no report yet",
        report=_address(folder) if reported else "",
        profile=plan.profile,
        stack=plan.stack,
        backend=plan.pins.get("backend", "none"),
        artifacts=study.catalogue.shown(drawn(folder)),
        counts=tally(one.counted for one in read_verdicts(folder)),
        runs=(statuses.count("ok"), len(statuses)),
    )


def _address(folder: Path) -> str:
    return quote(f"{folder.name}/{REPORT}", errors="surrogateescape")
