# SPDX-License-Identifier: Apache-2.0
"""Cards as files for people: a page that needs nothing else, with the evidence behind each cell; and the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from longfat.card.card import Card
from longfat.card.document import CardDocument
from longfat.card.sheet import card_sheet, counted, image, matrix_sheet, shown, word_of
from longfat.errors import RigError
from longfat.files import write_whole
from longfat.report.page import render, write_page

MATRIX = "matrix"


def draw_card(card: Card, document: CardDocument, folder: Path) -> Path:
    """Write a card as ``ALGORITHM.html``, ``.svg`` and ``.png``; give the page. Raises RigError."""
    sheet = card_sheet(card, document)
    _write_images(folder / card.algorithm, sheet)
    page = render(
        "card.html.j2", card=card, document=document, counted=counted(card), shown=shown, word_of=word_of, slug=_slug
    )
    return write_page(folder / f"{card.algorithm}.html", page)


def draw_matrix(cards: Sequence[Card], document: CardDocument, folder: Path) -> Path:
    """Write the candidates of all cards side by side as ``matrix.svg`` and ``.png``; give the latter."""
    return _write_images(folder / MATRIX, matrix_sheet(cards, document))


def matrix_text(cards: Sequence[Card], document: CardDocument) -> str:
    """The same as a table in Markdown."""
    head = ["section", "asks", "what is shown", "unit", *(card.algorithm for card in cards)]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * 4}{'---:|' * len(cards)}"]
    for row in document.rows:
        cells = []
        for card in cards:
            text, word = shown(card.cell(row.row, document.candidate), row), word_of(card, row)
            cells.append(f"**{text}**" if word == "worse" else f"{text} (open)" if word == "open" else text)
        lines.append(f"| {' | '.join([row.section, row.asks, row.shows, row.unit, *cells])} |")
    counts = [f"{card.count('no worse')} / {card.count('worse')} / {card.count('open')}" for card in cards]
    lines.append(f"| | | no worse / worse / open | | {' | '.join(counts)} |")
    lines.append(f"| | | valid runs of those planned | | {' | '.join(f'{c.valid} of {c.planned}' for c in cards)} |")
    return "\n".join(lines) + "\n"


def _write_images(stem: Path, sheet: Figure) -> Path:
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        for kind in ("svg", "png"):
            write_whole(stem.with_name(f"{stem.name}.{kind}"), image(sheet, kind))
    except OSError as error:
        raise RigError(f"cannot write the card: {error}", where=str(stem.parent)) from error
    return stem.with_name(f"{stem.name}.png")


def _slug(word: str | None) -> str:
    return (word or "none").replace(" ", "-")
