# SPDX-License-Identifier: Apache-2.0
"""The limits of a relation, and the comparison of a value with them.

Owns the error probability of a decision (docs/verdicts.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

from longfat.metrics.orders import Judged
from longfat.metrics.quantities import significant
from longfat.metrics.statistics import UNBOUNDED, Estimate
from longfat.relations.outcomes import Why, Word

TOLERANCE = 0.05  # allowed deviation from a number; longfat.relations.syntax has the others
LEVEL = 0.05  # error probability of each decision
ERRORS = 1.96  # margin in standard errors of the paper
NO_DIFFERENCE = 0.01  # difference that counts as none if the paper prints no numbers of the two sides
POWER = 0.8  # probability that the repetitions needed show a difference as large as the paper's
MOST_NEEDED = 1_000_000  # repetitions; nobody runs more

Comparator = Literal["<", "<=", ">", ">=", "=", "~"]


class Chances(NamedTuple):
    """The p values of three null hypotheses: the truth is not inside, not outside, not smaller than ``least``."""

    inside: float
    outside: float
    small: float = 1.0

    @property
    def against(self) -> float:
        """The p value that decides against the claim."""
        return min(self.outside, self.small)


class Decision(NamedTuple):
    """The outcome of a comparison, the limits that decide, and the confidence of the interval that decides."""

    outcome: Word
    why: Why | None
    limits: Limits
    confidence: float


@dataclass(frozen=True)
class Limits:
    """A lower and an upper bound; ``inclusive`` if the bounds themselves are allowed.

    ``least`` is the smallest difference of an order that counts, None if the limits are not of an order; ``least_note``
    is its source. ``by_error`` marks a margin from the paper's own error. ``note`` follows the limits in the text.
    """

    low: float
    high: float
    inclusive: bool
    least: float | None = None
    least_note: str = ""
    by_error: bool = False
    note: str = ""

    @classmethod
    def of(cls, sign: Comparator, number: float, margin: float = 0.0) -> Limits:
        """Return the range of ``sign number``; < and > have no margin."""
        if sign == ">":
            return cls(number, math.inf, False)
        if sign == "<":
            return cls(-math.inf, number, False)
        if sign == ">=":
            return cls(number - margin, math.inf, True)
        if sign == "<=":
            return cls(-math.inf, number + margin, True)
        return cls(number - margin, number + margin, True)

    @classmethod
    def within_error(cls, number: float, error: float, retest: float = 0.0) -> Limits:
        """Return the range that the paper's error of a number and its repeated measurement (``retest``) explain."""
        again = f", measured again ± {retest:,.4g}" if retest else ""
        note = f"the paper's {number:,.10g} ± {error:,.10g}{again}"
        margin = ERRORS * math.hypot(error, retest)
        return cls(number - margin, number + margin, True, by_error=True, note=note)

    @property
    def inverse(self) -> Limits:
        """The limits of the inverse of a positive ratio."""
        low = -math.inf if math.isinf(self.high) else 1 / self.high
        return Limits(low, 1 / self.low if self.low > 0 else math.inf, self.inclusive, note=self.note)

    def hold(self, value: float) -> bool:
        """Return whether a value without error lies inside, to nine digits."""
        given, low, high = significant(value), significant(self.low), significant(self.high)
        return low <= given <= high if self.inclusive else low < given < high

    def _passable(self, value: Judged) -> tuple[float, float]:
        """Return the bounds of the value if they are allowed: it cannot pass a limit at or beyond them."""
        return value.bounds if self.inclusive else UNBOUNDED

    def chances(self, value: Judged) -> Chances:
        """Test inside by two one-sided tests, outside by a two-sided test; compare a value without error directly."""
        if value.exact:
            inside, given = self.hold(value.value), significant(value.value)
            equal = self.least is not None and given == self.low
            small = self.least is not None and (not given or abs(given) < significant(self.least))
            return Chances(float(not inside), float(inside or equal), float(not small))
        least, most = self._passable(value)
        low, high = self.low, self.high
        if self.inclusive:  # a part without error may lie on the limit
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        sides = [] if self.low <= least else [(value.p_above(low), value.p_below(low))]
        sides += [] if self.high >= most else [(value.p_below(high), value.p_above(high))]
        inner = max((inner for inner, _ in sides), default=0.0)
        outer = min(1.0, 2 * min((outer for _, outer in sides), default=1.0))
        small_p = max(value.p_above(-self.least), value.p_below(self.least)) if self.least else 1.0
        return Chances(inner, outer, small_p)

    def decide(self, value: Judged, level: float = LEVEL) -> Decision:
        """Decide the comparison of a value; ``level`` is the error probability of a decision against the claim.

        A small difference in the paper's direction is ``same sign, smaller`` instead of ``no difference``.
        """
        chances = self.chances(value)
        if chances.outside <= level:
            why: Why = "outside the limits" if self.least is None else "reversed"
            return Decision("not reproduced", why, self, 1 - level)
        if chances.small <= level and self.least is not None:
            why = "same sign, smaller" if chances.inside <= level else "no difference"
            return Decision(
                "not reproduced", why, Limits(self.least, math.inf, False, note=self.least_note), 1 - 2 * level
            )
        if chances.inside <= LEVEL:
            return Decision("compatible" if self.by_error else "reproduced", None, self, 1 - 2 * LEVEL)
        return Decision("undecided", "too few runs", self, 1 - level)

    def repetitions(self, value: Judged, paper: float | None) -> int | None:
        """Return the number of repetitions that show with the chance ``POWER`` that the paper's number is inside.

        Without the paper's number it is the middle of the limits. It rests on the variance of the runs so far, whatever
        their mean is, and on normal quantiles, with two runs more. None for medians, ranks and counts, if the number is
        not inside, or if it takes more than ``MOST_NEEDED``.
        """
        if paper is None and not math.isinf(self.high - self.low):
            paper = (self.low + self.high) / 2
        if paper is None or not self.low < paper < self.high or not isinstance(value, Estimate):
            return None
        error = value.spread.error * math.sqrt(value.n)
        least, most = self._passable(value)
        bounds = [bound for bound in (self.low, self.high) if least < bound < most]
        sizes = [abs(value.distance(paper, bound)) / error for bound in bounds] if error else []
        normal = NormalDist()
        quantile = normal.inv_cdf(1 - LEVEL)

        def power(runs: int) -> float:
            return 1 - sum(normal.cdf(quantile - size * math.sqrt(runs)) for size in sizes)

        needed = bisect_left(range(MOST_NEEDED), POWER, key=power)
        return 2 + needed if sizes and needed < MOST_NEEDED else None

    def text(self, unit: str) -> str:
        """Format the limits, and their note after a comma."""
        note = f", {self.note}" if self.note else ""
        if math.isinf(self.low):
            return f"{'at most' if self.inclusive else 'below'} {self.high:,.10g} {unit}".strip() + note
        if math.isinf(self.high):
            return f"{'at least' if self.inclusive else 'above'} {self.low:,.10g} {unit}".strip() + note
        return f"{self.low:,.10g} to {self.high:,.10g} {unit}".strip() + note

    def foregone(self, low: float, high: float) -> str | None:
        """Return "always holds" or "never holds" if all values from ``low`` to ``high`` lie inside, or outside."""
        above = self.low < low or (self.low == low and self.inclusive)
        below = self.high > high or (self.high == high and (self.inclusive or math.isinf(high)))
        if self.excludes(Limits(low, high, True)):
            return "never holds"
        return "always holds" if above and below else None

    def excludes(self, other: Limits) -> bool:
        """Return whether no value lies within both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return low > high or (low == high and not (self.inclusive and other.inclusive))


def holm(chances: list[float]) -> list[float]:
    """Return the level of each of several decisions by Holm's procedure, so that LEVEL holds for all of them.

    A decision whose p value is at most its level is confirmed.
    """
    levels = [0.0] * len(chances)
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    confirmed = True
    own = LEVEL
    for step, place in enumerate(order):
        if confirmed:
            own = LEVEL / (len(chances) - step)
            confirmed = chances[place] <= own
        levels[place] = own
    return levels
