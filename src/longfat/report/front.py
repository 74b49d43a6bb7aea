# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports: every study with its artifacts and its claims by verdict.

Owns ``results/index.html``. First of each study comes what all evidence says that is committed. Beside that it counts
what the results folders hold; what has no results is shown as the committed references have it, and said to be
theirs. Draws nothing. Knows no wall-clock time, so equal results and evidence give an equal page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longfat.dataset.load import load_dataset
from longfat.errors import LongfatError
from longfat.evidence.epochs import Epoch
from longfat.evidence.judged import Evidenced, evidence_of
from longfat.figures.document import Catalogue, Coverage
from longfat.figures.drawing import drawn
from longfat.manifest.models import Header
from longfat.plan.lockfile import read_lock
from longfat.plan.model import Plan
from longfat.relations.claims import claim_nouns
from longfat.relations.counting import VERDICT_WORDS, VerdictWord, apart, counted, tally
from longfat.relations.judge import VERDICTS, read_verdicts
from longfat.report.page import render, write_page
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


def write_front(results_root: Path, studies: Iterable[StudyFolder], epochs: Sequence[Epoch] = ()) -> Path:
    """Write the page of studies over all of ``results_root``, and the evidence of ``epochs``; give its path.

    Studies whose names begin with an underscore test the testbed and are left out. A file that cannot be read
    is named on the page. Raises RigError when the page cannot be written.
    """
    results_root.mkdir(parents=True, exist_ok=True)
    folders, faults = _folders(results_root)
    shown = [_shown(study, folders, epochs) for study in studies if not study.name.startswith("_")]
    page = render("front.html.j2", studies=shown, faults=tuple(faults), verdict_words=VERDICT_WORDS)
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


def _shown(study: StudyFolder, folders: Mapping[Path, Plan], epochs: Sequence[Epoch]) -> Shown:
    header = catalogue = None
    rows: list[Row] = []
    faults: list[str] = []
    try:
        header = study.header
        catalogue = study.catalogue
        for folder, plan in folders.items():
            if plan.study == study.name and (folder / VERDICTS).exists():
                try:
                    rows.append(_results(folder, plan, catalogue))
                except LongfatError as error:  # the study's other results are no worse for it
                    faults.append(str(error))
        rows += _references(committed(study), rows, study)
        if evidence := evidence_of(study, epochs):
            rows.insert(0, _evidence(evidence))
    except LongfatError as error:
        faults.append(str(error))
    return Shown(
        name=study.name,
        header=header,
        size=catalogue.size if catalogue and header and header.paper else None,
        claims=claim_nouns(header) if header else ("claim", "claims"),
        rows=tuple(rows),
        faults=tuple(faults),
    )


def _evidence(evidence: Evidenced) -> Row:
    profiles = " and ".join(ground.profile for ground in evidence.grounds)
    return Row(
        what=f"all evidence, epoch {evidence.epoch}",
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
