# SPDX-License-Identifier: Apache-2.0
"""The limits of a relation, and the comparison of a value with them.

Owns the tolerances (docs/claims.md), which follow from the papers' wording and never from a result, and the two error
probabilities that decide a comparison (docs/verdicts.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from scipy import special

from longfat.metrics.orders import Judged
from longfat.metrics.quantities import significant
from longfat.metrics.statistics import Estimate

# Allowed deviations from a stated number; docs/claims.md has the reasons.
TOLERANCE = 0.05
APPROXIMATE_TOLERANCE = 0.10

LEVEL = 0.05  # error probability of each decision, to hold and to fail
NO_EFFECT = 0.01  # difference of equal sides, if the paper does not print their numbers

Comparator = Literal["<", "<=", ">", ">=", "=", "~"]
Outcome = Literal["holds", "fails", "undecided", "no_data"]


class Chances(NamedTuple):
    """The probabilities of such runs if the comparison does not hold, and if it holds; a small one decides."""

    holds: float
    fails: float
    no_effect: bool = False  # it fails because the sides are equal, not because their order is reversed


@dataclass(frozen=True)
class Limits:
    """A lower and an upper bound; ``inclusive`` if the bounds themselves are allowed.

    ``alike`` is the largest difference that counts as none; 0 if the limits are not of an order.
    """

    low: float
    high: float
    inclusive: bool
    alike: float = 0.0

    @classmethod
    def of(cls, sign: Comparator, number: float, spread: float | None = None) -> Limits:
        """Return the range of ``sign number``: = 5 %, ~ 10 %, or the paper's spread; >= and <= have a margin, too."""
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

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number that is allowed; infinite on an open side."""
        return self.low, self.high

    def hold(self, value: float) -> bool:
        """Return whether a value without error lies inside, to nine digits."""
        given, low, high = significant(value), significant(self.low), significant(self.high)
        return low <= given <= high if self.inclusive else low < given < high

    def chances(self, value: Judged) -> Chances:
        """Test inside by two one-sided tests, outside by a two-sided test; a value without error is compared."""
        if value.exact:
            inside = self.hold(value.value)
            none = self.alike > 0 and abs(value.value) <= self.alike
            return Chances(float(not inside or none), float(inside and not none), none)
        sides = [] if math.isinf(self.low) else [(value.p_above(self.low), value.p_below(self.low))]
        sides += [] if math.isinf(self.high) else [(value.p_below(self.high), value.p_above(self.high))]
        holds = max(inner for inner, _ in sides)
        fails = min(1.0, 2 * min(outer for _, outer in sides))
        if self.alike:
            alike = max(value.p_above(-self.alike), value.p_below(self.alike))
            if alike < fails:
                return Chances(holds, alike, True)
        return Chances(holds, fails)

    def text(self, unit: str) -> str:
        """Format the limits."""
        if math.isinf(self.low):
            return f"{'at most' if self.inclusive else 'below'} {self.high:,.10g} {unit}".strip()
        if math.isinf(self.high):
            return f"{'at least' if self.inclusive else 'above'} {self.low:,.10g} {unit}".strip()
        return f"{self.low:,.10g} to {self.high:,.10g} {unit}".strip()

    def excludes(self, other: Limits | Agreement) -> bool:
        """Return whether no value lies within both."""
        limits = other if isinstance(other, Limits) else other.printed
        low, high = max(self.low, limits.low), min(self.high, limits.high)
        return low > high or (low == high and not (self.inclusive and limits.inclusive))


@dataclass(frozen=True)
class Agreement:
    """A number that the paper prints with its own standard error.

    A measured number agrees if both errors and ``retest``, the difference between the paper's own measurements, explain
    the difference.
    """

    number: float
    error: float
    retest: float = 0.0

    @property
    def finest(self) -> float:
        """The largest measurement error of a meaningful agreement."""
        return max(self.error, TOLERANCE * abs(self.number))

    @property
    def printed(self) -> Limits:
        """The range of the paper's number and error alone, at 95 %."""
        reach = 1.96 * self.error
        return Limits(self.number - reach, self.number + reach, True)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number, without error, that agrees."""
        reach = 1.96 * math.hypot(self.error, self.retest)
        return self.number - reach, self.number + reach

    def hold(self, value: float) -> bool:
        """Return whether a value without error agrees."""
        return abs(value - self.number) <= 1.96 * math.hypot(self.error, self.retest)

    def chances(self, value: Judged) -> Chances:
        """Return the probability of such a difference by chance. ``holds`` is 0 if the error is small enough."""
        own = value.spread.error if isinstance(value, Estimate) else (value.sd or 0.0) / math.sqrt(max(value.runs, 1))
        combined = math.sqrt(own**2 + self.error**2 + self.retest**2)
        distance = abs(value.value - self.number)
        if not combined:
            return Chances(float(distance > 0), float(distance == 0))
        chance = 2 * float(special.ndtr(-distance / combined))
        return Chances(0.0 if own <= self.finest else 1.0, chance)

    def text(self, unit: str) -> str:
        """Format the number with its errors."""
        retest = f", measured again ± {self.retest:,.4g}" if self.retest else ""
        return f"{self.number:,.10g} ± {self.error:,.10g}{retest} {unit}".strip()

    def excludes(self, other: Limits | Agreement) -> bool:
        """Return whether the printed numbers exclude each other."""
        return self.printed.excludes(other)


def fallen(chances: list[float], level: float = LEVEL) -> set[int]:
    """Return the places of comparisons that fail by Holm's procedure, which keeps the level over all of them."""
    found: set[int] = set()
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    for step, place in enumerate(order):
        if chances[place] > level / (len(chances) - step):
            break
        found.add(place)
    return found
