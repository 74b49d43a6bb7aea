# SPDX-License-Identifier: Apache-2.0
"""Cards for people: a self-contained page, and the matrix of several cards as a page and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from longfat.report.card.card import ALONE, COMPARED, Card, Cell, Word
from longfat.report.card.document import CardDocument, Row
from longfat.report.markdown import table
from longfat.report.page import render, write_page

MATRIX = "matrix.html"
NO_VALUE = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """A column of numbers; the numbers of a ``candidate`` have verdicts."""

    heading: str
    card: Card
    name: str
    candidate: bool

    def cell(self, row: Row) -> Cell:
        """Return the cell of a row."""
        return self.card.cell(row.row, self.name)

    def text(self, row: Row) -> str:
        """Return the printed value of a cell."""
        value = self.cell(row).value
        return NO_VALUE if value is None else f"{value:.{row.digits}f}".replace("-", "\N{MINUS SIGN}")

    def word(self, row: Row) -> Word | None:
        """Return the verdict of a cell; None for a cell without one."""
        return self.card.word(row) if self.candidate else None


@dataclass(frozen=True)
class Strip:
    """The candidate's number as a dot on a band that ends at the worse peer, in percent of the width."""

    start: float
    end: float
    dot: float


def strip(row: Row, columns: Sequence[Column]) -> Strip | None:
    """Return the strip of a row; None if it has no better side or lacks a number."""
    values = [(column.candidate, column.cell(row).value) for column in columns]
    peers = [value for candidate, value in values if value is not None and not candidate]
    [mine] = (value for candidate, value in values if candidate)
    low, high = min((0.0, mine or 0.0, *peers)), max((0.0, mine or 0.0, *peers))
    if not row.better or not peers or mine is None or len(peers) + 1 < len(columns) or low == high:
        return None
    limits, dot = [100 * (value - low) / (high - low) for value in peers], 100 * (mine - low) / (high - low)
    return Strip(0, max(limits), dot) if row.better == "less" else Strip(min(limits), 100, dot)


def draw_card(card: Card, document: CardDocument, folder: Path) -> Path:
    """Write a card as ``ALGORITHM.html``; return the page."""
    note = f"{card.summary}. {card.valid} of {card.planned} runs valid, profile {card.profile}."
    peers = [Column(text, card, name, False) for name, text in document.peers.items() if name != card.algorithm]
    columns = [*_candidates([card], document), *peers]
    heading = f"{card.algorithm} against {document.against}"
    page = render(
        "card.html.j2",
        heading=heading,
        note=note,
        columns=columns,
        document=document,
        card=card,
        runs=_runs(folder, card.algorithm),
        strips={row.row: strip(row, columns) for row in document.rows},
    )
    return write_page(folder / f"{card.algorithm}.html", page)


def report_of(algorithm: str) -> str:
    """Return the name of the report with the runs of a card."""
    return f"report-{algorithm}.html"


def _runs(folder: Path, algorithm: str) -> str:
    """Return the address of runs in the explorer, without their ids; "" without a report of the card's runs."""
    report = folder.parent / report_of(algorithm)
    return f"../{quote(report.name)}#explore=&runs=" if report.exists() else ""


def draw_matrix(cards: Sequence[Card], document: CardDocument, folder: Path) -> Path:
    """Write ``matrix.html``, with the candidates of all cards side by side; return the page."""
    heading, note = f"{len(cards)} algorithms against {document.against}", "Each column is the candidate of a card."
    columns = _candidates(cards, document)
    page = render(
        "card.html.j2", heading=heading, note=note, columns=columns, document=document, card=None, runs="", strips={}
    )
    return write_page(folder / MATRIX, page)


def matrix_text(cards: Sequence[Card], document: CardDocument) -> str:
    """Format the matrix as a table in Markdown."""
    columns = _candidates(cards, document)
    head = ["section", "asks", "what is shown", "unit", *(column.heading for column in columns)]
    rows = []
    marks: dict[Word | None, str] = {"worse": "**{}**", "not reproduced": "**{}**"}
    marks |= {word: f"{{}} ({word})" for word in ("open", "undecided")}
    words = tuple(COMPARED.values())[:3] if document.peers else tuple(ALONE.values())
    for row in document.rows:
        cells = [marks.get(column.word(row), "{}").format(column.text(row)) for column in columns]
        rows.append((row.section, row.asks or "", row.shows, row.unit, *cells))
    rows.append(
        ("", "", " / ".join(words), "", *(" / ".join(str(card.count(word)) for word in words) for card in cards))
    )
    rows.append(("", "", "valid runs of those planned", "", *(f"{card.valid} of {card.planned}" for card in cards)))
    return "\n".join(table(head, rows, len(cards))) + "\n"


def _candidates(cards: Sequence[Card], document: CardDocument) -> list[Column]:
    return [Column(card.algorithm, card, document.candidate, candidate=True) for card in cards]
