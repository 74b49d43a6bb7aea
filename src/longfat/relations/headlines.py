# SPDX-License-Identifier: Apache-2.0
"""The main conclusions of a paper, in headlines.yaml, and the verdict on each from the claims behind it.

The verdict is computed from the claims only; headlines.yaml has no key for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import filter as filter_names
from itertools import cycle, product
from typing import Literal

from pydantic import Field

from longfat.relations.bind import RelationError, Scope
from longfat.relations.claims import Claim, placed
from longfat.relations.judge import Verdict
from longfat.relations.nodes import terms_of
from longfat.relations.syntax import parse_expression
from longfat.relations.tree import check as check_names
from longfat.relations.tree import constant
from longfat.study.schema import fields as f
from longfat.study.schema.names import Finding, unknown
from longfat.study.schema.source import Source, document_of
from longfat.study.study import Study

HeadlineWord = Literal["supported", "supported in part", "contradicted", "open", "scenario differs"]
HEADLINE_WORDS: tuple[HeadlineWord, ...] = (
    "supported",
    "supported in part",
    "contradicted",
    "open",
    "scenario differs",
)

RULE = (
    "A headline is supported if all its claims are reproduced, contradicted if none is, and supported in part if some"
    " are and some are not, or if agreement within the paper's wide error is all there is. It is open while an"
    " undecided claim can change that. Claims that are not testable, calibrated or true by construction do not count."
    " With a claim whose scenario differs from the paper's it is supported in part at best; if there are only such"
    " claims, the scenario differs. A published law counts like other claims, and is marked: hardly any run could"
    " contradict it."
)

DIFFERS: Literal["scenario differs"] = "scenario differs"
APART = {"construction": "by construction", "calibrated": "calibrated"}
POSITIVE = ("reproduced", "compatible")
LAW = ", law"  # behind the verdict on a published law
LAWS = " (laws)"  # behind the verdict on a headline that only laws support
_NUMBER = re.compile(r"\$\{([^{}]+)\}")


class Headline(f.Closed):
    """A main conclusion of the paper, with the claims that support it."""

    id: f.Name = Field(description="unique in the study")
    statement: f.Text = Field(description="the conclusion in one sentence, in our own words")
    paper: f.Text = Field(description="the paper's numbers, or its words in short")
    where: f.Text = Field(description="section, figure or table of the paper")
    here: f.Text = Field(
        description="the numbers here: a text in which `${EXPRESSION}` is replaced by its value in the evidence"
    )
    claims: tuple[f.Text, ...] = Field(
        min_length=1, description="ids of the claims that support it, or patterns such as `backoff-*`"
    )

    def expressions(self) -> Iterator[str]:
        """Yield the expressions in ``here``."""
        yield from _NUMBER.findall(self.here)


class HeadlinesDocument(f.Closed):
    """The whole of headlines.yaml."""

    format: Literal[2] = Field(description="version of this format")
    study: f.Name = Field(description="name of the study")
    question: f.Text = Field(description="the question of the paper, in one sentence")
    headlines: tuple[Headline, ...] = Field(description="the headlines, the most important first")


@dataclass(frozen=True)
class JudgedHeadline:
    """A headline with its verdict, the verdict on each claim behind it, and the text with the numbers here."""

    headline: Headline
    word: HeadlineWord
    claims: Mapping[str, str]
    here: str

    @property
    def text(self) -> str:
        """The verdict, with ``LAWS`` if no measured claim supports it."""
        positive = [word for word in self.claims.values() if word.removesuffix(LAW) in POSITIVE]
        return self.word + (LAWS if positive and all(word.endswith(LAW) for word in positive) else "")


def headlines_of(source: Source, study: Study, claims: Sequence[Claim]) -> HeadlinesDocument:
    """Read a ``headlines.yaml``. Raises StudyError with all its problems, each with file, line and key."""
    known = [claim.id for claim in claims]

    def check(document: HeadlinesDocument) -> Iterator[Finding]:
        if document.study != study.name:
            yield Finding(("study",), f"{document.study!r} is not the study in this folder, {study.name!r}")
        for index, headline in enumerate(document.headlines):
            place = ("headlines", index)
            for number, name in enumerate(headline.claims):
                if not filter_names(known, name):
                    yield Finding((*place, "claims", number), *unknown("claim", name, known))
            if "${" in _NUMBER.sub("", headline.here):
                yield Finding((*place, "here"), "has a '${' without its '}'")
            for text in headline.expressions():
                try:
                    expression = parse_expression(text)
                    check_names(expression, Scope(study))
                    if not terms_of(expression) and not math.isfinite(constant(expression)):
                        raise RelationError("the expression has no finite value")
                except RelationError as error:
                    yield Finding((*place, "here"), placed(text, error), error.hint)

    return document_of(source, HeadlinesDocument, "headlines", "id", check)


def claim_words(verdicts: Collection[Verdict], claims: Iterable[Claim]) -> dict[str, str]:
    """Return the word of each claim that counts for headlines: its verdict, or ``scenario differs``.

    A claim that is true by how the runs are set up, or was used to set them up, supports nothing. Neither does a claim
    whose scenario differs, whatever its runs show. The verdict on a law is followed by ``LAW``.
    """
    other = {claim.id for claim in claims if claim.scenario_differs}
    words = {one.claim: APART.get(one.category, DIFFERS if one.claim in other else one.verdict) for one in verdicts}
    laws = {one.claim for one in verdicts if one.category == "law" and one.claim not in other}
    return {name: f"{word}{LAW}" if name in laws else word for name, word in words.items()}


def judged_headlines(
    document: HeadlinesDocument | None, verdicts: Mapping[str, str], value: Callable[[str], float | None]
) -> tuple[JudgedHeadline, ...]:
    """Judge headlines from the word of each claim; ``value`` returns the value of an expression, None without data."""
    found = []
    for one in document.headlines if document else ():
        names = [name for pattern in one.claims for name in filter_names(verdicts, pattern)]
        claims = {name: verdicts[name] for name in dict.fromkeys(names)}
        found.append(JudgedHeadline(one, word_of(claims.values()), claims, _filled(one, value)))
    return tuple(found)


def word_of(verdicts: Iterable[str]) -> HeadlineWord:
    """Return the verdict on a headline from the words of its claims, by RULE."""
    words = [word.removesuffix(LAW) for word in verdicts]
    unsure = [place for place, word in enumerate(words) if word == "undecided"]
    if unsure:
        ends = product(*[("reproduced", "compatible", "not reproduced")] * min(len(unsure), 2))
        possible = {word_of(_ended(words, unsure, end)) for end in ends}
        return possible.pop() if len(possible) == 1 else "open"
    testable = [word for word in words if word not in ("not testable", *APART.values(), DIFFERS)]
    positive = [word for word in testable if word in POSITIVE]
    if words and not testable:
        return DIFFERS
    if positive and "not reproduced" in testable:
        return "supported in part"
    if not testable:
        return "open"
    if not positive:
        return "contradicted"
    return "supported" if set(positive) == {"reproduced"} and DIFFERS not in words else "supported in part"


def _ended(words: Sequence[str], unsure: Sequence[int], end: Sequence[str]) -> list[str]:
    """Return the words with ends of the undecided ones; two ends, repeated, cover all cases."""
    ends = dict(zip(unsure, cycle(end), strict=False))
    return [ends.get(place, word) for place, word in enumerate(words)]


def _filled(headline: Headline, value: Callable[[str], float | None]) -> str:
    """Return ``here`` with the values; "" if none has one."""
    values = {text: value(text) for text in headline.expressions()}
    if values and all(one is None for one in values.values()):
        return ""
    return _NUMBER.sub(lambda found: _number(values[found[1]]), headline.here)


def _number(value: float | None) -> str:
    """Format a value with three significant digits and at least its whole integer part; "?" without data."""
    if value is None or not math.isfinite(value):
        return "?"
    if not value:
        return "0"
    digits = 1 + math.floor(math.log10(abs(value)))
    return f"{value:,.{max(0, 3 - digits)}f}"
