# SPDX-License-Identifier: Apache-2.0
"""The comparisons of a relation over a dataset, each with its value, interval and outcome. Gives no verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from longfat.dataset.load import Dataset
from longfat.metrics.data import NoValue
from longfat.metrics.orders import Judged
from longfat.metrics.quantities import LEAST_RUNS, Pool, Selection, measure, median, significant
from longfat.metrics.statistics import Estimate
from longfat.relations.bind import Scope, Value, ValuesOf
from longfat.relations.limits import LEVEL, NO_EFFECT, Agreement, Limits, Outcome
from longfat.relations.nodes import Binary, Expression
from longfat.relations.readings import Readings
from longfat.relations.relation import Comparison, Relation
from longfat.relations.tree import At, judged, unit, value, words
from longfat.spec.runspec import Scalar
from longfat.study.idle import varies

LEAST_OF_ALL = 3  # the smallest number of runs that decides a measured comparison
LAW = 0.001  # the largest difference between two runs of a law, as a share of its value


@dataclass(frozen=True)
class Evidence:
    """One comparison: its quantity, value, n, 95 % interval, limit and outcome.

    ``n`` is None for a computed value; ``runs`` is the number of runs of the smaller side. Without data the numbers are
    None and ``reason`` has the cause. ``repeats`` is the number of further, byte-identical repetitions. ``p_holds`` and
    ``p_fails`` are the probabilities that decide (``Chances``), ``gain`` the factor by which pairing divides the
    variance. ``agreement`` marks a comparison within the paper's own error. ``limit_low`` and ``limit_high`` are the
    bounds of ``limit``, None on an open side; for a number with an error they are 1.96 errors from it.
    """

    what: str
    unit: str
    limit: str
    outcome: Outcome
    mean: float | None = None
    sd: float | None = None
    n: int | None = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    repeats: int = 0
    runs: int | None = None
    p_holds: float | None = None
    p_fails: float | None = None
    no_effect: bool = False
    gain: float | None = None
    agreement: bool = False
    limit_low: float | None = None
    limit_high: float | None = None


@dataclass(frozen=True)
class Rule:
    """A claim's rules for its comparisons.

    For a ``law``, two runs that agree suffice. ``paper`` has the paper's own numbers, which give the size of an order.
    ``retest`` is the difference between the paper's own measurements of a number as a share of the number,
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
        """The properties that the runs share."""
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
        """The manifest's wording of factor values, by experiment."""
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


def comparisons(relation: Relation, readings: Readings, rule: Rule = Rule()) -> Iterator[Evidence]:
    """Yield the comparisons of a relation, for all values of its loops. Raises RelationError.

    Each has its own outcome; the judge corrects for their number.
    """
    found = False
    for scope in relation.scopes(readings.study, readings.values_of):
        found = True
        for comparison in relation.comparisons:
            yield _compared(comparison, At(scope, readings), rule)
    if not found:
        reason = f"the lock has no such run of experiment {relation.first_experiment(readings.study)!r}"
        yield Evidence(relation.text, "", "", "no_data", reason=reason)


def evaluated(expression: Expression, grounds: Grounds, least: int | None = None) -> Judged:
    """Return the value of an expression with its interval, from ``least`` repetitions on.

    Raises NoValue or ValueError with the reason, RelationError on an unknown name.
    """
    return value(expression, At(Scope(grounds.study, grounds.values_of), grounds, least))


def _compared(comparison: Comparison, at: At, rule: Rule) -> Evidence:
    """Compare a value and its interval with limits: inside, outside, or undecided."""
    of, limits = comparison.of, comparison.limits
    if isinstance(limits, Agreement):
        limits = dataclasses.replace(limits, retest=max(rule.retest * abs(limits.number), rule.retest_absolute))
    what, its_unit = words(of, at.scope), unit(of)
    try:
        found = _as_law(judged(of, at), rule)
        if comparison.order and isinstance(of, Binary) and isinstance(limits, Limits):
            limits = dataclasses.replace(limits, alike=_no_effect(of, at, rule))
        if found.runs and not found.exact and found.runs < LEAST_OF_ALL:
            raise NoValue(f"rests on {found.runs} runs, at least {LEAST_OF_ALL} are needed")
    except NoValue as error:
        return Evidence(what, its_unit, limits.text(its_unit), "no_data", reason=str(error))
    except ValueError as error:
        return Evidence(what, its_unit, limits.text(its_unit), "undecided", reason=str(error))
    return _decided(found, what, its_unit, limits)


def _no_effect(order: Binary, at: At, rule: Rule) -> float:
    """Return the difference up to which two sides count as equal: half of the paper's own difference, or 1 %."""
    if rule.paper is not None:
        paper = At(dataclasses.replace(at.scope, given_values=rule.paper.values_of), rule.paper)
        try:
            return abs(value(order.left, paper).value - value(order.right, paper).value) / 2
        except (NoValue, ValueError):
            pass
    return NO_EFFECT * max(abs(value(side, at).value) for side in (order.left, order.right))


def _as_law(found: Judged, rule: Rule) -> Judged:
    """Return the value without its error if it rests on two runs of a law that agree."""
    if rule.law and isinstance(found, Estimate) and found.range <= LAW * abs(found.value):
        return dataclasses.replace(found, strata={})
    return found


def _decided(found: Judged, what: str, its_unit: str, limits: Limits | Agreement) -> Evidence:
    chances = limits.chances(found)
    outcome: Outcome = "fails" if chances.fails <= LEVEL else "holds" if chances.holds <= LEVEL else "undecided"
    low, high = (significant(number) for number in found.interval())
    spread = found.spread if isinstance(found, Estimate) else None
    bounds = [None if math.isinf(end) else significant(end) for end in limits.ends]
    return Evidence(
        what,
        its_unit,
        limits.text(its_unit),
        outcome,
        significant(found.value),
        None if found.sd is None else significant(found.sd),
        found.n or None,
        low,
        high,
        repeats=found.repeats,
        runs=found.runs or None,
        p_holds=significant(chances.holds),
        p_fails=significant(chances.fails),
        no_effect=chances.no_effect,
        gain=significant(spread.gain) if spread and spread.gain else None,
        agreement=isinstance(limits, Agreement),
        limit_low=bounds[0],
        limit_high=bounds[1],
    )
