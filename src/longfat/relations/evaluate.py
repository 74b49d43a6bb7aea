# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a relation over a dataset, each with its value, interval and outcome."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from longfat.dataset.load import Dataset
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged, Median, Widest
from longfat.metrics.quantities import LEAST_RUNS, Pool, Selection, measure, median, significant
from longfat.metrics.statistics import FEW_EQUAL, Estimate
from longfat.relations.bind import Scope, Value, ValuesOf
from longfat.relations.limits import NO_DIFFERENCE, Limits, holm
from longfat.relations.nodes import Binary, Expression
from longfat.relations.outcomes import Why, Word
from longfat.relations.relation import Comparison, Relation
from longfat.relations.tree import At, Readings, judged, unit, value, words
from longfat.spec.runspec import Scalar
from longfat.study.warn import varies

LEAST_OF_ALL = 3  # the smallest number of runs that decides a measured comparison
LAW = 0.001  # the largest difference between two runs of a law, as a share of its value


@dataclass(frozen=True)
class Evidence:
    """One comparison: its quantity, value, n, interval, limit and outcome, with the reason ``why``.

    ``limit`` is the limit that decides, ``low`` and ``high`` are the interval that decides, with its ``confidence``.
    ``n`` is None for a computed value; ``runs`` is the number of runs of the smaller side. Without data the numbers are
    None and ``reason`` has the cause. ``repeats`` is the number of further, byte-identical repetitions. The p values
    ``p_inside`` and ``p_against`` decide (``Chances``); ``gain`` is the factor by which pairing divides the variance.
    ``limit_low`` and ``limit_high`` are the bounds of ``limit``, None on an open side. ``median`` states that the value
    is the median over the runs; the key ``mean`` has it, too. ``needed`` is the number of repetitions that an undecided
    comparison needs (``Limits.repetitions``), None if it is not known.
    """

    what: str
    unit: str
    limit: str
    outcome: Word
    mean: float | None = None
    sd: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    repeats: int = 0
    runs: int | None = None
    p_inside: float | None = None
    p_against: float | None = None
    why: Why | None = None
    gain: float | None = None
    confidence: float | None = None
    limit_low: float | None = None
    limit_high: float | None = None
    median: bool = False
    needed: int | None = None


@dataclass(frozen=True)
class Compared:
    """A quantity with its limits before the decision: its value, or the reason for its absence.

    ``paper`` is the quantity's value in the paper's own numbers, None if they do not give it.
    """

    what: str
    unit: str
    limits: Limits | None
    found: Judged | None = None
    reason: str | None = None
    why: Why | None = None
    paper: float | None = None


@dataclass(frozen=True)
class Rule:
    """A claim's rules for its comparisons.

    For a ``law``, two runs that agree suffice. ``paper`` has the paper's own numbers, which set the least size of an
    order. ``retest`` is the difference between the paper's own measurements of a number as a share of the number,
    ``retest_absolute`` the difference in its unit.
    """

    law: bool = False
    paper: Readings | None = None
    retest: float = 0.0
    retest_absolute: float = 0.0


@dataclass(frozen=True)
class Grounds(Readings):
    """A study and the dataset of its runs.

    ``left_out`` has, by experiment, the reason why the backend left some of its points out.
    """

    dataset: Dataset
    left_out: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def pool(self) -> Pool:
        """The properties that runs have in common."""
        pairs = {one.id: point.experiment.pairs_with for one in self.study.experiments for point in one.points}
        fixed = {
            one.id: [point.factors for point in one.points if not varies(point.experiment, self.study.header)]
            for one in self.study.experiments
        }
        return Pool(self.dataset, {name: partner for name, partner in pairs.items() if partner}, fixed)

    def read(self, selection: Selection, least: int | None) -> Estimate:
        """Return the mean over the runs."""
        return measure(self.dataset, selection, LEAST_RUNS if least is None else least, self.pool)

    def middle(self, selection: Selection, least: int | None) -> Judged:
        """Return the median over the runs."""
        return median(self.dataset, selection, LEAST_RUNS if least is None else least, self.pool)

    @cached_property
    def labels(self) -> Mapping[tuple[str, str, Scalar], str]:
        """Factor values as in the manifest, by experiment, factor and base value."""
        return {
            (experiment.id, factor, value): point.labels[factor]
            for experiment in self.study.experiments
            for point in experiment.points
            for factor, value in point.factors.items()
        }

    @property
    def values_of(self) -> ValuesOf:
        """The values of a factor over the runs in the lock that a selection chooses, in ascending order."""

        def values(selection: Selection, factor: str) -> Sequence[Value]:
            found = {run.factors[factor] for run in selection.chosen(self.dataset)}
            ordered = sorted(found, key=lambda value: (str(type(value)), value))
            return [
                Value(base, self.labels.get((selection.experiment, factor, base), str(base)), 1) for base in ordered
            ]

        return values


def comparisons(relation: Relation, readings: Readings, rule: Rule = Rule()) -> Iterator[Compared]:
    """Yield the comparisons of a relation, for all values of its loops. Raises RelationError."""
    found = False
    for scope in relation.scopes(readings.study, readings.values_of):
        found = True
        for comparison in relation.comparisons:
            yield _compared(comparison, At(scope, readings), rule)
    if not found:
        reason = f"the lock has no such run of experiment {relation.first_experiment(readings.study)!r}"
        yield Compared(relation.text, "", None, reason=reason, why="runs missing")


def decided(parts: Iterable[Compared]) -> tuple[Evidence, ...]:
    """Decide the comparisons of a claim. Holm's procedure keeps the level of all decisions against the claim."""
    every = list(parts)
    levels = holm([part.limits.chances(part.found).against if part.found and part.limits else 1.0 for part in every])
    return tuple(_decided(part, level) for part, level in zip(every, levels, strict=True))


def evaluated(expression: Expression, grounds: Grounds, least: int | None = None) -> Judged:
    """Return the value of an expression with its interval, from ``least`` repetitions on.

    Raises NoValue or ValueError with the reason, RelationError on an unknown name.
    """
    return judged(expression, At(Scope(grounds.study, grounds.values_of), grounds, least))


def _compared(comparison: Comparison, at: At, rule: Rule) -> Compared:
    """Return the value of a comparison and its limits."""
    of, limits = comparison.of, comparison.limits
    if limits.by_error and comparison.printed is not None:
        number = comparison.printed
        retest = max(rule.retest * abs(number), rule.retest_absolute)
        limits = Limits.within_error(number, comparison.error, retest)
    try:
        of, limits, found = _judged(of, limits, at)
        found = _as_law(found, rule)
        if comparison.order and isinstance(of, Binary):
            least, note = _least(of, at, _on_paper(of, at, rule))
            limits = dataclasses.replace(limits, least=least, least_note=note)
        if found.runs and not found.exact and found.runs < LEAST_OF_ALL:
            raise NoValue(f"rests on {found.runs} runs, at least {LEAST_OF_ALL} are needed")
        if not rule.law and (equal := _few_equal(found)):
            raise ValueError(f"{equal} runs that differ have the same value, which may be chance")
    except NoValue as error:
        return Compared(words(of, at.scope), unit(of), limits, reason=str(error), why="runs missing")
    except ValueError as error:
        return Compared(words(of, at.scope), unit(of), limits, reason=str(error), why="too few runs")
    return Compared(words(of, at.scope), unit(of), limits, found, paper=_on_paper(of, at, rule))


def _judged(of: Expression, limits: Limits, at: At) -> tuple[Expression, Limits, Judged]:
    """Return an expression, its limits and its value; of a ratio whose divisor may be 0, its inverse and that one's.

    Raises ValueError if neither has a value.
    """
    try:
        return of, limits, judged(of, at)
    except ValueError as error:
        if not isinstance(of, Binary) or of.operator != "/" or value(of.right, at).bounds[0] < 0:
            raise
        inverse = dataclasses.replace(of, left=of.right, right=of.left)
        try:
            return inverse, limits.inverse, judged(inverse, at)
        except ValueError:
            raise error from None


def _few_equal(found: Judged) -> int:
    """Return the number of runs behind a value without error that may be equal by chance; 0 if there are none."""
    if isinstance(found, Widest):
        return max(map(_few_equal, found.of))
    if not isinstance(found, Estimate) or not found.exact:
        return 0
    return max((len(one.pulls) for one in found.strata.values() if len(one.pulls) <= FEW_EQUAL), default=0)


def _on_paper(of: Expression, at: At, rule: Rule) -> float | None:
    """Return the value of an expression in the paper's own numbers; None if they do not give it."""
    if rule.paper is None:
        return None
    try:
        return value(of, At(dataclasses.replace(at.scope, given_values=rule.paper.values_of), rule.paper)).value
    except (NoValue, ValueError):
        return None


def _least(order: Binary, at: At, paper: float | None) -> tuple[float, str]:
    """Return the smallest difference of an order that counts, and its source: the paper's difference, or 1 %."""
    if paper is not None:
        return abs(paper) / 2, "half of the paper's difference"
    share = NO_DIFFERENCE * max(abs(value(side, at).value) for side in (order.left, order.right))
    return share, "1 % of the larger side"


def _as_law(found: Judged, rule: Rule) -> Judged:
    """Return the value of a law without its error if the runs agree."""
    if isinstance(found, Widest):
        return dataclasses.replace(found, of=tuple(_as_law(one, rule) for one in found.of))
    if rule.law and isinstance(found, Estimate) and found.range <= LAW * abs(found.value):
        return dataclasses.replace(found, strata={})
    return found


def _decided(part: Compared, level: float) -> Evidence:
    """Decide one comparison; ``level`` is the error probability of a decision against the claim."""
    if part.found is None or part.limits is None:
        limit = part.limits.text(part.unit) if part.limits else ""
        return Evidence(part.what, part.unit, limit, "undecided", reason=part.reason, why=part.why)
    found, chances = part.found, part.limits.chances(part.found)
    decision = part.limits.decide(found, level)
    ends = found.interval(decision.confidence)
    low, high = (None if math.isinf(end) else significant(end) for end in ends)
    spread = found.spread if isinstance(found, Estimate) else None
    bounds = [None if math.isinf(end) else significant(end) for end in (decision.limits.low, decision.limits.high)]
    return Evidence(
        part.what,
        part.unit,
        decision.limits.text(part.unit),
        decision.outcome,
        significant(found.value),
        None if found.sd is None else significant(found.sd),
        found.n or None,
        low,
        high,
        repeats=found.repeats,
        runs=found.runs or None,
        p_inside=significant(chances.inside),
        p_against=significant(chances.against),
        why=decision.why,
        gain=significant(spread.gain) if spread and spread.gain else None,
        confidence=significant(decision.confidence),
        limit_low=bounds[0],
        limit_high=bounds[1],
        median=all(isinstance(one, Median) for one in (found.of if isinstance(found, Widest) else (found,))),
        needed=decision.limits.repetitions(found, part.paper) if decision.outcome == "undecided" else None,
    )
