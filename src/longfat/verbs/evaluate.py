# SPDX-License-Identifier: Apache-2.0
"""The verb ``evaluate``: an algorithm held against RFC 9743, its report card, and the matrix of all cards."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from longfat.card.card import Card, read_cards, write_card
from longfat.card.document import CardDocument, card_document
from longfat.card.measure import measured
from longfat.card.own import is_file, name_of, own_study, require_source
from longfat.card.page import draw_card, draw_matrix, matrix_text
from longfat.card.sheet import counted
from longfat.catalog.ccas import CCAS
from longfat.dataset.load import load_dataset
from longfat.errors import RigError, StudyError
from longfat.execute.results import open_results
from longfat.files import write_whole
from longfat.plan.lockfile import read_lock
from longfat.relations.evaluate import Grounds
from longfat.relations.judge import judge
from longfat.schema.names import unknown
from longfat.studies import StudyFolder
from longfat.verbs.conclude import tidy
from longfat.verbs.listening import listen
from longfat.verbs.run import Machine, results_path, run_study
from longfat.verbs.say import print_json
from longfat.verbs.study import Choices, find_study

STUDY = "bcp133"
FORMAT = 1
UNKNOWN = "algorithm"
CARDS = "cards"
OWN = "own"
TABLE = "CARDS.md"
SHIPPED = ("reno", "cubic", "bbr", "htcp", "scalable", "highspeed", "compound", "fast", "dctcp")
"""The algorithms whose cards belong to the study, in the order of the matrix."""


def evaluate(
    given: Sequence[str],
    profile: str,
    machine: Machine,
    console: Console,
    *,
    keep: bool = False,
    as_json: bool = False,
) -> bool:
    """Evaluate each algorithm, a name or a C file, and draw its card and the matrix; whether all runs are valid.

    Without any, only the cards that are kept with the study are drawn. All share one results folder, and so the runs
    of the algorithms that each is compared with. With ``keep`` the cards are kept with the study.
    Raises StudyError for what is no algorithm, before any run.
    """
    for one in given:
        require_algorithm(one)
    folder = find_study(STUDY)
    document = card_document(folder)
    home = results_path(folder, machine.results, machine.backend)
    drawn = home / CARDS
    valid, made = True, set[str]()
    for one in given:
        name, study = _candidate(folder, one, home / OWN)
        card = _evaluated(study, name, document, profile, machine, home, console)
        valid = valid and card.valid == card.planned
        made.add(card.algorithm)
        write_card(card, drawn / f"{name}.json")
        if keep:
            write_card(card, folder.path / CARDS / f"{name}.json")
            write_table(folder, document)
        draw_card(card, document, drawn)
        _say(console, f"{name}: {counted(card)}")
        _say(console, f"card: {drawn / name}.html")
    cards = _cards(folder.path / CARDS, drawn)
    if not given:
        for card in cards:
            _say(console, f"card: {draw_card(card, document, drawn)}")
    if cards:
        _say(console, f"matrix: {draw_matrix(cards, document, drawn)}")
    if keep and not given:
        write_table(folder, document)
    if as_json:
        wanted = [card for card in cards if not made or card.algorithm in made]
        print_json({"format": FORMAT, "valid": valid, "cards": [dataclasses.asdict(card) for card in wanted]})
    return valid


def require_algorithm(given: str) -> None:
    """Raise StudyError unless it is the name of an algorithm that the kernel has, or a C file that can be used."""
    if is_file(given):
        require_source(Path(given))
    elif given not in CCAS:
        message, hint = unknown("algorithm", given, CCAS)
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


def _candidate(folder: StudyFolder, given: str, own: Path) -> tuple[str, StudyFolder]:
    """The name of what is evaluated, and the study with it as the candidate."""
    if not is_file(given):
        return given, folder.assuming({UNKNOWN: given})
    study = own_study(folder, Path(given), own)
    study.check()
    return name_of(Path(given)), study


def _evaluated(
    folder: StudyFolder,
    name: str,
    document: CardDocument,
    profile: str,
    machine: Machine,
    home: Path,
    console: Console,
) -> Card:
    """Run what is missing, judge and measure."""
    with open_results(home) as results, listen(results, console) as events:
        run_study(folder, Choices(profile), machine, results, events)
        tidy(results.path, folder, events)
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


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False, highlight=False)
