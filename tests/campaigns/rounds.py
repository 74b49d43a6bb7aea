# SPDX-License-Identifier: Apache-2.0
"""The rounds of a campaign: each draws from a seed of its own, so that one alone can be played again.

Owns the clock and the table. Must not know what a round does.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

BAD = ("lost", "wrong", "traceback")


@dataclass(frozen=True)
class Round:
    """What was struck, and what came of it: a word for the table, which is bad if it is one of BAD."""

    struck: str
    outcome: str
    text: str = ""


class Failed(Exception):
    """What a round found that must not be; ``outcome`` is one of BAD."""

    def __init__(self, outcome: str, text: str) -> None:
        super().__init__(text)
        self.outcome = outcome


Play = Callable[[random.Random], Round]


class Campaign:
    """A campaign in the folder ``work``. What it has changed in this process by ``patch``, its end puts back."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.patch.undo()


def played(
    play: Play,
    seed: int,
    minutes: float,
    say: Callable[[str], None],
    only: Sequence[int] = (),
    log: Path | None = None,
) -> Iterator[Round]:
    """The rounds 1, 2, ... until the time is over, at least one, or only those named; bad ones are told at once.

    With a ``log``, the rounds of this seed that it has come first and are not played again, and each that is played is
    added to it: a long campaign may be played in pieces.
    """
    end = time.monotonic() + 60 * minutes
    known = dict(logged(log, seed)) if log else {}
    yield from known.values()
    for number in only or endless(end, known):
        found = play(random.Random(f"{seed}:{number}"))
        if found.outcome in BAD:
            say(f"round {number} of seed {seed}, {found.struck}: {found.outcome}: {found.text}")
        if log:
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"seed": seed, "number": number, **dataclasses.asdict(found)}) + "\n")
        yield found


def logged(log: Path, seed: int) -> Iterator[tuple[int, Round]]:
    """The rounds of a seed that a log has, by number."""
    for line in log.read_text(encoding="utf-8").splitlines() if log.exists() else ():
        entry = json.loads(line)
        if entry.pop("seed") == seed:
            yield entry.pop("number"), Round(**entry)


def endless(end: float, known: Container[int]) -> Iterator[int]:
    """1, 2, ... without those that are known, until the monotonic clock is at ``end``; one at least."""
    new = (number for number in itertools.count(1) if number not in known)
    yield next(new)
    yield from itertools.takewhile(lambda number: time.monotonic() < end, new)


def table(rounds: Iterable[Round]) -> str:
    """A Markdown table: a row for each thing that was struck, a column for each outcome, the bad ones always."""
    found = Counter((one.struck, one.outcome) for one in rounds)
    good = sorted({outcome for _, outcome in found} - {*BAD})
    columns = [*good, *BAD]
    lines = [_row("struck", "rounds", *columns), _row(*["---"] * (len(columns) + 2))]
    for struck in sorted({struck for struck, _ in found}):
        counts = [found[struck, outcome] for outcome in columns]
        lines.append(_row(struck, sum(counts), *counts))
    sums = [sum(count for (_, outcome), count in found.items() if outcome == name) for name in columns]
    lines.append(_row("all", sum(sums), *sums))
    return "\n".join(lines)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
