# SPDX-License-Identifier: Apache-2.0
"""Looking several times: at which numbers of repetitions a comparison is judged, and how strictly at each.

Who looks often and stops at the first decision errs more often than at one look. The levels here spend 4.5 % over all
looks (Lan and DeMets 1983, with the spending function of O'Brien and Fleming at k/9 for look k): the half per cent that
is left is what a deviation that is estimated from few runs costs. Besides, no level is believed that as many runs
could not reach by the signs of their deviations alone: runs that have two modes look like certainty while all of them
are in one.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from longfat.evidence.projection import bounds_of
from longfat.relations.evaluate import Evidence

LOOKS = (3, 4, 6, 8, 12, 16, 24, 32, 48)
LEVELS = (1.8e-9, 2.11e-5, 5.08e-4, 0.00245, 0.00566, 0.0103, 0.0137, 0.0188, 0.0206)
"""Two-sided levels of the looks for increments that are normal; tests/unit/test_looks.py computes them anew."""

NOMINAL = 0.05  # the level of the engine's intervals


def level_at(n: int) -> float | None:
    """The level of the last look at or before n repetitions; None before the first."""
    passed = [level for look, level in zip(LOOKS, LEVELS, strict=True) if look <= n]
    return passed[-1] if passed else None


def reachable(level: float, df: int) -> bool:
    """Whether so many degrees of freedom, one less than runs, can reach a level by signs alone: all on one side."""
    return bool(2.0**-df <= level)


def strictness(look: int) -> float:
    """How many times the repetitions that the engine's own level needs a look's level takes; infinite where none do."""
    level = level_at(look)
    if level is None or not reachable(level, look - 1):
        return math.inf
    normal = NormalDist()
    return (normal.inv_cdf(level / 2) / normal.inv_cdf(NOMINAL / 2)) ** 2


def confirmed(evidence: Evidence) -> bool:
    """Whether a decision holds at its look's level too: with the interval widened to it.

    What is computed and not measured is certain.
    """
    if evidence.outcome not in ("holds", "fails"):
        return False
    if not evidence.n:
        return True
    level, bounds = level_at(evidence.n), bounds_of(evidence)
    if level is None or bounds is None or evidence.mean is None or evidence.low is None or evidence.high is None:
        return False
    df = int(getattr(evidence, "df", None) or evidence.n - 1)
    if not reachable(level, df):
        return False
    wider = widening(level, df)
    low = evidence.mean - wider * (evidence.mean - evidence.low)
    high = evidence.mean + wider * (evidence.high - evidence.mean)
    if evidence.outcome == "holds":
        return bounds.low <= low and high <= bounds.high
    return high < bounds.low or low > bounds.high


def widening(level: float, df: int) -> float:
    """By what an interval of the engine is to be multiplied to be one of that level."""
    return student(level, df) / student(NOMINAL, df)


def student(level: float, df: int) -> float:
    """The two-sided quantile of Student's t: exact for 1 and 2 degrees of freedom, else by Hill's algorithm 396 (1970).

    Its error is below 0.1 % for the levels used here.
    """
    if df < 1:
        raise ValueError(f"a t interval needs at least 1 degree of freedom, not {df}")
    if df == 1:
        return 1 / math.tan(level * math.pi / 2)
    if df == 2:
        return math.sqrt(2 / (level * (2 - level)) - 2)
    a = 1 / (df - 0.5)
    b = 48 / a**2
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * df
    y = (d * level) ** (2 / df)
    if y > a + 0.05:
        x = NormalDist().inv_cdf(level / 2)
        y = x**2
        if df < 5:
            c += 0.3 * (df - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y**2)
    else:
        y = ((1 / (((df + 6) / (df * y) - 0.089 * d - 0.822) * (df + 2) * 3) + 0.5 / (df + 4)) * y - 1) * (df + 1) / (
            df + 2
        ) + 1 / y
    return math.sqrt(df * y)
