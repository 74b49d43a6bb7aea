# SPDX-License-Identifier: Apache-2.0
"""The rounds of a campaign: each draws from a seed of its own, so that one alone can be played again.

Owns the clock and the table. Must not know what a round does.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

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


def played(
    play: Play, seed: int, minutes: float, say: Callable[[str], None], only: Sequence[int] = ()
) -> Iterator[Round]:
    """The rounds 1, 2, ... until the time is over, at least one, or only those named; bad ones are told at once."""
    end = time.monotonic() + 60 * minutes
    for number in only or endless(end):
        found = play(random.Random(f"{seed}:{number}"))
        if found.outcome in BAD:
            say(f"round {number} of seed {seed}, {found.struck}: {found.outcome}: {found.text}")
        yield found


def endless(end: float) -> Iterator[int]:
    """1, 2, ... until the monotonic clock is at ``end``."""
    number = 1
    while number == 1 or time.monotonic() < end:
        yield number
        number += 1


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
