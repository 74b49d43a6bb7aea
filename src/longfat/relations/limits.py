# SPDX-License-Identifier: Apache-2.0
"""What a relation allows: the numbers that follow from its sign, and how a value is held against them.

Owns the tolerances of docs/claims.md, which come from the papers' wording and are never moved to meet a result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from longfat.metrics.quantities import significant
from longfat.metrics.statistics import Summary
from longfat.relations.syntax import Comparator

# What a stated number is allowed to miss by; docs/claims.md has the reasons.
TOLERANCE = 0.05
APPROXIMATE_TOLERANCE = 0.10

Outcome = Literal["holds", "fails", "undecided", "no_data"]


@dataclass(frozen=True)
class Limits:
    """A lower and an upper bound; ``inclusive`` when they themselves are allowed."""

    low: float
    high: float
    inclusive: bool

    @classmethod
    def of(cls, sign: Comparator, number: float, spread: float | None = None) -> Limits:
        """What ``sign number`` allows: = 5 %, ~ 10 %, or the paper's own spread; >= and <= what equals it, too."""
        margin = abs(number) * (APPROXIMATE_TOLERANCE if sign == "~" else TOLERANCE)
        if sign == ">":
            return cls(number, math.inf, False)
        if sign == "<":
            return cls(-math.inf, number, False)
        if sign == ">=":
            return cls(number - margin, math.inf, True)
        if sign == "<=":
            return cls(-math.inf, number + margin, True)
        margin = margin if spread is None else spread
        return cls(number - margin, number + margin, True)

    def outcome(self, value: Summary) -> Outcome:
        """Whether the whole interval lies inside, or outside, or neither; of numbers to nine digits."""
        low, high = significant(value.low), significant(value.high)
        if self.inclusive:
            inside, outside = self.low <= low and high <= self.high, high < self.low or low > self.high
        else:
            inside, outside = self.low < low and high < self.high, high <= self.low or low >= self.high
        return "holds" if inside else "fails" if outside else "undecided"

    def text(self, unit: str) -> str:
        """The limits in words."""
        if math.isinf(self.low):
            return f"{'at most' if self.inclusive else 'below'} {self.high:,.10g} {unit}".strip()
        if math.isinf(self.high):
            return f"{'at least' if self.inclusive else 'above'} {self.low:,.10g} {unit}".strip()
        return f"{self.low:,.10g} to {self.high:,.10g} {unit}".strip()
