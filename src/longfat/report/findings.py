# SPDX-License-Identifier: Apache-2.0
"""The findings of a study: the answer in sentences, and the causes of the claims that are not reproduced.

Owns the sentences, which contain only counts and text of the study's README.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from longfat.relations.counting import Counts
from longfat.relations.judge import Verdict
from longfat.report.readme import Cause, Readme

GLYPHS: Mapping[str, str] = {
    "reproduced": "\N{CHECK MARK}",
    "agrees": "\N{ALMOST EQUAL TO}",
    "not_reproduced": "\N{BALLOT X}",
    "inconclusive": "?",
    "not_measured": "\N{EN DASH}",
    "not_testable": "\N{EMPTY SET}",
}
"""A sign for each verdict, for readers who do not see its colour."""

NAMES: Mapping[str, str] = {word: word.replace("_", " ") for word in GLYPHS} | {"agrees": "in agreement"}


@dataclass(frozen=True)
class Unreproduced:
    """Claims that are not reproduced, with the cause that the README gives for them, if any."""

    cause: Cause | None
    verdicts: tuple[Verdict, ...]


def answer(counts: Counts, noun: tuple[str, str], causes: Sequence[Unreproduced]) -> Iterator[str]:
    """Yield a sentence with the numbers of verdicts, and one with the number of known causes."""
    measured = counts["measured"]
    total = sum(measured.values())
    if not total:
        yield f"No {noun[0]} was measured."
        return
    parts = [f"{number} {_be(number)} {NAMES[word]}" for word, number in measured.items() if number]
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
    yield f"Of {total} {noun[total != 1]} that only runs can decide, {listed}."
    failed = [verdict for group in causes for verdict in group.verdicts]
    known = sum(len(group.verdicts) for group in causes if group.cause)
    if failed and known:
        yield f"The README gives a cause for {known} of the {len(failed)} that are not reproduced, of all kinds."


def unreproduced(verdicts: Sequence[Verdict], readme: Readme) -> tuple[Unreproduced, ...]:
    """Group the claims that are not reproduced by cause; claims without a cause come last."""
    groups: dict[str, tuple[Cause | None, list[Verdict]]] = {}
    for verdict in verdicts:
        if verdict.verdict == "not_reproduced":
            cause = next(iter(readme.of(verdict.claim)), None)
            groups.setdefault(cause.key if cause else "", (cause, []))[1].append(verdict)
    ordered = sorted(groups.values(), key=lambda group: group[0] is None)
    return tuple(Unreproduced(cause, tuple(own)) for cause, own in ordered)


def _be(number: int) -> str:
    return "is" if number == 1 else "are"
