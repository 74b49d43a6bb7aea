# SPDX-License-Identifier: Apache-2.0
"""Mean, spread and 95 % interval of repeated measurements, and how intervals combine.

Owns the statistics of the project; knows nothing of runs or claims. Values keep the unit they come in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# Two-sided 95 % quantiles of Student's t, 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
_T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """What repetitions of one quantity gave; ``low`` and ``high`` bound the 95 % interval of the mean.

    One value has no interval: ``sd`` is None, and ``low`` and ``high`` are the value itself. ``repeats`` counts
    repetitions that were the same to the byte as one of the ``n``, and tell nothing.
    """

    mean: float
    sd: float | None
    n: int
    low: float
    high: float
    repeats: int = 0


def summarise(values: Sequence[float], repeats: int = 0) -> Summary:
    """Mean, sample standard deviation and t interval. Raises ValueError without a value."""
    if not values:
        raise ValueError("a summary needs at least one value")
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, None, 1, mean, mean, repeats)
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = t_95(n - 1) * sd / math.sqrt(n)
    return Summary(mean, sd, n, mean - half, mean + half, repeats)


def t_95(degrees: int) -> float:
    """Student's t for a two-sided 95 % interval; above 30 degrees that of 30, which errs on the wide side."""
    if degrees < 1:
        raise ValueError(f"a t interval needs at least 1 degree of freedom, not {degrees}")
    return _T_95[min(degrees, len(_T_95)) - 1]


def total(a: Summary, b: Summary) -> Summary:
    """a + b, with the worst of both intervals."""
    return _combined(a, b, a.mean + b.mean, [a.low + b.low, a.high + b.high])


def product(a: Summary, b: Summary) -> Summary:
    """a * b, with the worst of both intervals."""
    return _combined(a, b, a.mean * b.mean, [x * y for x in (a.low, a.high) for y in (b.low, b.high)])


def extreme(values: Sequence[Summary], choose: Callable[[Iterable[float]], float]) -> Summary:
    """The largest or the smallest of several, as ``choose`` (max or min) has it of means and of both bounds."""
    mean, low, high = (choose([getattr(value, name) for value in values]) for name in ("mean", "low", "high"))
    return Summary(mean, None, min(value.n for value in values), low, high, max(value.repeats for value in values))


def difference(a: Summary, b: Summary) -> Summary:
    """a - b. The interval holds zero exactly when the intervals of ``a`` and ``b`` overlap."""
    return _combined(a, b, a.mean - b.mean, [a.low - b.high, a.high - b.low])


def ratio(a: Summary, b: Summary) -> Summary:
    """a / b for positive quantities; the interval takes the worst of both intervals.

    Raises ValueError when the interval of ``b`` reaches zero.
    """
    if b.low <= 0:
        raise ValueError(f"the divisor's 95 % interval from {b.low:g} to {b.high:g} reaches zero")
    return _combined(a, b, a.mean / b.mean, [x / y for x in (a.low, a.high) for y in (b.low, b.high)])


def percent_gain(a: Summary, b: Summary) -> Summary:
    """By how many percent ``a`` exceeds ``b``. Raises ValueError like ``ratio``."""
    quotient = ratio(a, b)
    mean, low, high = (100 * (value - 1) for value in (quotient.mean, quotient.low, quotient.high))
    return Summary(mean, None, quotient.n, low, high, quotient.repeats)


def _combined(a: Summary, b: Summary, mean: float, bounds: Sequence[float]) -> Summary:
    """What two make together. An exact number (n of 0) has no say in how many repetitions there are."""
    counts = [side.n for side in (a, b) if side.n]
    return Summary(mean, None, min(counts, default=0), min(bounds), max(bounds), max(a.repeats, b.repeats))
