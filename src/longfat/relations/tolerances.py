# SPDX-License-Identifier: Apache-2.0
"""The limits of a comparison with a number, by the kind of quantity (docs/claims.md has the reasons).

Owns the tolerances. They follow from the paper's wording and numbers, never from a result.
"""

from __future__ import annotations

import math

from longfat.metrics import METRICS
from longfat.metrics.registry import Metric
from longfat.relations.bind import Term
from longfat.relations.limits import NO_DIFFERENCE, TOLERANCE, Comparator, Limits
from longfat.relations.nodes import Binary, Count, Expression, Gain, Number, Rank

APPROXIMATE_TOLERANCE = 0.10  # after ~
EVENTS = ("transfers", "cuts", "changes", "streams")  # units of counts
COUNTS = ("retransmissions",)  # counting metrics whose unit is not one of EVENTS
FEW = 2  # events; up to this number the paper's count is exact
WHOLE = 100.0  # percent
HALF = 0.5  # margin around a whole number that excludes all others


def limits_of(left: Expression, sign: Comparator, right: Expression, number: float) -> Limits:
    """Return the limits of ``left sign right``, where ``right`` has the value ``number`` without runs."""
    if sign in "<>":
        return Limits.of(sign, number)
    if sign in ("<=", ">="):
        return Limits.of(sign, number, _slack(left, number))
    share = APPROXIMATE_TOLERANCE if sign == "~" else TOLERANCE
    if isinstance(left, Term) and left.metric == "jain":
        return _fairness(number, share)
    return Limits.of(sign, number, _margin(left, right, number, share, sign == "~"))


def limits_of_ratio(sign: Comparator) -> Limits:
    """Return the limits of the ratio of two measured sides."""
    if sign in ("<=", ">="):
        return Limits.of(sign, 1.0, NO_DIFFERENCE)
    return Limits.of(sign, 1.0, APPROXIMATE_TOLERANCE if sign == "~" else TOLERANCE)


def _slack(left: Expression, number: float) -> float:
    """Return the margin of a bound: half an event for counts, 1 % for a ratio of at least or at most 1, else none."""
    if _counts(left):
        return HALF if number else 0.0
    return NO_DIFFERENCE if isinstance(left, Binary) and left.operator == "/" and number == 1 else 0.0


def _margin(left: Expression, right: Expression, number: float, share: float, approximate: bool) -> float:
    if isinstance(left, Rank) or (_counts(left) and abs(number) <= FEW):
        return HALF
    if _counts(left):
        return max(1.0, share * abs(number))
    known = _metric(left)
    if known and known.unit == "%" and known.bounds[1] == WHOLE:
        return share * min(abs(number), abs(WHOLE - number))
    if isinstance(right, Number) and (isinstance(left, Gain) or (isinstance(left, Binary) and left.operator == "-")):
        return _resolution(right.text, approximate)
    if isinstance(right, Binary) and isinstance(right.left, Number) and isinstance(right.right, Number):
        return _of_quotient(number, right.left, right.right, share)
    return share * abs(number)


def _counts(left: Expression) -> bool:
    if isinstance(left, Count):
        return True
    known = _metric(left)
    return known is not None and (known.unit in EVENTS or known.name in COUNTS)


def _metric(left: Expression) -> Metric | None:
    return METRICS.get(left.metric) if isinstance(left, Term) else None


def _fairness(number: float, share: float) -> Limits:
    """Return the limits of Jain's index F: its coefficient of variation, sqrt(1/F - 1), may differ by ``share``."""
    variation = math.sqrt(max(1 / number - 1, 0.0)) if number > 0 else 0.0
    low, high = (1 / (1 + max(one, 0.0) ** 2) for one in (variation + share, variation - share))
    return Limits(low, high, True)


def _of_quotient(number: float, over: Number, under: Number, share: float) -> float:
    """Return the margin of a ratio of two printed numbers: half of their difference, at most 5 %."""
    printed = abs(number) * sum(_resolution(one.text, False) / abs(one.number) for one in (over, under) if one.number)
    return max(printed, min(share * abs(number), abs(number - 1) / 2))


def _resolution(text: str, approximate: bool) -> float:
    """Return half a unit of a number's last digit; after ~, of its last nonzero digit."""
    digits = text.rstrip(" %").lstrip("-")
    decimals = len(digits.partition(".")[2])
    zeros = len(digits) - len(digits.rstrip("0")) if approximate and not decimals else 0
    return HALF * 10.0 ** (zeros - decimals)
