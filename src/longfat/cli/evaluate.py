# SPDX-License-Identifier: Apache-2.0
"""``evaluate``: an algorithm against RFC 9743 or another document, its report card, and the matrix of all cards."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer
from rich.console import Console

from longfat.cli.console import Output, listen, say, say_place, stage
from longfat.cli.options import Jobs, Profile, Results
from longfat.cli.outcome import expect
from longfat.cli.report import build_tables
from longfat.cli.run import Machine, results_path, run_study
from longfat.cli.study import Choices, find_study
from longfat.data.study_folder import StudyFolder
from longfat.dataset.load import load_dataset
from longfat.execute.results import open_results
from longfat.plan.lockfile import read_lock
from longfat.relations.evaluate import Grounds
from longfat.relations.judge import judge
from longfat.report.card.card import Card, candidate, measure_card, read_cards, require_algorithm, write_card
from longfat.report.card.document import FILE, CardDocument, card_document
from longfat.report.card.page import draw_card, draw_matrix, matrix_text, report_of
from longfat.report.report import write_report
from longfat.system.errors import StudyError, all_of
from longfat.system.files import write_whole

STUDY = "bcp133"
CARDS = "cards"
TABLE = "CARDS.md"
LINE = 120  # most characters of a line
SHIPPED = ("reno", "cubic", "bbr", "htcp", "scalable", "highspeed", "compound", "fast", "dctcp")
"""The algorithms with cards in the repository, in the order of the matrix."""


def evaluate(
    out: Output,
    algorithms: Annotated[
        list[str] | None,
        typer.Argument(
            help="names of algorithms, C files, or folders of programs; without any, only draw the kept cards"
        ),
    ] = None,
    against: Annotated[
        str, typer.Option(help="study of the document: bcp133 (RFC 9743), or bbr-draft (the cases of BBR's draft)")
    ] = STUDY,
    keep: Annotated[bool, typer.Option("--keep", help="keep the cards with the study, to be committed")] = False,
    profile: Profile = "quick",
    jobs: Jobs = None,
    results: Results = None,
) -> bool:
    """Test an algorithm against RFC 9743 (BCP 133), or against BBR's draft, and draw its report card."""
    folder, *_ = all_of(partial(_with_card, against), *(partial(require_algorithm, one) for one in algorithms or ()))
    home = results_path(folder, results)
    document = card_document(folder)
    candidates = [candidate(folder, one, home / "own") for one in algorithms or ()]  # before any run
    documents = {name: card_document(study) for name, study in candidates}  # programs leave rows out
    new = [_evaluated(study, name, documents[name], profile, jobs, home, out) for name, study in candidates]
    for card in new:
        for place in (home, folder.path) if keep else (home,):
            write_card(card, place / CARDS / f"{card.algorithm}.json")
        say(out, f"{card.algorithm}: {card.summary}")
    if keep:
        write_whole(folder.path / TABLE, table_of(in_order(read_cards(folder.path / CARDS)), document))
    cards = in_order(read_cards(folder.path / CARDS) | read_cards(home / CARDS))
    for card in new or cards:
        say_place(out, "card", draw_card(card, documents.get(card.algorithm, document), home / CARDS))
    if cards:
        say_place(out, "matrix", draw_matrix(cards, document, home / CARDS))
    valid = all(card.valid == card.planned for card in new)
    out.result(valid=valid, cards=[dataclasses.asdict(card) for card in new or cards])
    return expect(valid, "some runs failed or are invalid; the card counts them")


def _with_card(against: str) -> StudyFolder:
    """Return the study of a document. Raises StudyError."""
    folder = find_study(against)
    if not folder.has(FILE):
        hint = "give a study with a report card: bcp133, bbr-draft"
        raise StudyError(f"{against!r} has no {FILE}", where="--against", hint=hint)
    return folder


def in_order(cards: Mapping[str, Card]) -> list[Card]:
    """Return the cards of the shipped algorithms in the order of the matrix, then all others by name."""
    order = [*(name for name in SHIPPED if name in cards), *sorted(set(cards) - set(SHIPPED))]
    return [cards[name] for name in order]


def table_of(cards: Sequence[Card], document: CardDocument) -> str:
    """Format the text of CARDS.md."""
    words = (
        f"Each column is the candidate of a card in `cards/`, a bold number one that fails. {document.verdicts} "
        "[Your own algorithm](../../docs/own-algorithm.md) describes how to make and to read a card."
    )
    return (
        f"# Algorithms against {document.against}\n\n"
        "<!-- Generated: longfat evaluate --keep -->\n\n"
        f"{fill(words, LINE)}\n\n"
        f"{matrix_text(cards, document)}{causes_of(cards, document)}"
    )


def causes_of(cards: Sequence[Card], document: CardDocument) -> str:
    """Format the known cause of each failed row, for every card that has one."""
    lines = [
        f"- {card.algorithm}, {row.section}, {row.shows}: {judgement.cause}"
        for card in cards
        for row in document.rows
        if (judgement := card.verdicts.get(row.row)) and judgement.cause
    ]
    return "\n## Causes\n\n" + "\n".join(lines) + "\n" if lines else ""


def _evaluated(
    folder: StudyFolder, name: str, document: CardDocument, profile: str, jobs: int | None, home: Path, console: Console
) -> Card:
    """Execute the missing runs, judge the claims, write the report, and return the card."""
    with open_results(home) as results, listen(results, console) as events:
        run_study(folder, Choices(profile), Machine(jobs=jobs), results, events)
        build_tables(results.path, folder, events)
        verdicts = judge(results.path, folder.study, folder.claims, folder.judged_by)
        stage(events, "writing the report")
        page = write_report(results.path, folder)
        write_whole(results.path / report_of(name), page.read_text(encoding="utf-8"))
        grounds = Grounds(folder.study, load_dataset(results.path))
        lock = hashlib.sha256(results.lock.read_bytes()).hexdigest()
        return measure_card(name, document, grounds, verdicts, read_lock(results.lock), lock)
