# SPDX-License-Identifier: Apache-2.0
"""The findings of a study: the answer in sentences, causes of claims that are not reproduced, and stacks compared.

The sentences contain only counts and text of the study's README.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from longfat.evidence.judged import Evidenced
from longfat.relations.counting import Counts
from longfat.relations.headlines import HEADLINE_WORDS, LAWS, JudgedHeadline
from longfat.relations.judge import Verdict
from longfat.report.readme import Cause, Readme

GLYPHS: Mapping[str, str] = {
    "reproduced": "\N{CHECK MARK}",
    "compatible": "\N{ALMOST EQUAL TO}",
    "not reproduced": "\N{BALLOT X}",
    "undecided": "?",
    "not testable": "\N{EMPTY SET}",
}
"""A sign for each verdict, for readers who do not see its colour."""

MODERN = "modern"
"""The stack of the kernel without changes."""
DECIDED = ("reproduced", "compatible", "not reproduced")

Causes = Sequence[tuple[Cause | None, Sequence[Verdict]]]
"""The causes in the README, each with its claims that are not reproduced; claims without a cause come last."""


def sentence(counts: Counts, nouns: tuple[str, str] = ("claim", "claims")) -> str:
    """Format the numbers of verdicts on testable measured claims."""
    row = {word: number for word, number in counts["measured"].items() if number and word != "not testable"}
    if not row:
        return f"No {nouns[0]} depends on runs."
    parts = [f"{number} {'is' if number == 1 else 'are'} {word}" for word, number in row.items()]
    joined = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    total = sum(row.values())
    return f"Runs can decide {total} {nouns[total != 1]} either way: {joined}."


def answer(counts: Counts, nouns: tuple[str, str], causes: Causes) -> Iterator[str]:
    """Yield a sentence with the numbers of verdicts, and one with the number of known causes."""
    if not any(counts["measured"].values()):
        yield f"No {nouns[0]} was measured."
        return
    yield sentence(counts, nouns)
    if known := sum(len(own) for cause, own in causes if cause):
        failed = sum(len(own) for _, own in causes)
        every = {1: "the one", 2: "both"}.get(failed, f"all {failed}")
        number = every if known == failed else f"{known} of the {failed}"
        verb = "is" if failed == 1 else "are"
        yield f"The README has a cause, or a guess at it, of {number} that {verb} not reproduced, checks included."


def causes_of(verdicts: Sequence[Verdict], readme: Readme) -> Causes:
    """Group the claims that are not reproduced by the first cause that the README gives."""
    groups: dict[str, tuple[Cause | None, list[Verdict]]] = {}
    for verdict in verdicts:
        if verdict.verdict == "not reproduced":
            cause = next(iter(readme.of(verdict.claim)), None)
            groups.setdefault(cause.key if cause else "", (cause, []))[1].append(verdict)
    return sorted(groups.values(), key=lambda group: group[0] is None)


@dataclass(frozen=True)
class Comparison:
    """The claims that are reproduced under one of two stacks only; ``words`` has the verdicts under the other stack."""

    stack: str
    summary: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    words: Mapping[str, str]


def compare_stacks(own: Evidenced, other: Evidenced) -> Comparison:
    """Compare the verdicts that both stacks decide; the era's stack comes first in the groups."""
    words = {item.verdict.claim: item.verdict.verdict for item in other.judged}
    judged = [
        item.verdict for item in own.judged if item.verdict.verdict in DECIDED and words[item.verdict.claim] in DECIDED
    ]
    here = tuple(one.claim for one in judged if one.verdict == "reproduced" and words[one.claim] != "reproduced")
    there = tuple(one.claim for one in judged if one.verdict != "reproduced" and words[one.claim] == "reproduced")
    only = sorted([(own.stack, here), (other.stack, there)], key=lambda item: item[0] == MODERN)
    return Comparison(
        stack=other.stack,
        summary=f"Of {len(judged)} claims that the evidence decides under both stacks, "
        f"{len(judged) - len(here) - len(there)} are reproduced under both or under neither. Reproduced are:",
        groups=tuple((f"{len(claims)} only under {stack}", claims) for stack, claims in only),
        words=words,
    )


HEAD = ("the paper concludes", "paper", "here", "verdict", "claims behind it")
NOTHING = "runs missing"
MOST = 3  # claims of one verdict that a row names


def headline_rows(headlines: Iterable[JudgedHeadline]) -> Iterator[tuple[str, ...]]:
    """Yield the row of each headline: its statement, the paper's numbers, the numbers here, verdict, claims."""
    for one in headlines:
        yield one.headline.statement, one.headline.paper, one.here or NOTHING, one.text, "; ".join(_behind(one))


def headline_counts(headlines: Iterable[JudgedHeadline]) -> str:
    """Format the number of headlines by verdict."""
    found = [one.text for one in headlines]
    texts = [text for word in HEADLINE_WORDS for text in (word, word + LAWS)]
    return ", ".join(f"{found.count(text)} {text}" for text in texts if text in found)


def _behind(one: JudgedHeadline) -> Iterator[str]:
    """Yield the claims of each verdict."""
    for word in dict.fromkeys(one.claims.values()):
        names = [name for name, own in one.claims.items() if own == word]
        more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
        yield f"{word}: {', '.join(names[:MOST])}{more}"
