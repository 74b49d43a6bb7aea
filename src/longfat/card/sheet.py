# SPDX-License-Identifier: Apache-2.0
"""Draws cards: one of a single algorithm on one page, and the matrix of several. Measures and judges nothing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from longfat.card.card import Card, Cell, Word
from longfat.card.document import CardDocument, Row
from longfat.figures import style

COLOURS: dict[Word | None, tuple[str, str]] = {
    "no worse": ("#0b6e4f", "#e7f4ef"),
    "worse": ("#a3252b", "#fbebec"),
    "open": ("#8a5a00", "#fcf3e0"),
    "not measured": (style.SOFT, "#eef1f4"),
    None: (style.INK, "white"),
}
ARROWS = {"less": "\N{DOWNWARDS ARROW}", "more": "\N{UPWARDS ARROW}", None: " "}
NO_VALUE = "\N{EN DASH}"
NOTES = (
    "A verdict holds the candidate against Reno and CUBIC in the same runs, whichever does worse, within 5 %; a row "
    "without one has no threshold in the RFC.",
    "A product is rate times round-trip time. Arrows say which values are better. Intervals and runs are in the page.",
)
MARGIN, LINE, FONT = 0.35, 0.162, 6.2  # inches, inches, points
SECTION, ASKS, SHOWS, UNIT, NUMBER, VERDICT = 0.58, 0.52, 3.7, 0.5, 0.5, 0.84  # widths in inches
DPI = 200


@dataclass(frozen=True)
class Column:
    """A column of numbers: its heading and its cells with the words that they are tinted by."""

    heading: str
    cells: Sequence[tuple[str, Word | None]]
    bold: bool = False


def card_sheet(card: Card, document: CardDocument) -> Figure:
    """One algorithm's card."""
    columns = [
        Column(
            card.algorithm if name == document.candidate else document.beside[name],
            [
                (shown(card.cell(row.row, name), row), word_of(card, row) if name == document.candidate else None)
                for row in document.rows
            ],
            bold=name == document.candidate,
        )
        for name in document.columns
    ]
    subtitle = f"{counted(card)}. Profile {card.profile}, {card.valid} of {card.planned} runs valid"
    title = f"{card.algorithm} against RFC 9743 (BCP 133)"
    return _sheet(title, subtitle, document, columns, [word_of(card, row) for row in document.rows])


def matrix_sheet(cards: Sequence[Card], document: CardDocument) -> Figure:
    """The candidates of all cards side by side."""
    columns = [
        Column(
            card.algorithm,
            [(shown(card.cell(row.row, document.candidate), row), word_of(card, row)) for row in document.rows],
        )
        for card in cards
    ]
    subtitle = "Each column is the candidate of a card; colours are verdicts against Reno and CUBIC in the same runs"
    return _sheet(f"{len(cards)} algorithms against RFC 9743 (BCP 133)", subtitle, document, columns, None)


def counted(card: Card) -> str:
    """How many verdicts of each kind a card has, for people."""
    words: tuple[Word, ...] = ("no worse", "worse", "open", "not measured")
    found = [f"{card.count(word)} {word}" for word in words if card.count(word)]
    return f"Against Reno and CUBIC: {', '.join(found) or 'no verdict'}"


def shown(cell: Cell, row: Row) -> str:
    """The value of a cell as it is printed."""
    return NO_VALUE if cell.value is None else f"{cell.value:.{row.digits}f}".replace("-", "\N{MINUS SIGN}")


def word_of(card: Card, row: Row) -> Word | None:
    """The verdict of a row, None where it has none."""
    judgement = card.verdicts.get(row.row)
    return judgement.word if judgement else "not measured" if row.claim else None


def image(figure: Figure, kind: str) -> bytes:
    """The drawing's bytes, ``png`` or ``svg``; equal drawings give equal bytes."""
    stream = io.BytesIO()
    with matplotlib.rc_context(style.SETTINGS):
        figure.savefig(stream, format=kind, dpi=DPI, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return stream.getvalue()


def _sheet(
    title: str, subtitle: str, document: CardDocument, columns: Sequence[Column], verdicts: Sequence[Word | None] | None
) -> Figure:
    before = SECTION + ASKS + SHOWS + UNIT
    width = 2 * MARGIN + before + NUMBER * len(columns) + (VERDICT if verdicts else 0)
    height = 2 * MARGIN + LINE * (len(document.rows) + len(document.left_out) + 9)
    with matplotlib.rc_context(style.SETTINGS):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        page = _Page(figure, width, height)
        page.text(MARGIN, 0.4, title, size=11, bold=True)
        page.text(MARGIN, 1.9, subtitle, colour=style.SOFT)
        for index, note in enumerate(NOTES):
            page.text(MARGIN, 3 + index, note, colour=style.SOFT, most=width - 2 * MARGIN)
        top = 5.6
        left = MARGIN + before
        for heading, at in (
            ("section", MARGIN),
            ("asks", MARGIN + SECTION),
            ("what is shown", MARGIN + SECTION + ASKS),
        ):
            page.text(at, top, heading, colour=style.SOFT)
        for place, column in enumerate(columns):
            page.text(
                left + NUMBER * (place + 1) - 0.05, top, column.heading, right=True, bold=True, most=NUMBER - 0.03
            )
        for index, row in enumerate(document.rows):
            line = top + 1 + index
            if index % 2 == 0:
                page.band(line, MARGIN, width - 2 * MARGIN)
            page.text(MARGIN, line, row.section)
            page.text(MARGIN + SECTION, line, row.asks, bold=row.asks.isupper())
            page.text(MARGIN + SECTION + ASKS, line, row.shows, most=SHOWS - 0.05)
            page.text(left - 0.12, line, f"{row.unit} {ARROWS[row.better]}", right=True, colour=style.SOFT)
            for place, column in enumerate(columns):
                text, word = column.cells[index]
                at = left + NUMBER * place
                if word is not None:
                    page.band(line, at + 0.01, NUMBER - 0.02, COLOURS[word][1])
                page.text(at + NUMBER - 0.05, line, text, right=True, bold=column.bold, colour=COLOURS[word][0])
            if verdicts and (word := verdicts[index]) is not None:
                page.pill(line, left + NUMBER * len(columns) + 0.08, VERDICT - 0.1, word)
        line = top + 2 + len(document.rows)
        page.text(MARGIN, line - 0.2, "not shown", colour=style.SOFT)
        for index, one in enumerate(document.left_out):
            page.text(MARGIN, line + 1 + index, one.section)
            page.text(MARGIN + SECTION, line + 1 + index, one.asks, bold=one.asks.isupper())
            page.text(MARGIN + SECTION + ASKS, line + 1 + index, f"{one.what}: {one.reason}")
        return figure


@dataclass(frozen=True)
class _Page:
    """A page that is written by inches from the left and lines from the top."""

    figure: Figure
    width: float
    height: float

    def _up(self, line: float) -> float:
        return (self.height - MARGIN - LINE * (line + 0.5)) / self.height

    def text(
        self,
        at: float,
        line: float,
        text: str,
        *,
        size: float = FONT,
        bold: bool = False,
        right: bool = False,
        colour: str = style.INK,
        most: float | None = None,
    ) -> None:
        """Write a text; one that is wider than ``most`` inches is set smaller."""
        drawn = self.figure.text(
            at / self.width,
            self._up(line),
            text,
            fontsize=size,
            fontweight="bold" if bold else "normal",
            color=colour,
            ha="right" if right else "left",
            va="center_baseline",
        )
        if most is not None:
            wide = drawn.get_window_extent().width / self.figure.dpi
            drawn.set_fontsize(size * min(1.0, most / wide))

    def band(self, line: float, at: float, wide: float, colour: str = "#f5f7f9") -> None:
        """Fill a part of a line."""
        place = (at / self.width, self._up(line) - LINE / 2 / self.height)
        size = (wide / self.width, LINE / self.height)
        self.figure.add_artist(
            Rectangle(place, *size, transform=self.figure.transFigure, color=colour, lw=0, zorder=-1)
        )

    def pill(self, line: float, at: float, wide: float, word: Word) -> None:
        """Write a verdict."""
        ink, ground = COLOURS[word]
        place = (at / self.width, self._up(line) - LINE * 0.38 / self.height)
        self.figure.add_artist(
            FancyBboxPatch(
                place, wide / self.width, LINE * 0.76 / self.height, boxstyle="round,pad=0,rounding_size=0.004",
                transform=self.figure.transFigure, facecolor=ground, edgecolor=ink, lw=0.5,
            )
        )  # fmt: skip
        self.figure.text(
            (at + wide / 2) / self.width, self._up(line), word, fontsize=FONT, fontweight="bold", color=ink,
            ha="center", va="center_baseline",
        )  # fmt: skip
