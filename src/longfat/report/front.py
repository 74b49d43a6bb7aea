# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports: every study with its artifacts and its claims by verdict.

Owns ``results/index.html``. First of each study comes what all evidence says that is committed. Beside that it counts
what the results folders hold; what has no results is shown as the committed references have it, and said to be
theirs. Draws nothing. Knows no wall-clock time, so equal results and evidence give an equal page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longfat.dataset.load import load_dataset
from longfat.errors import LongfatError
from longfat.evidence.baselines import Baseline
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.figures.document import Catalogue, Coverage
from longfat.figures.drawing import FOLDER as FIGURES
from longfat.figures.drawing import drawn
from longfat.manifest.models import Header
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import VERDICT_WORDS, VerdictWord, apart, counted, tally
from longfat.relations.judge import VERDICTS, read_verdicts
from longfat.report.findings import GLYPHS, answer, unreproduced
from longfat.report.forest import HEIGHT, WIDTH, Part, by_section, forest
from longfat.report.page import render, write_page
from longfat.report.readme import read_readme
from longfat.report.reference import Committed, committed
from longfat.report.report import REPORT
from longfat.seals import check_seal
from longfat.studies import StudyFolder

FRONT = "index.html"
REFERENCE = "committed reference"


@dataclass(frozen=True)
class Row:
    """All evidence of a study, one set of its results, or one committed reference: ``what`` says which.

    ``report`` is the address of one; ``artifacts`` counts the paper's that were drawn with data, or says that
    this is not known; ``verdicts`` has a number of measured claims for each word, ``apart`` tells of the others;
    ``runs`` are valid and all.
    """

    what: str
    report: str | None
    profile: str
    stack: str
    backend: str
    artifacts: int | str
    verdicts: Mapping[VerdictWord, int]
    apart: Sequence[str] = ()
    runs: tuple[int, int] | None = None


@dataclass(frozen=True)
class Card:
    """A study at a glance. ``question`` and ``answer`` are HTML, ``picture`` is the address of a plot or "".

    Where there is no plot ``parts`` are drawn. ``counts`` are of the measured claims; ``links`` have words and
    addresses.
    """

    question: str
    answer: str
    counts: Mapping[VerdictWord, int]
    picture: str
    about: str
    parts: Sequence[Part]
    links: Mapping[str, str]


@dataclass(frozen=True)
class Shown:
    """A study with its rows; ``faults`` says which of its files could not be read.

    ``size`` is that of its paper, and ``claims`` what one and several claims are called.
    """

    name: str
    header: Header | None
    size: Coverage | None
    claims: tuple[str, str]
    rows: tuple[Row, ...]
    faults: tuple[str, ...]
    card: Card | None


def write_front(results_root: Path, studies: Iterable[StudyFolder], baselines: Sequence[Baseline] = ()) -> Path:
    """Write the page of studies over all of ``results_root``, and the evidence of ``baselines``; give its path.

    Studies whose names begin with an underscore test the testbed and are left out. A file that cannot be read
    is named on the page. Raises RigError when the page cannot be written.
    """
    results_root.mkdir(parents=True, exist_ok=True)
    folders, faults = _folders(results_root)
    shown = [_shown(study, folders, baselines) for study in studies if not study.name.startswith("_")]
    page = render(
        "front.html.j2",
        studies=shown,
        faults=tuple(faults),
        verdict_words=VERDICT_WORDS,
        glyphs=GLYPHS,
        forest_size=(WIDTH, HEIGHT),
    )
    return write_page(results_root / FRONT, page)


def _folders(results_root: Path) -> tuple[dict[Path, Plan], list[str]]:
    """The results folders with their plans, and which could not be read."""
    plans: dict[Path, Plan] = {}
    faults: list[str] = []
    for path in sorted(results_root.glob("*/lock.json")):
        try:
            plans[path.parent] = read_lock(path)
        except LongfatError as error:
            faults.append(str(error))
    return plans, faults


def _shown(study: StudyFolder, folders: Mapping[Path, Plan], baselines: Sequence[Baseline]) -> Shown:
    header = catalogue = None
    rows: list[Row] = []
    faults: list[str] = []
    evidence = None
    sound: list[Path] = []
    try:
        header = study.header
        catalogue = study.catalogue
        for folder, plan in folders.items():
            if plan.study == study.name and (folder / VERDICTS).exists():
                try:
                    rows.append(_results(folder, plan, catalogue))
                    sound.append(folder)
                except LongfatError as error:  # the study's other results are no worse for it
                    faults.append(str(error))
        rows += _references(committed(study), rows, study)
        evidence = evidence_of(study, baselines)
        if evidence:
            rows.insert(0, _evidence(evidence))
    except LongfatError as error:
        faults.append(str(error))
    card = None
    try:
        if header:
            card = _card(study, evidence, sound)
    except LongfatError as error:
        faults.append(str(error))
    return Shown(
        name=study.name,
        header=header,
        size=catalogue.size if catalogue and header and header.paper else None,
        claims=claim_nouns(header) if header else ("claim", "claims"),
        rows=tuple(rows),
        faults=tuple(dict.fromkeys(faults)),
        card=card,
    )


def _card(study: StudyFolder, evidence: Evidenced | None, folders: Sequence[Path]) -> Card:
    """A study by all evidence, else by its first results; its picture is the plot that most claims are about."""
    here = read_verdicts(folders[0]) if folders else []
    verdicts = [one.verdict for one in evidence.judged] if evidence else here
    counts = tally(one.counted for one in verdicts)
    readme = read_readme(study.path, [one.claim for one in verdicts])
    causes = unreproduced(verdicts, {one.claim: one.verdict for one in verdicts}, readme)
    told = readme.answer or f"<p>{' '.join(answer(counts, claim_nouns(study.header), causes))}</p>" if verdicts else ""
    artifacts = Counter(name for one in verdicts for name in (one.artifact, *one.also) if name)
    pictures = (
        (f"{folder.name}/{FIGURES}/{name}.svg", name)
        for name, _ in artifacts.most_common()
        if name not in study.catalogue.tables  # no word of one can be read at this size
        for folder in folders
        if (folder / FIGURES / f"{name}.svg").exists()
    )
    picture, about = next(pictures, ("", ""))
    links = {
        "Report" + (f" of {folder.name}" if number else ""): quote(f"{folder.name}/{REPORT}", errors="surrogateescape")
        for number, folder in enumerate(folder for folder in folders if (folder / REPORT).exists())
    }
    beside = ("README.md", "VERDICTS.md")
    links |= {file: f"../experiments/{study.name}/{file}" for file in beside if (study.path / file).exists()}
    main = [one for one in verdicts if one.category in ("measured", "calibrated")]
    return Card(
        readme.question, told, counts["measured"], quote(picture), about, forest(by_section(main)), links
    )  # fmt: skip


def _evidence(evidence: Evidenced) -> Row:
    profiles = " and ".join(ground.profile for ground in evidence.grounds)
    return Row(
        what=f"all evidence, baseline {evidence.baseline}",
        report=None,
        profile=profiles or "no profile",
        stack=evidence.stack,
        backend=evidence.backend,
        artifacts="not drawn",
        verdicts=evidence.counts["measured"],
        apart=apart(evidence.counts),
        runs=evidence.valid_runs,
    )


def _results(folder: Path, plan: Plan, catalogue: Catalogue) -> Row:
    if (folder / REPORT).exists():
        check_seal(folder, "report")
    statuses = [run.status for run in load_dataset(folder).runs]
    counts = tally(one.counted for one in read_verdicts(folder))
    reported = (folder / REPORT).exists()
    return Row(
        what=folder.name if reported else f"{folder.name}, no report yet",
        report=quote(f"{folder.name}/{REPORT}", errors="surrogateescape") if reported else None,
        profile=plan.profile,
        stack=plan.stack,
        backend=plan.pins.get("backend", "none"),
        artifacts=catalogue.shown(drawn(folder)),
        verdicts=counts["measured"],
        apart=apart(counts),
        runs=(statuses.count("ok"), len(statuses)),
    )


def _references(references: Iterable[Committed], here: Iterable[Row], study: StudyFolder) -> Iterator[Row]:
    """The references whose settings no results here have. Raises StudyError on faulty claims."""
    known = {(row.profile, row.stack, row.backend) for row in here}
    for one in references:
        if (one.profile, one.stack, one.backend) not in known:
            words = {claim: word for word in VERDICT_WORDS for claim, given in one.verdicts.items() if given == word}
            counts = tally(counted(study.claims, words))
            drawn_there = "not recorded" if one.artifacts is None else one.artifacts
            yield Row(
                REFERENCE, None, one.profile, one.stack, one.backend, drawn_there, counts["measured"], apart(counts)
            )
