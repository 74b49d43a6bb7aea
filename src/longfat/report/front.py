# SPDX-License-Identifier: Apache-2.0
"""The front page of the reports: every study with its artifacts and its claims by verdict.

Owns ``results/index.html``. It counts what the results folders hold; what has no results is shown as the
committed references have it, and said to be theirs. Judges and draws nothing. Knows no wall-clock time, so
equal results give an equal page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longfat.dataset.load import load_dataset
from longfat.errors import LongfatError
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
from longfat.studies import StudyFolder

FRONT = "index.html"


@dataclass(frozen=True)
class Row:
    """One set of results of a study, or one committed reference.

    ``folder`` is that of the results, None for a reference; ``artifacts`` counts the paper's that were drawn
    with data, None where that is not recorded; ``verdicts`` has a number of measured claims for each word,
    ``apart`` tells of the others; ``runs`` are valid and all.
    """

    folder: str | None
    report: str | None
    profile: str
    stack: str
    backend: str
    artifacts: int | None
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


def write_front(results_root: Path, studies: Iterable[StudyFolder]) -> Path:
    """Write the page of studies over all of ``results_root``; give its path.

    Studies whose names begin with an underscore test the testbed and are left out. A file that cannot be read
    is named on the page. Raises RigError when the page cannot be written.
    """
    results_root.mkdir(parents=True, exist_ok=True)
    folders, faults = _folders(results_root)
    shown = [_shown(study, folders) for study in studies if not study.name.startswith("_")]
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


def _shown(study: StudyFolder, folders: Mapping[Path, Plan]) -> Shown:
    header = catalogue = None
    rows: list[Row] = []
    faults: list[str] = []
    try:
        header = study.header
        catalogue = study.catalogue
        for folder, plan in folders.items():
            if plan.study == study.name and (folder / VERDICTS).exists():
                rows.append(_results(folder, plan, catalogue))
        rows += _references(committed(study), rows, study)
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


def _results(folder: Path, plan: Plan, catalogue: Catalogue) -> Row:
    statuses = [run.status for run in load_dataset(folder).runs]
    counts = tally(one.counted for one in read_verdicts(folder))
    return Row(
        folder=folder.name,
        report=quote(f"{folder.name}/{REPORT}", errors="surrogateescape") if (folder / REPORT).exists() else None,
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
            yield Row(None, None, one.profile, one.stack, one.backend, one.artifacts, counts["measured"], apart(counts))
