# SPDX-License-Identifier: Apache-2.0
"""Gates that the claims of a study pass before any run, from the paper's text alone.

A test must hold for the paper's own numbers; claims that exclude each other name each other; no test is made twice.
Owns these three rules. Judges no run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from longfat.manifest.idle import varies
from longfat.manifest.study import Study
from longfat.relations.bind import experiments_of
from longfat.relations.claims import Claim
from longfat.relations.evaluate import LEAST_OF_ALL, Evidence, Rule, comparisons
from longfat.relations.paper import Key, PaperNumbers, Test, tests_of
from longfat.schema.names import Finding


def printed_numbers(claims: Sequence[Claim], study: Study) -> dict[str, PaperNumbers]:
    """The paper's numbers for each claim: its own ``oracle``, and the limits of any claim on a quantity.

    An exact number takes precedence over one that is called approximate. Where the paper prints a quantity twice, a
    claim has the number of its own figures and tables; without one that is of these, a quantity with several numbers
    has none.
    """
    known: dict[Key, list[tuple[frozenset[str], float]]] = defaultdict(list)
    for claim in claims:
        for test in _tests(claim, study):
            if test.number is not None and not test.about:
                known[test.quantity].append((_artifacts(claim), test.number))
    found = {}
    for claim in claims:
        own = [(test, test.number) for test in _tests(claim, study) if test.number is not None]
        numbers: dict[Key, float] = {test.quantity: number for test, number in own if test.about}
        for key, rows in known.items():
            near = {number for artifacts, number in rows if artifacts & _artifacts(claim)}
            every = {number for _, number in rows}
            chosen = near if len(near) == 1 else every
            if len(chosen) == 1:
                numbers[key] = chosen.pop()
        numbers |= {test.quantity: number for test, number in own if not test.about}
        found[claim.id] = PaperNumbers(study, {**numbers, **claim.oracle})
    return found


def check_gates(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """The gates that the claims do not pass."""
    yield from _oracle(claims, study)
    tests = {claim.id: _tests(claim, study) for claim in claims}
    yield from _named(claims)
    yield from _identical(claims, tests)
    yield from _contradictions(claims, tests)


def without_oracle(claims: Sequence[Claim], study: Study) -> list[str]:
    """The testable claims with a metric of which the paper's own numbers are not, or not all, given."""
    papers = printed_numbers(claims, study)
    return [
        claim.id
        for claim in claims
        if claim.measured
        and any(
            item.outcome not in ("holds", "fails") and test.number is None
            for item, test in zip(_on_paper(claim, papers), _tests(claim, study), strict=True)
        )
    ]


def _on_paper(claim: Claim, papers: Mapping[str, PaperNumbers]) -> list[Evidence]:
    paper = papers[claim.id]
    return [item for relation in claim.relations for item in comparisons(relation, paper, Rule(paper=paper))]


def _oracle(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    papers = printed_numbers(claims, study)
    for claim in claims:
        if claim.inconsistent or not claim.measured:
            continue
        for item in _on_paper(claim, papers):
            if item.outcome == "fails":
                message = (
                    f"claim {claim.id!r} does not hold for the paper's own numbers: {item.what} is {item.mean:,.6g}"
                    f" {item.unit}".rstrip()
                    + f", allowed {item.limit}"
                )
                hint = "correct the test, or mark the statement `inconsistent: {where: ..., reason: ...}`"
                yield Finding(claim.place, message, hint)


def _named(claims: Sequence[Claim]) -> Iterator[Finding]:
    ids = {claim.id for claim in claims}
    for claim in claims:
        for name in (*claim.contradicts, *((claim.same_as,) if claim.same_as else ())):
            if name not in ids or name == claim.id:
                yield Finding(claim.place, f"claim {claim.id!r} names {name!r}, which is no other claim")


def _identical(claims: Sequence[Claim], tests: Mapping[str, Sequence[Test]]) -> Iterator[Finding]:
    for one, other in combinations(claims, 2):
        same = bool(tests[one.id]) and {test[:2] for test in tests[one.id]} == {test[:2] for test in tests[other.id]}
        named = one.same_as == other.id or other.same_as == one.id
        shared = one.same_as is not None and one.same_as == other.same_as
        if same and not named and not shared:
            message = f"claims {one.id!r} and {other.id!r} are one test"
            yield Finding(other.place, message, f"say `same_as: {one.id}`, so that it counts once")
        if named and not same:
            yield Finding(other.place, f"claims {one.id!r} and {other.id!r} are said to be one test, and are not")


def _contradictions(claims: Sequence[Claim], tests: Mapping[str, Sequence[Test]]) -> Iterator[Finding]:
    """Claims whose limits on one quantity are disjoint, where one does not name the other."""
    of: dict[Key, list[tuple[Claim, Test]]] = defaultdict(list)
    for claim in claims:
        for test in tests[claim.id]:
            of[test.quantity].append((claim, test))
    excluded = {
        (one.id, other.id): (one, other, a, b)
        for rows in of.values()
        for (one, a), (other, b) in combinations(rows, 2)
        if one.id != other.id and a.allowed.excludes(b.allowed)
    }
    for one, other, a, b in excluded.values():
        for first, second in ((one, other), (other, one)):
            if second.id not in first.contradicts:
                message = (
                    f"claims {first.id!r} and {second.id!r} exclude each other: of one quantity they allow"
                    f" {a.allowed.text('')} and {b.allowed.text('')}"
                )
                yield Finding(first.place, message, f"say `contradicts: [{second.id}]`: they are judged as a group")
    pairs = {frozenset(pair) for pair in excluded}
    for claim in claims:
        for name in claim.contradicts:
            if frozenset((claim.id, name)) not in pairs:
                yield Finding(claim.place, f"claims {claim.id!r} and {name!r} do not exclude each other")


def few_repetitions(claims: Sequence[Claim], study: Study) -> Iterator[Finding]:
    """Experiments whose repetitions are too few for claims about them, although what is drawn differs between them.

    The path is that of the experiment.
    """
    lacking: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for claim in claims:
        least = max(LEAST_OF_ALL, (claim.needs and claim.needs.at_least_n) or 0)
        for name in dict.fromkeys(name for relation in claim.relations for name in experiments_of(relation, study)):
            lacking[name].append((least, claim.id))
    for index, swept in enumerate(study.experiments):
        asking = [(least, name) for least, name in lacking[swept.id] if least > swept.repetitions]
        drawing = any(varies(point.experiment, study.header) for point in swept.points)
        if asking and drawing:
            least, first = max(asking)
            others = f" and {len(asking) - 1} more" if len(asking) > 1 else ""
            message = (
                f"{swept.repetitions} repetitions of {swept.id!r} decide no claim: {least} are needed by {first!r}"
            )
            yield Finding(("experiments", index, "repetitions"), message + others, f"write `repetitions: {least}`")


def _tests(claim: Claim, study: Study) -> list[Test]:
    return [test for relation in claim.relations for test in tests_of(relation, study)]


def _artifacts(claim: Claim) -> frozenset[str]:
    return frozenset(name for name in (claim.artifact, *claim.also) if name)
