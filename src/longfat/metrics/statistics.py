# SPDX-License-Identifier: Apache-2.0
"""Estimates from runs: a value, and its interval and error probabilities from the contribution of each run.

Owns the statistics of the project (docs/verdicts.md), independent of metrics and claims. Strata are scenarios,
replicates are runs, and runs of one block share their random numbers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import scipy

CONFIDENCE = 0.95  # of printed intervals
TOGETHER = 0.25  # runs of a block count as dependent if a test at this level rejects independence
UNBOUNDED = (-math.inf, math.inf)
FEW_EQUAL = 5  # up to this number runs that differ may have equal values by chance


@dataclass(frozen=True)
class Prior:
    """The prior of a variance from sister scenarios: its size, and its weight in degrees of freedom.

    ``together`` is the p value of the hypothesis that runs of one block are independent, over all sisters.
    """

    variance: float = 0.0
    degrees: float = 0.0
    together: float = 1.0


@dataclass(frozen=True)
class Stratum:
    """The runs of one scenario in an estimate: the block of each run, and its contribution to the error (pull).

    ``prior`` is this stratum's variance of the estimate according to sister scenarios.
    """

    pulls: Mapping[Hashable, tuple[Hashable, float]]
    prior: float = 0.0
    prior_degrees: float = 0.0

    @property
    def degrees(self) -> float:
        """Degrees of freedom, including the sisters'."""
        return len(self.pulls) - 1 + self.prior_degrees

    @property
    def variance(self) -> float:
        """The stratum's contribution to the variance, moderated, but at least the variance of its own runs."""
        n = len(self.pulls)
        own = math.fsum(pull**2 for _, pull in self.pulls.values()) * n / (n - 1)
        moderated = (self.prior_degrees * self.prior + (n - 1) * own) / self.degrees
        return max(own, moderated)

    def weighed(self, weight: float) -> Stratum:
        """Return the stratum of the estimate multiplied by ``weight``."""
        pulls = {run: (block, weight * pull) for run, (block, pull) in self.pulls.items()}
        return Stratum(pulls, weight**2 * self.prior, self.prior_degrees)

    @property
    def moves(self) -> bool:
        """Whether any run pulls the estimate away from its mean."""
        return any(pull for _, pull in self.pulls.values())

    def joined(self, other: Stratum) -> Stratum:
        """Return the sum of both: the pulls of one run add up, even from different metrics.

        The difference of a value and itself has no error, whatever the prior.
        """
        pulls = dict(self.pulls)
        for run, (block, pull) in other.pulls.items():
            pulls[run] = (block, pull + (pulls[run][1] if run in pulls else 0.0))
        joined = Stratum(pulls, self.prior + other.prior, min(self.prior_degrees, other.prior_degrees))
        return replace(joined, prior=0.0) if not joined.moves and self.pulls.keys() == other.pulls.keys() else joined


@dataclass(frozen=True)
class Spread:
    """Standard error with its degrees of freedom. ``gain`` is the factor by which pairing divides the variance."""

    error: float
    degrees: float
    gain: float | None = None


@dataclass(frozen=True)
class Estimate:
    """A value with the strata from which its interval follows.

    ``n`` is the smallest number of runs in a stratum, ``runs`` the number of all, ``repeats`` the number of further,
    byte-identical runs, which add nothing. ``sd`` is the deviation between repetitions of a single metric. ``origin``
    is set for a ratio, whose interval is computed on the log scale of value minus origin.
    """

    value: float
    strata: Mapping[Hashable, Stratum] = field(default_factory=dict)
    n: int = 0
    runs: int = 0
    repeats: int = 0
    sd: float | None = None
    bounds: tuple[float, float] = UNBOUNDED
    origin: float | None = None
    together: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether it has no error, because it is computed or its runs have no randomness.

        Up to FEW_EQUAL runs that differ and have the same value are not enough if other scenarios vary.
        """
        return not any(one.moves or one.prior for one in self.strata.values())

    @property
    def range(self) -> float:
        """The largest difference between two runs of a scenario, in terms of the value."""
        ranges = [0.0]
        for one in self.strata.values():
            pulls = [pull for _, pull in one.pulls.values()]
            ranges.append(len(pulls) * (max(pulls) - min(pulls)))
        return max(ranges)

    @cached_property
    def spread(self) -> Spread:
        """The standard error. Runs of a block count as dependent if a test rejects their independence."""
        distinct = list(self._distinct())
        variance, degrees = _satterthwaite((one.variance, one.degrees) for one in distinct)
        blocked, block_degrees = _satterthwaite(self._blocks())
        if not blocked and not variance:
            return Spread(0.0, 1.0)
        raw = math.fsum(Stratum(one.pulls).variance for one in distinct)
        gain = raw / blocked if blocked > 0 and len(distinct) > 1 else None
        if len(distinct) < 2 or block_degrees == 0:
            return Spread(math.sqrt(variance), degrees)
        alone = scipy.special.fdtrc(block_degrees, max(degrees, 1.0), blocked / variance) if variance else 0.0
        if min(self.together, alone) >= TOGETHER:
            return Spread(math.sqrt(variance), degrees)
        # Only the repetitions are independent. With few of them, the strata's variance guards against chance agreement.
        prior = min(one.prior_degrees for one in self.strata.values())
        mixed = (prior * variance + block_degrees * blocked) / (prior + block_degrees)
        return Spread(math.sqrt(max(blocked, mixed)), block_degrees, gain)

    def _distinct(self) -> Iterable[Stratum]:
        """Return the strata; scenarios with the same byte-identical runs are joined into one."""
        found: dict[frozenset[Hashable], Stratum] = {}
        for one in self.strata.values():
            runs = frozenset(one.pulls)
            found[runs] = found[runs].joined(one) if runs in found else one
        return found.values()

    def _blocks(self) -> list[tuple[float, float]]:
        """Return variance and degrees of freedom of each group of blocks, whose repetitions are the replicates.

        Repetitions that some strata of a group lack form another group, because fewer pulls meet in them. A repetition
        that is alone in its group is taken to vary like the repetitions of the largest.
        """
        sums: dict[Hashable, float] = {}
        members: dict[Hashable, list[Hashable]] = {}
        for name, stratum in self.strata.items():
            for block, pull in stratum.pulls.values():
                sums[block] = sums.get(block, 0.0) + pull
                members.setdefault(block, []).append(name)
        groups: dict[Hashable, list[float]] = {}
        for block, pull in sums.items():
            group, _ = block if isinstance(block, tuple) else (block, None)
            groups.setdefault((group, tuple(members[block])), []).append(pull)
        large = sorted((pulls for pulls in groups.values() if len(pulls) > 1), key=len)
        if not large:
            return []
        counts = [len(pulls) for pulls in large]
        counts[-1] += len(groups) - len(large)
        return [(statistics.variance(pulls) * n, len(pulls) - 1.0) for pulls, n in zip(large, counts, strict=True)]

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the two-sided interval, within the value's bounds; the value itself if it has no error."""
        if not self.spread.error:
            return self.value, self.value
        reach = float(scipy.special.stdtrit(self.spread.degrees, (1 + confidence) / 2)) * self.spread.error
        if self.origin is None:
            low, high = self.value - reach, self.value + reach
        else:
            size = self.value - self.origin
            factor = math.exp(min(reach / abs(size), 700.0)) if size else math.inf
            ends = sorted((size / factor, size * factor))
            low, high = self.origin + ends[0], self.origin + ends[1]
        return max(low, min(self.bounds[0], self.value)), min(high, max(self.bounds[1], self.value))

    def p_above(self, limit: float) -> float:
        """Return the p value of the hypothesis that the truth is ``limit`` or less."""
        return self._tail(limit, 1)

    def p_below(self, limit: float) -> float:
        """Return the p value of the hypothesis that the truth is ``limit`` or more."""
        return self._tail(limit, -1)

    def _tail(self, limit: float, sign: int) -> float:
        if math.isinf(limit):
            return 0.0 if (limit < 0) == (sign > 0) else 1.0
        if not self.spread.error:
            return 0.0 if sign * (self.value - limit) > 0 else 1.0
        distance = sign * self.distance(self.value, limit)
        return float(scipy.special.stdtr(self.spread.degrees, -distance / self.spread.error))

    def distance(self, number: float, limit: float) -> float:
        """Return ``number`` less ``limit`` on the scale of the standard error; a ratio is compared by its logarithm."""
        if self.origin is None:
            return number - limit
        size, at, to = self.value - self.origin, number - self.origin, limit - self.origin
        if at * to <= 0:  # a limit beyond the possible values of a ratio
            return math.copysign(math.inf, number - limit) if number != limit else 0.0
        return abs(size) * math.log(abs(at / to)) * math.copysign(1.0, at)


def exactly(value: float) -> Estimate:
    """Return a number without error."""
    return Estimate(value)


def stratified(
    values: Mapping[Hashable, Mapping[Hashable, tuple[Hashable, float]]],
    prior: Prior = Prior(),
    bounds: tuple[float, float] = UNBOUNDED,
    repeats: int = 0,
    sd: float | None = None,
) -> Estimate:
    """Return the mean of the strata's means, from the values of runs by stratum and run, each with its block.

    A stratum of a single run adds nothing to the error: it has no randomness. Raises ValueError without a value.
    """
    if not values or not all(values.values()):
        raise ValueError("an estimate needs at least one value in each stratum")
    count = len(values)
    strata: dict[Hashable, Stratum] = {}
    means = []
    for key, runs in values.items():
        n = len(runs)
        mean = math.fsum(value for _, value in runs.values()) / n
        means.append(mean)
        if n > 1:
            alike = len({value for _, value in runs.values()}) == 1
            pulls = {
                run: (block, 0.0 if alike else (value - mean) / (n * count)) for run, (block, value) in runs.items()
            }
            variance = 0.0 if alike and n > FEW_EQUAL else prior.variance
            strata[key] = Stratum(pulls, variance / (n * count**2), prior.degrees)
    return Estimate(
        math.fsum(means) / count,
        strata,
        min((len(runs) for runs in values.values() if len(runs) > 1), default=1),
        sum(len(runs) for runs in values.values()),
        repeats,
        sd,
        bounds,
        together=prior.together,
    )


def total(a: Estimate, b: Estimate) -> Estimate:
    """Return a + b."""
    bounds = a.bounds[0] + b.bounds[0], a.bounds[1] + b.bounds[1]
    return _combined(a, 1.0, b, 1.0, a.value + b.value, bounds, _shifted(a, b, 1.0))


def difference(a: Estimate, b: Estimate) -> Estimate:
    """Return a - b."""
    bounds = a.bounds[0] - b.bounds[1], a.bounds[1] - b.bounds[0]
    return _combined(a, 1.0, b, -1.0, a.value - b.value, bounds, _shifted(a, b, -1.0))


def product(a: Estimate, b: Estimate) -> Estimate:
    """Return a * b."""
    origin = None
    for one, other in ((a, b), (b, a)):
        if not other.strata and one.origin is not None:
            origin = one.origin * other.value
    bounds = (0.0, math.inf) if _positive(a) and _positive(b) else UNBOUNDED
    return _combined(a, b.value, b, a.value, a.value * b.value, bounds, origin)


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """Return a / b, with its interval on the log scale; 1 for two zeros without any variation.

    Raises ValueError if the interval of ``b`` is not above zero.
    """
    low, high = b.interval()
    if a.value == b.value == 0 and a.exact and b.exact:
        return _combined(a, 0.0, b, 0.0, 1.0, UNBOUNDED, None)
    if low <= 0:
        raise ValueError(f"the divisor's 95 % interval from {low:g} to {high:g} is not above zero")
    value = a.value / b.value
    # Only a positive dividend has a logarithm: a difference may be 0 or less in truth.
    origin = 0.0 if a.value > 0 and _positive(a) and (a.strata or b.strata) else None
    return _combined(a, 1 / b.value, b, -value / b.value, value, UNBOUNDED, origin)


def _positive(a: Estimate) -> bool:
    """Return whether an estimate is 0 or more by what it is, whatever its runs are."""
    return a.bounds[0] >= 0 or a.origin == 0 or not (a.strata or a.value < 0)


def percent_gain(a: Estimate, b: Estimate) -> Estimate:
    """Return the percentage by which ``a`` exceeds ``b``. Raises ValueError like ``ratio``."""
    return product(exactly(100.0), difference(ratio(a, b), exactly(1.0)))


def extreme(values: Sequence[Estimate], choose: Callable[[Iterable[float]], float]) -> Estimate:
    """Return the largest or the smallest, by ``choose`` (max or min)."""
    wanted = choose(one.value for one in values)
    return next(one for one in values if one.value == wanted)


def _shifted(a: Estimate, b: Estimate, sign: float) -> float | None:
    """Return the origin of the sum of a ratio and an exact number."""
    if not b.strata and a.origin is not None:
        return a.origin + sign * b.value
    if not a.strata and b.origin is not None:
        return a.value + sign * b.origin
    return None


def _combined(
    a: Estimate,
    weight_a: float,
    b: Estimate,
    weight_b: float,
    value: float,
    bounds: tuple[float, float],
    origin: float | None,
) -> Estimate:
    """Combine two estimates, to first order.

    Only sides with randomness determine the number of runs: one run suffices for a scenario without randomness.
    """
    strata = {key: one.weighed(weight_a) for key, one in a.strata.items()}
    for key, one in b.strata.items():
        other = one.weighed(weight_b)
        strata[key] = strata[key].joined(other) if key in strata else other
    measured = [side for side in (a, b) if side.strata] or [side for side in (a, b) if side.runs]
    return Estimate(
        value,
        strata,
        min((side.n for side in measured), default=0),
        min((side.runs for side in measured), default=0),
        max(a.repeats, b.repeats),
        None,
        bounds,
        origin,
        min(a.together, b.together),
    )


def _satterthwaite(parts: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return variance and degrees of freedom of a sum of independent parts."""
    known = list(parts)
    variance = math.fsum(part for part, _ in known)
    if not variance:
        return 0.0, sum(degrees for _, degrees in known)
    return variance, variance**2 / math.fsum(part**2 / degrees for part, degrees in known if part)
