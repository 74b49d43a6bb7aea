# SPDX-License-Identifier: Apache-2.0
"""A picture of all claims: for each the measured interval against the band that is allowed.

Owns the scale. A band with two ends lies between -1 and 1; of one that is open to a side the end lies at -1 or 1, and
what was measured is drawn at most two units from it. Which comparison stands for a claim is the first that does not
hold, else the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from longfat.relations.counting import VerdictWord
from longfat.relations.evaluate import Evidence
from longfat.relations.judge import Verdict
from longfat.report.numbers import allowed, measured

WIDTH, HEIGHT, UNIT = 240, 16, 40  # of a row's drawing, and of the scale's unit in it
EDGE = 2.85  # what lies farther out is drawn here, as an arrow
NARROW = 0.05  # half of a band whose ends are one number, as a part of that
_ONWARD = ("end of ", "below ", "sums of ", "figure", "table")  # how a place begins that names no section


@dataclass(frozen=True)
class Row:
    """A claim's line: words, and x coordinates in the drawing. ``dot`` is None where nothing was measured.

    ``band`` and ``whisker`` are left and right ends. ``beyond`` is -1 or 1 where the dot lies outside the drawing.
    """

    claim: str
    statement: str
    word: VerdictWord
    measured: str
    allowed: str
    band: tuple[float, float] | None = None
    whisker: tuple[float, float] | None = None
    dot: float | None = None
    beyond: int = 0


@dataclass(frozen=True)
class Part:
    """A section of the paper with its claims' lines."""

    section: str
    rows: tuple[Row, ...]

    @property
    def counts(self) -> Mapping[VerdictWord, int]:
        """How often each word was given."""
        words = [row.word for row in self.rows]
        return {word: words.count(word) for word in dict.fromkeys(words)}


def by_section(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """The claims by section of the paper, in its order: a place that names none belongs to the one before."""
    found: dict[str, list[Verdict]] = {}
    section = ""
    for verdict in verdicts:
        section = _section(verdict.where) or section or verdict.where or "Claims"
        found.setdefault(section, []).append(verdict)
    return found


def forest(sections: Mapping[str, Sequence[Verdict]]) -> tuple[Part, ...]:
    """The lines of all claims."""
    return tuple(Part(section, tuple(_row(verdict) for verdict in own)) for section, own in sections.items())


def _section(where: str) -> str:
    name = where.split(",")[0].split(";")[0].strip()
    name = name.removeprefix("end of ")
    return "" if name.lower().startswith(_ONWARD) else name


def _row(verdict: Verdict) -> Row:
    one = verdict.deciding
    if one is None or one.mean is None:
        told = (verdict.reason or "") if one is None else (one.reason or "")
        return Row(verdict.claim, verdict.statement, verdict.verdict, told, one.limit if one else "")
    row = Row(verdict.claim, verdict.statement, verdict.verdict, measured(one), allowed(one))
    return row if one.limit_low is None and one.limit_high is None else _drawn(row, one)


def _drawn(row: Row, one: Evidence) -> Row:
    """The line with its drawing."""
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
