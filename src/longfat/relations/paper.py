# SPDX-License-Identifier: Apache-2.0
"""The paper's own numbers as a source of values, and the comparisons of a claim over the study's points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longfat.metrics.data import NoValue
from longfat.metrics.quantities import Selection
from longfat.metrics.statistics import Estimate, exactly
from longfat.relations.bind import quantity
from longfat.relations.claims import Claim
from longfat.relations.limits import Limits
from longfat.relations.tree import Readings, key
from longfat.study.study import Study


class Test(NamedTuple):
    """A comparison over the whole study: quantity, limits, and the paper's number if it is printed."""

    quantity: Hashable
    allowed: Limits
    number: float | None = None
    approximate: bool = False


@dataclass(frozen=True)
class PaperNumbers(Readings):
    """The paper's numbers for the metrics in relations."""

    numbers: Mapping[Hashable, float]

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """Return the paper's number."""
        found = self.numbers.get(quantity(selection, self.study))
        if found is None:
            raise NoValue("the paper's number is not given")
        return exactly(found)


def tests_of(claim: Claim, study: Study) -> Iterator[Test]:
    """Yield the comparisons of a claim over all points of the study."""
    for relation in claim.relations:
        for scope in relation.scopes(study):
            for one in relation.comparisons:
                yield Test(key(one.of, scope), one.limits, one.printed, one.approximate)


def printed_numbers(claims: Sequence[Claim], study: Study) -> dict[str, PaperNumbers]:
    """Return the paper's numbers for each claim: its own ``oracle``, and the limits of any claim on a quantity.

    An exact number takes precedence over an approximate one. If the paper prints several numbers for a quantity, a
    claim has the number of its own figures and tables, or none.
    """
    tests = {claim.id: [test for test in tests_of(claim, study) if test.number is not None] for claim in claims}
    known: dict[Hashable, list[tuple[frozenset[str], float | None]]] = defaultdict(list)
    for claim in claims:
        for test in tests[claim.id]:
            if not test.approximate:
                known[test.quantity].append((claim.artifacts, test.number))
    found = {}
    for claim in claims:
        numbers = {test.quantity: test.number for test in tests[claim.id] if test.approximate}
        for what, rows in known.items():
            near = {number for artifacts, number in rows if artifacts & claim.artifacts}
            chosen = near if len(near) == 1 else {number for _, number in rows}
            if len(chosen) == 1:
                numbers[what] = chosen.pop()
        numbers |= {test.quantity: test.number for test in tests[claim.id] if not test.approximate}
        stated = {what: number for what, number in numbers.items() if number is not None}
        found[claim.id] = PaperNumbers(study, {**stated, **claim.oracle})
    return found
