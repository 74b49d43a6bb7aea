# SPDX-License-Identifier: Apache-2.0
"""How many repetitions would decide a comparison, as far as its numbers tell.

The engine's own word on it, ``Evidence.needed``, goes first; else the interval is taken to shrink with the root of n.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from longfat.relations.evaluate import Evidence

NEVER = 10**6  # a number of repetitions that nobody makes
_NUMBER = r"-?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?"
_BETWEEN = re.compile(rf"({_NUMBER}) to ({_NUMBER})")
_ONE = re.compile(rf"(at most|below|at least|above) ({_NUMBER})")


@dataclass(frozen=True)
class Bounds:
    """What a comparison allows."""

    low: float
    high: float


def needed(evidence: Evidence) -> int | None:
    """Repetitions of each scenario that would decide it by the means so far; None where nothing tells."""
    own = getattr(evidence, "needed", None)
    if own is not None:
        return int(own)
    bounds = bounds_of(evidence)
    if evidence.n is None or evidence.mean is None or evidence.low is None or evidence.high is None or bounds is None:
        return None
    distance = min(abs(evidence.mean - limit) for limit in (bounds.low, bounds.high) if math.isfinite(limit))
    half = max(evidence.high - evidence.mean, evidence.mean - evidence.low)
    if half <= distance:
        return evidence.n
    if distance == 0:
        return NEVER
    # An interval of Student's t shrinks faster than the root of n while n is small; 2 is its factor for many.
    half *= 2.0 / STUDENT.get(evidence.n - 1, 2.0)
    return min(NEVER, max(evidence.n + 1, math.ceil(evidence.n * (half / distance) ** 2)))


STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}
"""Two-sided 95 % quantiles of Student's t by degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2)."""


def bounds_of(evidence: Evidence) -> Bounds | None:
    """The limits of a comparison, read from their words; None where there are none."""
    if match := _BETWEEN.match(evidence.limit):
        return Bounds(_read(match[1]), _read(match[2]))
    if match := _ONE.match(evidence.limit):
        limit = _read(match[2])
        return Bounds(-math.inf, limit) if match[1] in ("at most", "below") else Bounds(limit, math.inf)
    return None


def _read(text: str) -> float:
    return float(text.replace(",", ""))
