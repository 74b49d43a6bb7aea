# SPDX-License-Identifier: Apache-2.0
"""A report card as data: numbers and verdicts of one algorithm, in a small file that needs no runs to be read.

Owns the file's form. Texts and their order are the document's (``longfat.card.document``).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from longfat.errors import RigError
from longfat.files import write_whole

FORMAT = 1
DIGEST = "sha256"  # of the rest of a card's file
Word = Literal["no worse", "worse", "open", "not measured"]


@dataclass(frozen=True)
class Cell:
    """A value with its 95 % interval and the runs that it is from, by the first digits of their ids; or why none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    runs: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Judgement:
    """The verdict of a row, with what was compared as text."""

    word: Word
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """The card of one algorithm. ``cells`` are by row and column; ``kernel`` and ``lock`` are digests."""

    algorithm: str
    study: str
    profile: str
    kernel: str
    lock: str
    valid: int
    planned: int
    cells: Mapping[str, Mapping[str, Cell]]
    verdicts: Mapping[str, Judgement] = field(default_factory=dict)
    format: int = FORMAT

    def cell(self, row: str, column: str) -> Cell:
        """A cell; one that the card does not have says so."""
        return self.cells.get(row, {}).get(column, Cell(reason="the card is older than this row"))

    def count(self, word: Word) -> int:
        """How many rows have a verdict."""
        return sum(judgement.word == word for judgement in self.verdicts.values())


def write_card(card: Card, path: Path) -> Path:
    """Write ``card`` as JSON, whole or not at all. Raises RigError."""
    data = _without_defaults(dataclasses.asdict(card))
    text = json.dumps({**data, DIGEST: _digest(data)}, indent=1, sort_keys=True) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise RigError(f"cannot write the card: {error}", where=str(path)) from error
    return path


def read_card(path: Path) -> Card:
    """Read what ``write_card`` wrote. Raises RigError with the place of the first fault, or where it was changed."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        declared = data.pop(DIGEST, None) if isinstance(data, dict) else None
        (card,) = TypeAdapter(list[Card], config=ConfigDict(extra="forbid")).validate_python([data])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"][1:]))
        raise RigError(f"the card cannot be read: {place}: {first['msg'].lower()}", where=str(path)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise RigError(f"the card cannot be read: {error}", where=str(path)) from error
    if card.format != FORMAT:
        raise RigError(f"the card is of format {card.format}; this version reads {FORMAT}", where=str(path))
    if declared not in (None, _digest(data)):  # the first cards have none
        hint = "`longfat evaluate` makes it anew"
        raise RigError("the card was changed since it was made", where=str(path), hint=hint)
    return card


def read_cards(folder: Path, first: Sequence[str] = ()) -> list[Card]:
    """The cards of a folder by name, those named ``first`` before all others. Raises RigError."""
    cards = {card.algorithm: card for card in (read_card(path) for path in sorted(folder.glob("*.json")))}
    order = [*(name for name in first if name in cards), *(name for name in cards if name not in first)]
    return [cards[name] for name in order]


def _without_defaults(data: Any) -> Any:
    """Without members of cells that have nothing to say."""
    if isinstance(data, dict):
        return {name: _without_defaults(value) for name, value in data.items() if value is not None}
    return data


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
