# SPDX-License-Identifier: Apache-2.0
"""Estimates other than means: a median with a rank interval, a rank by bootstrap, a count, and a maximum.

All have the methods of an ``Estimate``. Owns their precision with few runs (docs/verdicts.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import scipy

from longfat.metrics.statistics import CONFIDENCE, UNBOUNDED, Estimate

RESAMPLES = 2000
SEED = 20260101  # of every bootstrap: equal runs give equal verdicts
Sample = TypeVar("Sample")


@dataclass(frozen=True)
class Median:
    """The median of runs in ascending order. Its interval depends on ranks alone, not on the distribution."""

    values: tuple[float, ...]
    n: int
    repeats: int = 0
    bounds: tuple[float, float] = UNBOUNDED
    exact: bool = False

    @property
    def value(self) -> float:
        """The median."""
        return float(np.median(self.values))

    @property
    def runs(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def sd(self) -> float | None:
        """Standard deviation of the values."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval between two of the values; the metric's bounds if there are too few values."""
        if self.exact:
            return self.value, self.value
        n = len(self.values)
        cut = sum(scipy.special.bdtr(k, n, 0.5) <= (1 - confidence) / 2 for k in range(n))
        if cut == 0:
            return self.bounds
        return self.values[cut - 1], self.values[n - cut]

    def p_above(self, limit: float) -> float:
        """Return the p value of a sign test."""
        return self._sign_test(sum(value > limit for value in self.values), self.value > limit)

    def p_below(self, limit: float) -> float:
        """Return the p value of a sign test."""
        return self._sign_test(sum(value < limit for value in self.values), self.value < limit)

    def _sign_test(self, count: int, certain: bool) -> float:
        if self.exact:
            return 0.0 if certain else 1.0
        return 1.0 if count == 0 else float(scipy.special.bdtrc(count - 1, len(self.values), 0.5))


@dataclass(frozen=True)
class Sampled:
    """A value with its bootstrap distribution."""

    value: float
    samples: tuple[float, ...]
    n: int
    repeats: int = 0
    exact: bool = False
    bounds: tuple[float, float] = UNBOUNDED

    @property
    def runs(self) -> int:
        """The number of repetitions; each has a run for every ranked value."""
        return self.n

    @property
    def sd(self) -> float | None:
        """None: a rank has no deviation."""
        return None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return quantiles that occur in the bootstrap distribution; the bounds if there are too few repetitions."""
        if self.exact:
            return self.value, self.value
        if self._least_p > (1 - confidence) / 2:
            return self.bounds
        ends = np.quantile(self.samples, ((1 - confidence) / 2, (1 + confidence) / 2), method="inverted_cdf")
        return float(ends[0]), float(ends[1])

    def p_above(self, limit: float) -> float:
        """Return the share of the samples at the limit or below it, as a p value."""
        return self._p(sum(value <= limit for value in self.samples))

    def p_below(self, limit: float) -> float:
        """Return the share of the samples at the limit or above it, as a p value."""
        return self._p(sum(value >= limit for value in self.samples))

    @property
    def _least_p(self) -> float:
        """The smallest p value: of two equals, one is ahead in all repetitions with this chance."""
        return 0.0 if self.exact else 0.5**self.n

    def _p(self, count: int) -> float:
        return max(self._least_p, count / len(self.samples))


@dataclass(frozen=True)
class Widest:
    """The largest of several estimates, one for each pair of values."""

    of: tuple[Judged, ...]
    bounds: tuple[float, float] = UNBOUNDED

    @classmethod
    def of_all(cls, found: Sequence[Judged]) -> Self:
        """Return the extreme of values of one kind, one or more."""
        return cls(tuple(found), found[0].bounds)

    @staticmethod
    def turned(falls: bool) -> type[Widest]:
        """Return the extreme of a quantity that ``falls`` with this one, or rises with it."""
        return Narrowest if falls else Widest

    @property
    def value(self) -> float:
        """The largest value."""
        return max(one.value for one in self.of)

    @property
    def n(self) -> int:
        """The smallest number of repetitions."""
        return min(one.n for one in self.of)

    @property
    def runs(self) -> int:
        """The smallest number of runs."""
        return min(one.runs for one in self.of)

    @property
    def repeats(self) -> int:
        """The largest number of further, byte-identical repetitions."""
        return max(one.repeats for one in self.of)

    @property
    def sd(self) -> float | None:
        """The deviation of the estimate with this value; None if it has none."""
        return next(one.sd for one in self.of if one.value == self.value)

    @property
    def exact(self) -> bool:
        """Whether no pair has an error."""
        return all(one.exact for one in self.of)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval; its lower end is corrected for the number of pairs (Bonferroni)."""
        strict = 1 - (1 - confidence) / len(self.of)
        return max(one.interval(strict)[0] for one in self.of), max(one.interval(confidence)[1] for one in self.of)

    def p_above(self, limit: float) -> float:
        """Return the smallest p value times the number of pairs: one pair suffices."""
        return min(1.0, len(self.of) * min(one.p_above(limit) for one in self.of))

    def p_below(self, limit: float) -> float:
        """Return the largest p value: every pair must be below."""
        return max(one.p_below(limit) for one in self.of)


@dataclass(frozen=True)
class Narrowest(Widest):
    """The smallest of several estimates."""

    @staticmethod
    def turned(falls: bool) -> type[Widest]:
        """Return the extreme of a quantity that ``falls`` with this one, or rises with it."""
        return Widest if falls else Narrowest

    @property
    def value(self) -> float:
        """The smallest value."""
        return min(one.value for one in self.of)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval; its upper end is corrected for the number of estimates (Bonferroni)."""
        strict = 1 - (1 - confidence) / len(self.of)
        return min(one.interval(confidence)[0] for one in self.of), min(one.interval(strict)[1] for one in self.of)

    def p_above(self, limit: float) -> float:
        """Return the largest p value: every estimate must be above."""
        return max(one.p_above(limit) for one in self.of)

    def p_below(self, limit: float) -> float:
        """Return the smallest p value times the number of estimates: one suffices."""
        return min(1.0, len(self.of) * min(one.p_below(limit) for one in self.of))


@dataclass(frozen=True)
class Tally:
    """The number of estimates that meet a condition, of which each is tested on its own.

    ``tests`` has for each estimate the p values of the hypotheses that it misses the condition, and that it meets it.
    The tests of a number of them are partial conjunctions by Simes' inequality (Benjamini and Heller 2008).
    """

    met: int
    tests: tuple[tuple[float, float], ...]
    n: int
    runs: int
    repeats: int = 0
    exact: bool = False

    @property
    def value(self) -> float:
        """The number of estimates that meet the condition."""
        return float(self.met)

    @property
    def sd(self) -> float | None:
        """None: a count has no deviation."""
        return None

    @property
    def bounds(self) -> tuple[float, float]:
        """None, and all of the estimates."""
        return 0.0, float(len(self.tests))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the smallest and the largest number that no test rejects."""
        level, numbers = (1 - confidence) / 2, range(len(self.tests) + 1)
        low, rest = (max(k for k in numbers if self._at_least(k, side) <= level) for side in (0, 1))
        return float(low), float(len(self.tests) - rest)

    def p_above(self, limit: float) -> float:
        """Return the p value of the hypothesis that the number is at the limit or below it."""
        return self._at_least(math.floor(limit) + 1, 0)

    def p_below(self, limit: float) -> float:
        """Return the p value of the hypothesis that the number is at the limit or above it."""
        return self._at_least(len(self.tests) - math.ceil(limit) + 1, 1)

    def _at_least(self, k: int, side: int) -> float:
        """Return the p value of the hypothesis that fewer than ``k`` estimates meet, or miss, the condition."""
        ordered, m = sorted(test[side] for test in self.tests), len(self.tests)
        if not 0 < k <= m:
            return float(k > m)
        return min(1.0, *((m - k + 1) / (j - k + 1) * ordered[j - 1] for j in range(k, m + 1)))


def tally(estimates: Sequence[Estimate], level: float, above: bool, meets: Callable[[float], bool]) -> Tally:
    """Return the number of estimates whose value ``meets`` a condition: to be ``above`` the level, or below it."""
    met = [meets(one.value) for one in estimates]
    tests = []
    for one, is_met in zip(estimates, met, strict=True):
        pair = one.p_above(level), one.p_below(level)
        tests.append((float(not is_met), float(is_met)) if one.exact else pair if above else pair[::-1])
    random = [one for one in estimates if not one.exact] or estimates
    return Tally(
        sum(met),
        tuple(tests),
        min(one.n for one in random),
        min(one.runs for one in random),
        max(one.repeats for one in estimates),
        all(one.exact for one in estimates),
    )


Judged = Estimate | Median | Sampled | Tally | Widest  # a value that is compared with limits


def bootstrapped(samples: Sequence[Sample], of: Callable[[Sequence[Sample]], float]) -> tuple[float, ...]:
    """Return a statistic of all resamples, with a fixed seed; a single repetition has a single sample.

    A resample has n - 1 of the n repetitions, drawn with replacement, which corrects for small n.
    """
    n = len(samples)
    if n == 1:
        return (of(samples),)
    drawn = np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, n - 1))
    rows, counts = np.unique(np.sort(drawn, axis=1), axis=0, return_counts=True)
    found: list[float] = []
    for row, count in zip(rows, counts, strict=True):
        found += [of([samples[k] for k in row])] * int(count)
    return tuple(found)
