# SPDX-License-Identifier: Apache-2.0
"""A forest plot of all claims: the measured interval against the allowed band.

Owns the scale. A band with two ends lies between -1 and 1. A band with one end has it at -1 or 1, and the measured
interval is drawn at most two units from it. A claim is represented by its deciding comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.relations.outcomes import Word
from longfat.report.numbers import allowed, measured

WIDTH, HEIGHT, UNIT = 240, 16, 40  # size of the drawing of a row, and of a unit of its scale
EDGE = 2.85  # position of the arrow for values farther out
NARROW = 0.05  # half width of a band with equal ends, relative to them
_ONWARD = ("end of ", "below ", "sums of ", "figure", "table")  # prefixes of places that name no section


@dataclass(frozen=True)
class Row:
    """The line of a claim: texts, and x coordinates in the drawing.

    ``band`` and ``whisker`` have a left and a right end. ``dot`` is None for a claim without a value, and ``beyond`` is
    -1 or 1 for a dot outside of the drawing.
    """

    claim: str
    statement: str
    word: Word
    words: str
    measured: str
    allowed: str
    band: tuple[float, float] | None = None
    whisker: tuple[float, float] | None = None
    dot: float | None = None
    beyond: int = 0


@dataclass(frozen=True)
class Part:
    """A section of the paper with the lines of its claims."""

    section: str
    rows: tuple[Row, ...]


def by_section(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Group claims by section of the paper, in its order; a place without a section belongs to the section before."""
    found: dict[str, list[Verdict]] = {}
    section = ""
    for verdict in verdicts:
        section = _section(verdict.where) or section or verdict.where or "Claims"
        found.setdefault(section, []).append(verdict)
    return found


def forest(
    sections: Mapping[str, Sequence[Verdict]], chosen: Callable[[Verdict], bool] = lambda _: True
) -> tuple[Part, ...]:
    """Return the lines of the chosen claims of each section."""
    parts = (Part(section, tuple(_row(one) for one in own if chosen(one))) for section, own in sections.items())
    return tuple(part for part in parts if part.rows)


def _section(where: str) -> str:
    name = where.split(", ")[0].split(";")[0].strip()
    name = name.removeprefix("end of ")
    return "" if name.lower().startswith(_ONWARD) else name


def _row(verdict: Verdict) -> Row:
    one = verdict.deciding
    if one is None or one.mean is None:
        reason = (one.reason if one else verdict.reason) or ""
        return Row(verdict.claim, verdict.statement, verdict.verdict, verdict.words, reason, one.limit if one else "")
    row = Row(verdict.claim, verdict.statement, verdict.verdict, verdict.words, measured(one), allowed(one))
    return row if one.limit_low is None and one.limit_high is None else _with_drawing(row, one)


def _with_drawing(row: Row, one: Evidence) -> Row:
    """Add the drawing to a line."""
    assert one.mean is not None
    ends = [number for number in (one.low, one.high) if number is not None] or [one.mean]
    low, high = one.limit_low, one.limit_high
    if low is not None and high is not None:
        middle, half = (low + high) / 2, (high - low) / 2
        half = half or NARROW * abs(middle) or 1.0
        band, origin, scale = (-1.0, 1.0), middle, half
    else:
        bound = low if low is not None else high
        assert bound is not None
        scale = max(abs(number - bound) for number in (*ends, one.mean)) / 2 or 1.0
        side = -1.0 if low is not None else 1.0
        band, origin = ((-1.0, 3.0) if low is not None else (-3.0, 1.0)), bound - side * scale
    places = [(number - origin) / scale for number in (one.mean, min(ends), max(ends))]
    dot, least, most = (_x(max(-EDGE, min(EDGE, place))) for place in places)
    beyond = (places[0] > EDGE) - (places[0] < -EDGE)
    whisker = (least, most) if most - least > 1 else None
    return replace(row, band=(_x(band[0]), _x(band[1])), whisker=whisker, dot=dot, beyond=beyond)


def _x(place: float) -> float:
    return round(WIDTH / 2 + UNIT * place, 1)
