# SPDX-License-Identifier: Apache-2.0
"""The count of verdicts by category and word.

Owns the categories. A test that occurs twice, and claims that exclude each other, count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from longfat.relations.claims import KINDS, Claim
from longfat.relations.outcomes import WORDS, Word

APART: Mapping[str, str] = {
    "calibrated": "calibrated",
    "law": "laws",
    "construction": "by construction",
    "arithmetic": "arithmetic",
    "inconsistent": "contradicted by the paper's own figures",
}
CATEGORIES = (KINDS[0], *APART)

Counts = Mapping[str, Mapping[Word, int]]


@dataclass(frozen=True)
class Share:
    """The numbers of testable, decided and reproduced claims. Compatible claims count as decided, not as reproduced."""

    testable: int
    decided: int
    reproduced: int

    def __str__(self) -> str:
        decided, reproduced = (100 * part / self.testable for part in (self.decided, self.reproduced))
        return f"of {self.testable} {decided:.1f} % are decided and {reproduced:.1f} % are reproduced"


@dataclass(frozen=True)
class Counted:
    """The parts of a verdict that its count depends on. ``group`` lists the claims that exclude it."""

    claim: str
    word: Word
    category: str
    same_as: str | None = None
    group: tuple[str, ...] = ()


def category_of(claim: Claim) -> str:
    """Return the category in which a claim is counted."""
    return "inconsistent" if claim.inconsistent else claim.kind


def once(rows: Iterable[Counted]) -> list[Counted]:
    """Return the claims that count: one for each test, and the first of claims that exclude each other."""
    known = [row for row in rows if row.same_as is None]
    taken: set[str] = set()
    for row in known:
        if taken.isdisjoint(row.group):
            taken.add(row.claim)
    return [row for row in known if row.claim in taken]


def tally(rows: Iterable[Counted]) -> Counts:
    """Count the words by category."""
    counts: dict[str, dict[Word, int]] = {name: dict.fromkeys(WORDS, 0) for name in CATEGORIES}
    for row in once(rows):
        counts[row.category][row.word] += 1
    return counts


def shares(counts: Counts) -> Mapping[str, Share]:
    """Return the share of measured claims, of all testable claims, and of testable claims that are consistent.

    Claims whose number determined a setting are left out.
    """
    every = tuple(name for name in CATEGORIES if name != "calibrated")
    return {
        "only runs can decide": _share(counts, CATEGORIES[:1]),
        "can be tested": _share(counts, every),
        "the paper's own figures do not contradict": _share(counts, [name for name in every if name != "inconsistent"]),
    }


def _share(counts: Counts, names: Iterable[str]) -> Share:
    words = {word: sum(counts[name][word] for name in names) for word in WORDS}
    decided = words["reproduced"] + words["compatible"] + words["not reproduced"]
    return Share(decided + words["undecided"], decided, words["reproduced"])


def apart(counts: Counts) -> list[str]:
    """Format the nonempty categories other than measured claims, one phrase each, and the claims without a test."""
    found = []
    for name, meaning in APART.items():
        words = {word: number for word, number in counts[name].items() if number}
        if words:
            parts = words if len(words) == 1 else [f"{number} {word}" for word, number in words.items()]
            found.append(f"{sum(words.values())} {meaning} ({', '.join(parts)})")
    if untested := counts["measured"]["not testable"]:
        found.append(f"{untested} not testable")
    return found
