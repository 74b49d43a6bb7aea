# SPDX-License-Identifier: Apache-2.0
"""The verb ``evaluate``: an algorithm held against RFC 9743, its report card, and the matrix of all cards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.card.card import Card, read_cards, write_card
from longfat.card.document import CardDocument, card_document
from longfat.card.measure import measured
from longfat.card.page import draw_card, draw_matrix, matrix_text
from longfat.card.sheet import counted
from longfat.catalog.ccas import CCAS
from longfat.dataset.load import load_dataset
from longfat.errors import RigError, StudyError
from longfat.execute.results import open_results
from longfat.files import write_whole
from longfat.manifest.names import unknown
from longfat.plan.lockfile import read_lock
from longfat.relations.evaluate import Grounds
from longfat.relations.judge import judge
from longfat.studies import StudyFolder
from longfat.verbs.conclude import tidy
from longfat.verbs.run import Machine, listen, results_path, run_study
from longfat.verbs.study import Choices, find_study

STUDY = "bcp133"
UNKNOWN = "algorithm"
CARDS = "cards"
TABLE = "CARDS.md"
SHIPPED = ("reno", "cubic", "bbr", "htcp", "scalable", "highspeed", "compound", "fast", "dctcp")
"""The algorithms whose cards belong to the study, in the order of the matrix."""


def evaluate(names: Sequence[str], profile: str, machine: Machine, console: Console, keep: bool = False) -> bool:
    """Evaluate each algorithm, and draw its card and the matrix; whether all runs are valid.

    Without names only the cards that are kept with the study are drawn. All share one results folder, and so the runs
    of the algorithms that each is compared with. With ``keep`` the cards are kept with the study.
    Raises StudyError for what is no algorithm, before any run.
    """
    for name in names:
        require_algorithm(name)
    folder = find_study(STUDY)
    document = card_document(folder)
    drawn = results_path(folder, machine.results, machine.backend) / CARDS
    valid = True
    for name in names:
        card = _evaluated(folder.assuming({UNKNOWN: name}), name, document, profile, machine, console)
        valid = valid and card.valid == card.planned
        write_card(card, drawn / f"{name}.json")
        if keep:
            write_card(card, folder.path / CARDS / f"{name}.json")
        console.print(f"{name}: {counted(card)}", highlight=False, markup=False, soft_wrap=True)
    cards = _cards(folder.path / CARDS, drawn)
    for card in cards:
        page = draw_card(card, document, drawn)
        if card.algorithm in names or not names:
            console.print(f"card: {page}", soft_wrap=True, markup=False, highlight=False)
    if cards:
        matrix = draw_matrix(cards, document, drawn)
        console.print(f"matrix: {matrix}", soft_wrap=True, markup=False, highlight=False)
    if keep:
        write_table(folder, document)
    return valid


def require_algorithm(name: str) -> None:
    """Raise StudyError unless the kernel has an algorithm of this name."""
    if name.endswith(".c") or "/" in name:
        raise StudyError(
            "an algorithm of one's own cannot be evaluated yet: its source is not compiled into the guest's kernel",
            where=name,
            hint=f"give the name of one that the kernel has: {', '.join(CCAS)}",
        )
    if name not in CCAS:
        message, hint = unknown("algorithm", name, CCAS)
        raise StudyError(message, hint=hint)


def table_of(cards: Sequence[Card], document: CardDocument) -> str:
    """The text of CARDS.md."""
    return (
        "# Algorithms against RFC 9743\n\n"
        "<!-- Generated: longfat evaluate --keep -->\n\n"
        "The candidates of the cards in `cards/`, one in each column. A bold number is worse than those of\n"
        "Reno and CUBIC in the same runs; `open` needs more repetitions.\n"
        "[docs/evaluate.md](../../docs/evaluate.md) describes how to make and to read a card.\n\n"
        f"{matrix_text(cards, document)}"
    )


def write_table(folder: StudyFolder, document: CardDocument) -> None:
    """Write the matrix of the kept cards as Markdown. Raises RigError."""
    path = folder.path / TABLE
    try:
        write_whole(path, table_of(read_cards(folder.path / CARDS, SHIPPED), document))
    except OSError as error:
        raise RigError(f"cannot write the table: {error}", where=str(path)) from error


def _evaluated(
    folder: StudyFolder, name: str, document: CardDocument, profile: str, machine: Machine, console: Console
) -> Card:
    """Run what is missing, judge and measure."""
    given = results_path(folder, machine.results, machine.backend)
    with open_results(given) as results, listen(results, console) as events:
        run_study(folder, Choices(profile), machine, results, events)
        tidy(results.path, events)
        verdicts = judge(results.path, folder.study, folder.claims, folder.judged_by)
        grounds = Grounds(folder.study, load_dataset(results.path))
        lock = hashlib.sha256(results.lock.read_bytes()).hexdigest()
        return measured(name, document, grounds, verdicts, read_lock(results.lock), lock)


def _cards(*folders: Path) -> list[Card]:
    """The cards of all folders; of two of one algorithm, that of the later folder."""
    found: dict[str, Card] = {}
    for folder in folders:
        found |= {card.algorithm: card for card in read_cards(folder, SHIPPED)}
    order = [*(name for name in SHIPPED if name in found), *sorted(set(found) - set(SHIPPED))]
    return [found[name] for name in order]
